"""Votes of several evaluators on the same items: by how many each was found right, and how often
all agree.

Source: specification of bank synthesis, 10.4 (human review of CareQA).
"""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.records.estimate import Estimate
from medassay.errors import StatisticError
from medassay.statistic.interval.wilson import wilson_interval

REVISION = 1


class VoteTable(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of items, 0 to 1, with Wilson's interval.

    `at_least[k - 1]` is of items that at least k evaluators found right, the last one thus of those
    that all did; `unanimous` of items on which all agree, right or wrong; `pairwise` the mean share
    of pairs of evaluators that agree, without an interval.
    """

    n_items: int
    n_evaluators: int
    at_least: tuple[Estimate, ...]
    unanimous: Estimate
    pairwise: float

    @property
    def all_of_them(self) -> Estimate:
        """Return the share of items that all evaluators found right."""
        return self.at_least[-1]


def vote_table(votes: Sequence[Sequence[bool]]) -> VoteTable:
    """Return the shares of items by votes.

    Parameters
    ----------
    votes : shape (n_items, n_evaluators), the same number for each item

    Raises
    ------
    StatisticError
        When there is no item, fewer than two evaluators, or a gap.

    Examples
    --------
    >>> table = vote_table([[1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]])
    >>> [one.value for one in table.at_least], table.unanimous.value, round(table.pairwise, 3)
    ([0.8, 0.6, 0.4], 0.6, 0.733)
    """
    sizes = {len(row) for row in votes}
    if len(sizes) != 1 or min(sizes) < 2:
        sizes_text = ", ".join(map(str, sorted(sizes))) or "none"
        raise StatisticError(
            f"votes per item: {sizes_text}; expected the same number for all, at least 2"
        )
    table = np.asarray(votes, dtype=bool)
    sums = table.sum(axis=1)
    n = table.shape[1]
    agreed = [(table[:, a] == table[:, b]).mean() for a, b in combinations(range(n), 2)]
    return VoteTable(
        n_items=len(table),
        n_evaluators=n,
        at_least=tuple(_share(sums >= k) for k in range(1, n + 1)),
        unanimous=_share((sums == 0) | (sums == n)),
        pairwise=float(np.mean(agreed)),
    )


def _share(flags: NDArray[np.bool_]) -> Estimate:
    value = float(flags.mean())
    lo, hi = wilson_interval(float(flags.sum()), len(flags))
    # At 0 and 1 the interval ends there, but for the last digit.
    lo, hi = min(lo, value), max(hi, value)
    return Estimate(value=value, lo=lo, hi=hi, n=len(flags), n_clusters=len(flags))


def margin_of_error(n: int, population: int) -> float:
    """Return the half width of a 95 % interval of a share near one half, of `n` items drawn from a
    finite population.

    Raises
    ------
    StatisticError
        When n is not from 1 to the population's size.

    Examples
    --------
    >>> round(margin_of_error(360, 5621), 4)
    0.05
    """
    if not 1 <= n <= population:
        raise StatisticError(f"{n} of {population} items; expected 1 to all of them")
    finite = (population - n) / (population - 1) if population > 1 else 0.0
    return 1.959963984540054 * sqrt(0.25 / n * finite)
