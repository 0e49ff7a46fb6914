"""The items of one row as numbers, drawn together over the domains: pools, and the mean of each
number.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.records.estimate import Estimate
from medassay.core.scale import Scale
from medassay.statistic.draws import Floats
from medassay.statistic.interval.ratio import DrawnStratum, Strata, ratio_estimate
from medassay.statistic.ranking.shared import Bools


class CaseStratum(msgspec.Struct, frozen=True):
    """The cases of one domain, shape (n_cases, numbers), NaN where unknown, with the seed of its
    draws.
    """

    values: Floats
    clusters: NDArray[np.int64]
    seed: int


class CasePool:
    """Cases over some domains, drawn domain by domain.

    `columns` names the columns of their values, each with its scale.
    """

    def __init__(
        self,
        strata: Sequence[CaseStratum],
        *,
        pool_seed: int,
        n_resamples: int,
        columns: Mapping[str, Scale],
    ) -> None:
        self._strata = strata
        self.columns = columns
        self._places = {name: at for at, name in enumerate(columns)}
        self._pool_seed = pool_seed
        self._n_resamples = n_resamples

    @cached_property
    def values(self) -> Floats:
        """Return all cases, shape (n_cases, numbers)."""
        return np.concatenate([np.empty((0, len(self.columns))), *(s.values for s in self._strata)])

    @property
    def domains(self) -> Sequence[CaseStratum]:
        """Return the cases of each domain."""
        return self._strata

    @cached_property
    def strata(self) -> Strata:
        """Return how the cases are drawn."""
        return Strata(
            [DrawnStratum(stratum.clusters, stratum.seed) for stratum in self._strata],
            pool_seed=self._pool_seed,
            n_resamples=self._n_resamples,
        )

    def column(self, number: str) -> Floats:
        """Return one number of every case."""
        return self.values[:, self._places[number]]

    def known(self, number: str) -> Bools:
        """Return for which cases a number is known."""
        return ~np.isnan(self.column(number))

    def only(self, chosen: Bools) -> "CasePool":
        """Return the pool of some cases; draws are over these alone."""
        if chosen.all():
            return self
        strata, at = [], 0
        for stratum in self._strata:
            mask = chosen[at : at + len(stratum.values)]
            at += len(stratum.values)
            part = CaseStratum(stratum.values[mask], stratum.clusters[mask], stratum.seed)
            strata.append(part)
        return CasePool(
            strata,
            columns=self.columns,
            pool_seed=self._pool_seed,
            n_resamples=self._n_resamples,
        )

    def alike(self) -> "list[tuple[CasePool, list[str]]]":
        """Return the numbers in groups that are known for the same cases, each with these cases."""
        groups: dict[bytes, list[str]] = {}
        for number in self.columns:
            is_known = self.known(number)
            if is_known.any():
                groups.setdefault(is_known.tobytes(), []).append(number)
        return [(self.only(self.known(numbers[0])), numbers) for numbers in groups.values()]


def pooled_means(pool: CasePool) -> dict[str, Estimate]:
    """Return the mean of every number of a pool with its interval.

    What no case has, or what has no interval, is left out.
    """
    means: dict[str, Estimate] = {}
    for subpool, numbers in pool.alike():
        if not subpool.strata.has_interval:
            continue
        columns = [subpool.column(number) for number in numbers]
        ones = np.ones(len(columns[0]))
        sums = subpool.strata.sums(np.column_stack([*columns, ones]))
        for at, (number, values) in enumerate(zip(numbers, columns, strict=True)):
            draws = sums[:, at] / sums[:, -1]
            means[number] = ratio_estimate(
                values, ones, draws, subpool.strata, scale=pool.columns[number]
            )
    return means
