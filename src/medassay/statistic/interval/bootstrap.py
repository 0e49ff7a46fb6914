"""Percentile and BCa intervals from given draws, and the mean with both of its intervals."""

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from medassay.core.records.estimate import Estimate, Second
from medassay.core.scale import Scale
from medassay.errors import ScaleError, StatisticError
from medassay.statistic.draws import Floats, draw_means, number_clusters
from medassay.statistic.interval.cluster import cluster_t
from medassay.statistic.interval.wilson import wilson_interval

REVISION = 1

TIE = 1e-12  # two draws closer than this are equal
SMALL_N = 10


def percentile(draws: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return lower and upper type-7 quantiles over the first axis."""
    tail = (1 - level) / 2
    lo, hi = np.quantile(draws, [tail, 1 - tail], axis=0)
    return lo, hi


def bca(scores: Floats, draws: Floats, level: float = 0.95) -> tuple[float, float] | None:
    """Return the bias-corrected and accelerated interval of a mean, None where undefined.

    Ties with the mean count half in z0; the acceleration comes from the jackknife; ends are type-7
    quantiles of the draws.

    References
    ----------
    Efron (1987), J. Am. Stat. Assoc. 82:171-185, doi:10.1080/01621459.1987.10478410.
    """
    n = len(scores)
    if n < 2 or np.ptp(scores) <= TIE:
        return None
    return bca_ends(float(scores.mean()), (scores.sum() - scores) / (n - 1), draws, level)


def bca_ends(
    value: float, left_out: Floats, draws: Floats, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the BCa interval of any statistic from its draws and its values without each item."""
    from scipy.special import ndtr, ndtri

    below = np.count_nonzero(draws < value - TIE)
    ties = np.count_nonzero(np.abs(draws - value) <= TIE)
    share = (below + 0.5 * ties) / len(draws)
    centred = left_out.mean() - left_out
    if not 0 < share < 1 or not centred.any():
        return None
    z0 = ndtri(share)
    acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = z0 + ndtri(tail)
        ends.append(float(np.quantile(draws, ndtr(z0 + z / (1 - acceleration * z)))))
    return ends[0], ends[1]


def second_interval(
    scores: Floats,
    clusters: NDArray[np.int64] | None,
    draws: Floats,
    *,
    scale: Scale,
    level: float = 0.95,
) -> Second | None:
    """Return the second interval of one mean: cluster t, Wilson or BCa, as the data ask for."""
    unit = scale.unit
    if clusters is not None:
        ends = cluster_t(scores, clusters, level=level, clip=(scale.lo, scale.hi) if unit else None)
        return None if ends is None else Second(method="cluster_t", lo=ends[0], hi=ends[1])
    right_wrong = unit and np.all((scores == 0) | (scores == 1))
    ends = None if right_wrong else bca(scores, draws, level)
    if ends is not None:
        return Second(method="bca", lo=ends[0], hi=ends[1])
    if not unit:
        return None
    lo, hi = wilson_interval(float(scores.sum()), len(scores), level=level)
    return Second(method="wilson", lo=lo, hi=hi)


def interval_flags(lo: float, hi: float, second: Second | None, n: int, scale: Scale) -> list[str]:
    """Return the flags of one interval: `degenerate`, `small_n`, `intervals_differ`."""
    flags = []
    if hi - lo <= TIE:
        flags.append("degenerate")
    if n < SMALL_N:
        flags.append("small_n")
    if second is not None:
        width = scale.hi - scale.lo
        tenth = 0.1 * (second.hi - second.lo)
        allowed = max(0.02 * width, tenth) if np.isfinite(width) else tenth
        if max(abs(lo - second.lo), abs(hi - second.hi)) > allowed:
            flags.append("intervals_differ")
    return flags


def clipped(estimate: Estimate, scale: Scale) -> Estimate:
    """Return an estimate whose value, ends and bounds lie on the scale."""

    def within(value: float) -> float:
        return min(max(value, scale.lo), scale.hi)

    def bound(value: float | None) -> float | None:
        return None if value is None else within(value)

    second = estimate.second
    return replace(
        estimate,
        value=within(estimate.value),
        lo=within(estimate.lo),
        hi=within(estimate.hi),
        second=second and replace(second, lo=within(second.lo), hi=within(second.hi)),
        worst=bound(estimate.worst),
        best=bound(estimate.best),
    )


def check_scores(scores: ArrayLike, scale: Scale) -> Floats:
    """Return scores as a float array, refusing what is empty, NaN or outside the scale."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1:
        raise StatisticError(f"scores have {array.ndim} dimensions; expected one row of scores")
    if not len(array):
        raise StatisticError("no scores: no data is not a score of zero")
    if not np.all(np.isfinite(array)):
        raise ScaleError("a score is NaN or infinite; leave nulls out and count them")
    if array.min() < scale.least - TIE or array.max() > scale.hi + TIE:
        raise ScaleError(
            f"scores span {array.min():g} to {array.max():g}; the scale is {scale.least:g} to"
            f" {scale.hi:g}"
        )
    return array


def bootstrap_mean(
    scores: ArrayLike,
    *,
    n_resamples: int = 1000,
    level: float = 0.95,
    seed: int,
    clusters: ArrayLike | None = None,
    scale: Scale = Scale(),
) -> Estimate:
    """Estimate a mean with its percentile interval and a second interval.

    Parameters
    ----------
    scores : shape (n_items,), on `scale`, items sorted by id (the draws are over positions)
    n_resamples : number of draws B
    level : in (0, 1)
    seed : a user's integer; bit 63 is set, so s and s + 2**63 are the same stream
    clusters : name or number of each item's cluster; clusters are then drawn whole

    Returns
    -------
    Estimate
        Plain mean; type-7 quantiles of the draws; Wilson for 0/1 scores, BCa for graded ones,
        mean ± t for clusters as second interval. Flags: `degenerate`, `small_n`,
        `intervals_differ`.

    Raises
    ------
    StatisticError
        If `scores` is empty.
    ScaleError
        A ValueError: NaN, infinite or outside the scale.

    References
    ----------
    Percentile: Efron and Tibshirani (1993), An Introduction to the Bootstrap, ch. 13. Too short
    below about 20 items, which is why the second interval stands beside it. BCa: Efron (1987),
    doi:10.1080/01621459.1987.10478410. Wilson (1927), doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> from medassay import bootstrap_mean
    >>> e = bootstrap_mean([1, 0, 1, 1, 0, 1, 1, 1, 0, 1], seed=17142463675043842695)
    >>> e.value, round(e.lo, 9), round(e.hi, 9), e.second.method
    (0.7, 0.4, 1.0, 'wilson')
    """
    array = check_scores(scores, scale)
    if not 0 < level < 1:
        raise StatisticError(f"level {level}: expected a share between 0 and 1")
    if n_resamples < 1:
        raise StatisticError(f"n_resamples {n_resamples}: expected at least 1")
    if clusters is not None and np.shape(clusters) != array.shape:
        raise StatisticError(f"{len(np.asarray(clusters))} clusters for {len(array)} scores")
    numbers = None if clusters is None else number_clusters(clusters)
    draws = draw_means(array[:, None], numbers, n_resamples, seed)[:, 0]
    lo, hi = percentile(draws, level)
    second = second_interval(array, numbers, draws, scale=scale, level=level)
    n_clusters = len(array) if numbers is None else int(numbers.max()) + 1
    return Estimate(
        value=float(array.mean()),
        lo=float(lo),
        hi=float(hi),
        n=len(array),
        n_clusters=n_clusters,
        level=level,
        second=second,
        flags=tuple(interval_flags(float(lo), float(hi), second, n_clusters, scale)),
    )
