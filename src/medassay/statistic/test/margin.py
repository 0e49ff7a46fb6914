"""Equivalence and non-inferiority: a difference held against a margin.

"Not different" is no evidence of "equally good"; an interval inside the margin is.
"""

from collections.abc import Sequence
from math import sqrt

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.errors import StatisticError
from medassay.statistic.draws import Floats
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.statistic.ranking.pool import stratified_spread

REVISION = 1

LEVEL = 0.90  # two one-sided 5 % tests


class DifferenceInterval(msgspec.Struct, frozen=True, kw_only=True):
    """The 90 % interval of a difference, first minus second, and the method that gave it."""

    lo: float
    hi: float
    method: str

    def equivalent(self, margin: float) -> bool:
        """Return whether the whole interval lies inside ±margin."""
        return -margin < self.lo and self.hi < margin

    def non_inferior(self, margin: float) -> bool:
        """Return whether the first is worse by less than the margin, where high is better."""
        return self.lo > -margin


def check_margin(margin: float) -> float:
    """Return a margin, or refuse one that is no positive number."""
    if not margin > 0 or not np.isfinite(margin):
        raise StatisticError(f"margin {margin:g}: expected a number above 0, in units of the score")
    return margin


def difference_bounds(
    first: Sequence[Floats],
    second: Sequence[Floats],
    clusters: Sequence[NDArray[np.int64] | None],
) -> DifferenceInterval | None:
    """Return the 90 % interval of mean(first) − mean(second), None where none can be claimed.

    Parameters
    ----------
    first, second : paired scores of each domain; over several domains the mean of domain means
    clusters : cluster numbers of each domain's items, None where every item is its own

    Returns
    -------
    DifferenceInterval or None
        Tango's score interval for right and wrong; paired t for graded scores (over cluster sums
        where items are clustered); the stratified t over domains. None below 10 items or clusters,
        and where graded scores do not vary: no spread is no proof.

    References
    ----------
    Schuirmann (1987), J. Pharmacokinet. Biopharm. 15:657-680, doi:10.1007/BF01068419.
    """
    from scipy.special import stdtrit

    differences = [a - b for a, b in zip(first, second, strict=True)]
    groups = sum(
        len(d) if c is None else int(c.max()) + 1
        for d, c in zip(differences, clusters, strict=True)
    )
    if groups < SMALL_N:
        return None
    plain = len(differences) == 1 and clusters[0] is None
    if plain and all(np.isin(scores, (0.0, 1.0)).all() for scores in (*first, *second)):
        [differences_all] = differences
        lo, hi = tango_interval(
            int((differences_all > 0).sum()),
            int((differences_all < 0).sum()),
            len(differences_all),
        )
        return DifferenceInterval(lo=lo, hi=hi, method="tango")
    spread = stratified_spread(differences, clusters)
    if spread is None or spread[1] == 0:
        return None
    mean, variance, freedom = spread  # of one domain: the paired t, or that of cluster sums
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * sqrt(variance)
    method = "paired_t" if plain else "cluster_t" if len(differences) == 1 else "stratified_t"
    return DifferenceInterval(lo=mean - half, hi=mean + half, method=method)


def tango_interval(
    only_a: int, only_b: int, n: int, *, level: float = LEVEL
) -> tuple[float, float]:
    """Return Tango's score interval of the difference of two paired shares.

    Parameters
    ----------
    only_a, only_b : items that only the first, only the second model answered rightly, of `n`

    References
    ----------
    Tango (1998), Stat. Med. 17:891-908.

    Examples
    --------
    >>> lo, hi = tango_interval(4, 6, 400)
    >>> round(lo, 5), round(hi, 5)
    (-0.02001, 0.00904)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    if min(only_a, only_b) < 0 or only_a + only_b > n or n < 1:
        raise StatisticError(f"{only_a} and {only_b} discordant items of {n}")
    z = float(ndtri((1 + level) / 2))
    net = only_a - only_b

    def beyond(delta: float, sign: int) -> float:
        """Return how far the score statistic at `delta` is beyond z."""
        b = -only_a - only_b + (2 * n - net) * delta
        c = -only_b * delta * (1 - delta)
        share = (sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        spread = sqrt(max(0.0, n * (2 * share + delta * (1 - delta))))
        return sign * (n * delta - net) - z * spread

    # Just beside the estimate: without discordant items the statistic is 0 at 0, too.
    up, down = net / n + 1e-12, net / n - 1e-12
    hi = 1.0 if net == n else float(brentq(beyond, up, 1.0, args=(1,), xtol=1e-12))
    lo = -1.0 if net == -n else float(brentq(beyond, -1.0, down, args=(-1,), xtol=1e-12))
    return lo, hi
