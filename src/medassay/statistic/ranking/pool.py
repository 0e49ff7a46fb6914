"""Means and draws of some models over one domain, or pooled over several.

Source: specification of statistics, 7.2; what it leaves open (the second interval of a pool) is
decided in `docs/decisions/0002-pooled-intervals.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.records.estimate import Second
from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats, count_clusters, count_rows, draw_means, number_clusters
from medassay.statistic.interval.bootstrap import TIE
from medassay.statistic.interval.cluster import linearised_se
from medassay.statistic.interval.wilson import wilson_interval
from medassay.statistic.ranking.shared import Bools, Rule

REVISION = 1


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """Scores of one domain: shape (n_rows, n_items), NaN where null; items sorted by id.

    `clusters` numbers the cluster of each item; numbers are unique over all strata, and an item
    without a cluster has a number of its own. `lowest` is the lowest score of each item, where that
    differs between items; None where it is the scale's.
    """

    name: str
    scores: Floats
    clusters: NDArray[np.int64]
    seed: int
    lowest: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a field is computed. `pool_seed` is for draws that join domains.

    With the rule "simultaneous" `pooled_small` says whether a domain of fewer than 10 items or
    clusters only marks the rows of a pool, or takes them out of its ranking.
    """

    pool_seed: int
    scale: Scale = Scale()
    n_resamples: int = 1000
    level: float = 0.95
    rule: Rule = "leader"
    percentile_only: bool = False
    touching: bool = False
    pooled_small: Literal["mark", "exclude"] = "mark"

    @property
    def simultaneous(self) -> bool:
        """Return whether ranks are ranges, from all pairs tested at once."""
        return self.rule == "simultaneous"


class PooledMeans(msgspec.Struct, frozen=True):
    """Means and draws of some rows over the same items of every stratum."""

    values: Floats  # (k,)
    draws: Floats | None  # (n_resamples, k); None when a domain has one item
    micro: Floats
    micro_draws: Floats | None
    n: int
    n_clusters: int


def means_of(
    strata: Sequence[Stratum], members: list[int], masks: list[Bools], options: Options
) -> PooledMeans:
    """Return means and shared draws of some rows over the items that `masks` keep."""
    scores, numbers, seeds, labels = [], [], [], []
    for stratum, mask in zip(strata, masks, strict=True):
        if mask.any():
            scores.append(stratum.scores[members][:, mask].T)
            labels.append(stratum.clusters[mask])
            numbers.append(number_clusters(labels[-1]))
            seeds.append(stratum.seed)
    sizes = np.array([len(s) for s in scores], dtype=np.float64)
    groups = [count_clusters(names) for names in labels]
    domain_means = np.array([s.mean(axis=0) for s in scores])
    values, micro = domain_means.mean(axis=0), (sizes @ domain_means) / sizes.sum()
    n, n_clusters = int(sizes.sum()), count_clusters(np.concatenate(labels))
    if len(scores) == 1:
        draws = draw_means(scores[0], numbers[0], options.n_resamples, seeds[0])
        return PooledMeans(values, draws, micro, draws, n, n_clusters)
    if n_clusters < sum(groups):  # a cluster spans domains: resample clusters over the whole bank
        draws, micro_draws = _unstratified(scores, labels, options)
        return PooledMeans(values, draws, micro, micro_draws, n, n_clusters)
    # By the earlier rules a domain of one item leaves no interval; else it stays as it is in every
    # draw.
    if min(groups) < 2 and not options.simultaneous:
        return PooledMeans(values, None, micro, None, n, n_clusters)
    draws = np.zeros((options.n_resamples, len(members)))
    micro_draws = np.zeros_like(draws)
    for h, (part, number, seed) in enumerate(zip(scores, numbers, seeds, strict=True)):
        draws_of_part = draw_means(part, number, options.n_resamples, seed)
        stretched = (
            draws_of_part if groups[h] < 2 else stretch(draws_of_part, domain_means[h], groups[h])
        )
        draws += stretched / len(scores)
        micro_draws += stretched * (sizes[h] / sizes.sum())
    return PooledMeans(values, draws, micro, micro_draws, n, n_clusters)


def stretch(draws: Floats, means: Floats, groups: int) -> Floats:
    """Return draws of one domain stretched about its mean by √(G/(G−1)).

    The plain stratified bootstrap loses the factor (G−1)/G of the variance in every domain.

    References
    ----------
    Rao and Wu (1988), J. Am. Stat. Assoc. 83:231-241, doi:10.1080/01621459.1988.10478591.
    """
    stretched: Floats = means + sqrt(groups / (groups - 1)) * (draws - means)
    return stretched


def _unstratified(
    scores: list[Floats], labels: list[NDArray[np.int64]], options: Options
) -> tuple[Floats, Floats]:
    joined = number_clusters(np.concatenate(labels))
    if joined is None:
        raise StatisticError("no cluster spans two domains")
    indices = np.split(joined, np.cumsum([len(names) for names in labels])[:-1])
    n_clusters = int(joined.max()) + 1
    sums, sizes = [], []
    for part, index in zip(scores, indices, strict=True):
        means = np.zeros((n_clusters, part.shape[1]))
        np.add.at(means, index, part)
        sums.append(means)
        sizes.append(np.bincount(index, minlength=n_clusters).astype(np.float64))
    macro, micro = [], []
    for counts in count_rows(n_clusters, options.n_resamples, options.pool_seed):
        tops = [counts @ s for s in sums]
        bottoms = [counts @ s for s in sizes]
        with np.errstate(
            invalid="ignore"
        ):  # a domain may be empty in a draw: it is left out of that draw
            macro.append(
                np.nanmean([t / b[:, None] for t, b in zip(tops, bottoms, strict=True)], axis=0)
            )
        # Never the empty sum.
        micro.append(sum(tops) / sum(bottoms)[:, None])  # type: ignore[index]
    return np.concatenate(macro), np.concatenate(micro)


def stratified_spread(
    scores: Sequence[Floats], clusters: Sequence[NDArray[np.int64] | None]
) -> tuple[float, float, float] | None:
    """Return (macro mean, its variance, Satterthwaite's degrees of freedom).

    None when a domain has a single item or cluster. The degrees of freedom are infinite when the
    variance is 0.

    References
    ----------
    Satterthwaite (1946), Biometrics Bulletin 2:110-114, doi:10.2307/3002019.
    """
    parts = []
    for values, numbers in zip(scores, clusters, strict=True):
        groups = len(values) if numbers is None else int(numbers.max()) + 1
        if groups < 2:
            return None
        each = np.arange(len(values)) if numbers is None else numbers
        parts.append(
            (
                linearised_se(values, each) ** 2 * groups / (groups - 1) / len(scores) ** 2,
                groups,
            )
        )
    variance = sum(part for part, _ in parts)
    mean = float(np.mean([values.mean() for values in scores]))
    if variance <= TIE**2:
        return mean, 0.0, np.inf
    return mean, variance, variance**2 / sum(part**2 / (groups - 1) for part, groups in parts)


def stratified_t(
    scores: Sequence[Floats],
    clusters: Sequence[NDArray[np.int64] | None],
    *,
    scale: Scale,
    level: float = 0.95,
) -> Second | None:
    """Return macro mean ± t·SE, clipped on [0, 1].

    Where the scores are constant in every domain, Wilson's interval on the sum if the scale is [0,
    1], otherwise None.
    """
    from scipy.special import stdtrit

    spread = stratified_spread(scores, clusters)
    unit = scale.unit
    if spread is None or (spread[1] == 0 and not unit):
        return None
    mean, variance, freedom = spread
    if variance == 0:
        n = sum(len(values) for values in scores)
        lo, hi = wilson_interval(mean * n, n, level=level)
        return Second(method="wilson", lo=lo, hi=hi)
    half = float(stdtrit(freedom, (1 + level) / 2)) * sqrt(variance)
    lo, hi = mean - half, mean + half
    return Second(
        method="stratified_t", lo=max(0.0, lo) if unit else lo, hi=min(1.0, hi) if unit else hi
    )
