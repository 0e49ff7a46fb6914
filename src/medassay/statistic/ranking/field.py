"""A whole field of models in one domain and mode (or pooled over domains): estimates, ranks, pairs.

Source: specification of statistics, 7.2–7.5b; what it leaves open (the second interval and the
paired test of a pool) is decided in `docs/decisions/0002-pooled-intervals.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from medassay.core.estimate import Estimate, Second
from medassay.core.trial import Scale
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats, cluster_sums, count_rows, draw_means, number_clusters
from medassay.statistic.interval.bootstrap import (
    SMALL_N,
    TIE,
    interval_flags,
    percentile,
    second_interval,
)
from medassay.statistic.interval.cluster import linearised_se
from medassay.statistic.interval.wilson import wilson_interval
from medassay.statistic.ranking.oracle import Oracle, oracle
from medassay.statistic.ranking.shared import Bools, Rank, Rule, rank_sets, separated, shared_ranks
from medassay.statistic.ranking.simultaneous import difference_norms, simultaneous_order
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import Difference, difference_from_draws

MIN_COVERAGE = 0.9
ALL_PAIRS_UP_TO = 200
Row = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """Scores of one domain: shape (n_rows, n_items), NaN where null; items sorted by id.

    `clusters` numbers the cluster of each item; numbers are unique over all strata, and an item
    without a cluster has a number of its own.
    """

    name: str
    scores: Floats
    clusters: NDArray[np.int64]
    seed: int


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One row of a field. `estimate` is None when there is no honest interval; `reason` says why."""

    row: Row
    estimate: Estimate | None
    micro: Estimate | None
    rank: Rank
    coverage: float
    n_own: int


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two ranked rows compared on their common items, first minus second."""

    first: Row
    second: Row
    difference: Difference
    p_holm: float
    p_max_t: float | None
    separated: bool
    ordered: bool | None

    @property
    def note(self) -> str:
        """Return what to print where bands and paired evidence disagree."""
        if self.ordered and not self.separated:
            return "supported by paired evidence although the bands overlap"
        if self.separated and self.ordered is False:
            return "bands apart, not confirmed by the simultaneous paired test"
        return ""


@dataclass(frozen=True, kw_only=True)
class Field:
    """All rows of one ranking with what holds between them."""

    standings: tuple[Standing, ...]
    n_items: int
    n_common: int
    common_share: float
    not_common: bool
    leader_changes_with_nulls: bool
    c: float | None
    simultaneous_ranges: Mapping[Row, tuple[int, int]]
    pairs: tuple[Pair, ...]
    oracle: Oracle | None


@dataclass(frozen=True)
class _Options:
    scale: Scale
    n_resamples: int
    level: float
    pool_seed: int


@dataclass(frozen=True)
class _Means:
    """Means and draws of some rows over the same items of every stratum."""

    values: Floats  # (k,)
    draws: Floats | None  # (n_resamples, k); None when a domain has one item
    micro: Floats
    micro_draws: Floats | None
    n: int
    n_clusters: int


def field_of(
    rows: Sequence[Row],
    strata: Sequence[Stratum],
    *,
    pool_seed: int,
    unranked: Mapping[Row, str] = {},  # noqa: B006 -- never changed
    scale: Scale = Scale(),  # noqa: B008 -- frozen
    rule: Rule = "leader",
    percentile_only: bool = False,
    n_resamples: int = 1000,
    level: float = 0.95,
    all_pairs: bool = True,
) -> Field:
    """Return the field of `rows` over `strata`; with several strata, the macro mean over them.

    Parameters
    ----------
    rows : (model, setting) names, in the order of the score matrices
    unranked : rows that never rank (baselines, scripted models), with the reason
    all_pairs : whether pairs and the simultaneous order are computed (never above 200 ranked rows)

    Raises
    ------
    StatisticError
        If there is no row or no item.
    """
    if not rows or not strata or not sum(s.scores.shape[1] for s in strata):
        raise StatisticError("a ranking needs at least one row and one item")
    options = _Options(scale, n_resamples, level, pool_seed)
    present = [~np.isnan(s.scores) for s in strata]
    total = sum(p.shape[1] for p in present)
    own = np.array([sum(int(p[i].sum()) for p in present) for i in range(len(rows))])
    coverage = own / total
    eligible = [i for i in range(len(rows)) if rows[i] not in unranked and coverage[i] >= MIN_COVERAGE]
    among = eligible or list(range(len(rows)))
    common = [p[among].all(axis=0) for p in present]
    n_common = sum(int(mask.sum()) for mask in common)
    not_common = n_common / total < MIN_COVERAGE
    masks = {i: _masks(i, present, common, not_common=not_common) for i in range(len(rows))}
    estimates, micros = _estimates(strata, masks, own, options)
    estimates = [_with_bounds(e, i, strata, present, scale, coverage[i]) for i, e in enumerate(estimates)]
    ranks, ranked, above = _ranks(rows, estimates, coverage, unranked, rule, percentile_only, scale)
    standings = tuple(
        Standing(row=rows[i], estimate=estimates[i], micro=micros[i], rank=ranks[i],
                 coverage=float(coverage[i]), n_own=int(own[i]))
        for i in range(len(rows))
    )
    pairs: tuple[Pair, ...] = ()
    c, ranges = None, {}
    if all_pairs and 2 <= len(ranked) <= ALL_PAIRS_UP_TO:
        pairs, c, ranges = _pairs(rows, strata, ranked, above, present, common, not_common, options)
    return Field(
        standings=standings,
        n_items=total,
        n_common=n_common,
        common_share=n_common / total,
        not_common=not_common,
        leader_changes_with_nulls=_leader_changes(estimates, ranked, scale),
        c=c,
        simultaneous_ranges=ranges,
        pairs=pairs,
        oracle=_oracle(strata, ranked, common, options) if n_common and len(ranked) > 1 else None,
    )


def _masks(i: int, present: list[Bools], common: list[Bools], *, not_common: bool) -> list[Bools]:
    """Return the items row i is scored on: the common ones where it has them all, else its own."""
    on_common = not not_common and all(
        bool(p[i][mask].all()) for p, mask in zip(present, common, strict=True)
    )
    return common if on_common else [p[i] for p in present]


def _estimates(
    strata: Sequence[Stratum], masks: Mapping[int, list[Bools]], own: NDArray[np.int64], options: _Options
) -> tuple[list[Estimate | None], list[Estimate | None]]:
    alike: dict[bytes, list[int]] = {}
    for i, mask in masks.items():
        alike.setdefault(b"".join(m.tobytes() for m in mask), []).append(i)
    estimates: list[Estimate | None] = [None] * len(masks)
    micros: list[Estimate | None] = [None] * len(masks)
    for members in alike.values():
        mask = masks[members[0]]
        if all(not m.any() for m in mask):
            continue
        means = _means(strata, members, mask, options)
        if means.draws is None or means.micro_draws is None:
            continue
        bands = [percentile(d, options.level) for d in (means.draws, means.micro_draws)]
        for k, i in enumerate(members):
            kept = [s.scores[i][m] for s, m in zip(strata, mask, strict=True) if m.any()]
            numbers = [number_clusters(s.clusters[m]) for s, m in zip(strata, mask, strict=True) if m.any()]
            if len(kept) == 1:
                second = second_interval(
                    kept[0], numbers[0], means.draws[:, k], scale=options.scale, level=options.level
                )
            else:
                second = stratified_t(kept, numbers, scale=options.scale, level=options.level)
            lo, hi = float(bands[0][0][k]), float(bands[0][1][k])
            made = Estimate(
                value=float(means.values[k]), lo=lo, hi=hi, n=means.n, n_clusters=means.n_clusters,
                level=options.level, second=second,
                flags=tuple(interval_flags(lo, hi, second, min(means.n, means.n_clusters), options.scale)),
            )
            estimates[i] = made
            if len(strata) > 1:
                micro_lo, micro_hi = float(bands[1][0][k]), float(bands[1][1][k])
                micros[i] = replace(made, value=float(means.micro[k]), lo=micro_lo, hi=micro_hi, second=None, flags=())
    return estimates, micros


def _means(strata: Sequence[Stratum], members: list[int], masks: list[Bools], options: _Options) -> _Means:
    scores, numbers, seeds, labels = [], [], [], []
    for stratum, mask in zip(strata, masks, strict=True):
        if mask.any():
            scores.append(stratum.scores[members][:, mask].T)
            labels.append(stratum.clusters[mask])
            numbers.append(number_clusters(labels[-1]))
            seeds.append(stratum.seed)
    sizes = np.array([len(s) for s in scores], dtype=np.float64)
    groups = [len(np.unique(names)) for names in labels]
    domain_means = np.array([s.mean(axis=0) for s in scores])
    values, micro = domain_means.mean(axis=0), (sizes @ domain_means) / sizes.sum()
    n, n_clusters = int(sizes.sum()), len(np.unique(np.concatenate(labels)))
    if len(scores) == 1:
        draws = draw_means(scores[0], numbers[0], options.n_resamples, seeds[0])
        return _Means(values, draws, micro, draws, n, n_clusters)
    if n_clusters < sum(groups):  # a cluster spans domains: resample clusters over the whole bank
        draws, micro_draws = _unstratified(scores, labels, options)
        return _Means(values, draws, micro, micro_draws, n, n_clusters)
    if min(groups) < 2:
        return _Means(values, None, micro, None, n, n_clusters)
    draws = np.zeros((options.n_resamples, len(members)))
    micro_draws = np.zeros_like(draws)
    for h, (part, number, seed) in enumerate(zip(scores, numbers, seeds, strict=True)):
        drawn = draw_means(part, number, options.n_resamples, seed)
        stretched = stretch(drawn, domain_means[h], groups[h])
        draws += stretched / len(scores)
        micro_draws += stretched * (sizes[h] / sizes.sum())
    return _Means(values, draws, micro, micro_draws, n, n_clusters)


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
    scores: list[Floats], labels: list[NDArray[np.int64]], options: _Options
) -> tuple[Floats, Floats]:
    joined = number_clusters(np.concatenate(labels))
    if joined is None:
        raise StatisticError("no cluster spans two domains")
    indices = np.split(joined, np.cumsum([len(names) for names in labels])[:-1])
    n_clusters = int(joined.max()) + 1
    sums, sizes = [], []
    for part, index in zip(scores, indices, strict=True):
        made = np.zeros((n_clusters, part.shape[1]))
        np.add.at(made, index, part)
        sums.append(made)
        sizes.append(np.bincount(index, minlength=n_clusters).astype(np.float64))
    macro, micro = [], []
    for counts in count_rows(n_clusters, options.n_resamples, options.pool_seed):
        tops = [counts @ s for s in sums]
        bottoms = [counts @ s for s in sizes]
        with np.errstate(invalid="ignore"):  # a domain may be empty in a draw: it is left out of that draw
            macro.append(np.nanmean([t / b[:, None] for t, b in zip(tops, bottoms, strict=True)], axis=0))
        micro.append(sum(tops) / sum(bottoms)[:, None])  # type: ignore[index]  # never the empty sum
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
        parts.append((linearised_se(values, each) ** 2 * groups / (groups - 1) / len(scores) ** 2, groups))
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

    Constant scores in every domain: Wilson on the sum where the scale is [0, 1], else None.
    """
    from scipy.special import stdtrit

    spread = stratified_spread(scores, clusters)
    unit = scale.lo == 0 and scale.hi == 1
    if spread is None or (spread[1] == 0 and not unit):
        return None
    mean, variance, freedom = spread
    if variance == 0:
        n = sum(len(values) for values in scores)
        lo, hi = wilson_interval(mean * n, n, level=level)
        return Second(method="wilson", lo=lo, hi=hi)
    half = float(stdtrit(freedom, (1 + level) / 2)) * sqrt(variance)
    lo, hi = mean - half, mean + half
    return Second(method="stratified_t", lo=max(0.0, lo) if unit else lo, hi=min(1.0, hi) if unit else hi)


def _pooled_difference(made: Difference, pairs: list[tuple[Floats, Floats]], clusters: list[NDArray[np.int64]]) -> Difference:
    """Return a difference of macro means, tested by the stratified t: McNemar would test the micro mean."""
    from scipy.special import stdtr

    numbers = [number_clusters(names) for names in clusters]
    spread = stratified_spread([a - b for a, b in pairs], numbers)
    outside = not (made.lo <= TIE and made.hi >= -TIE)
    if spread is None or spread[1] == 0:
        p = 1.0 if abs(made.value) <= TIE else made.p
    else:
        p = float(2 * stdtr(spread[2], -abs(spread[0]) / sqrt(spread[1])))
    return replace(made, p=p, test="stratified_t", different=outside and abs(made.value) > TIE)


def _with_bounds(
    estimate: Estimate | None, i: int, strata: Sequence[Stratum], present: list[Bools], scale: Scale, coverage: float
) -> Estimate | None:
    if estimate is None:
        return None
    if coverage == 1:
        return estimate
    bounds = []
    for fill in (scale.lo, scale.hi):
        filled = [np.where(p[i], s.scores[i], fill).mean() for s, p in zip(strata, present, strict=True)]
        bounds.append(float(np.mean(filled)))
    low, high = bounds if scale.better == "high" else bounds[::-1]
    return replace(estimate, coverage=float(coverage), worst=low, best=high)


def _ranks(
    rows: Sequence[Row], estimates: list[Estimate | None], coverage: Floats, unranked: Mapping[Row, str],
    rule: Rule, percentile_only: bool, scale: Scale,
) -> tuple[list[Rank], list[int], Bools]:
    reasons: dict[int, str] = {}
    for i, row in enumerate(rows):
        estimate = estimates[i]
        if row in unranked:
            reasons[i] = unranked[row]
        elif coverage[i] < MIN_COVERAGE:
            reasons[i] = "coverage"
        elif estimate is None:
            reasons[i] = "no_interval"
        elif min(estimate.n, estimate.n_clusters) < SMALL_N:
            reasons[i] = "too_few_items"
    ranked = [i for i in range(len(rows)) if i not in reasons]
    kept = [e for i in ranked if (e := estimates[i]) is not None]
    above = separated(kept, better=scale.better, percentile_only=percentile_only) if kept else np.zeros((0, 0), dtype=bool)
    names = [f"{rows[i][0]}\x1f{rows[i][1]}" for i in ranked]
    given = shared_ranks(names, [e.value for e in kept], above, rule=rule, better=scale.better)
    found = dict(zip(ranked, given, strict=True))
    ranks = [
        found[i] if i in found else Rank(rank=None, lo=None, hi=None, group=None, reason=reasons[i])
        for i in range(len(rows))
    ]
    return ranks, ranked, above


def _leader_changes(estimates: list[Estimate | None], ranked: list[int], scale: Scale) -> bool:
    kept = [e for i in ranked if (e := estimates[i]) is not None]
    if not any(e.best is not None for e in kept):
        return False
    sign = 1.0 if scale.better == "high" else -1.0
    leader = max(kept, key=lambda e: sign * e.value)
    floor = leader.value if leader.worst is None else leader.worst
    others = [e.value if e.best is None else e.best for e in kept if e is not leader]
    return any(sign * other > sign * floor + TIE for other in others)


def _pairs(
    rows: Sequence[Row], strata: Sequence[Stratum], ranked: list[int], above: Bools, present: list[Bools],
    common: list[Bools], not_common: bool, options: _Options,
) -> tuple[tuple[Pair, ...], float | None, dict[Row, tuple[int, int]]]:
    sign = 1.0 if options.scale.better == "high" else -1.0
    shared = None if not_common else _means(strata, ranked, common, options)
    order, ranges = None, {}
    if shared is not None and shared.draws is not None and min(shared.n, shared.n_clusters) >= SMALL_N:
        weights = []
        for stratum, mask in zip(strata, common, strict=True):
            if mask.any():
                part = stratum.scores[ranked][:, mask]
                numbers = number_clusters(stratum.clusters[mask])
                sums = part if numbers is None else cluster_sums(part.T, numbers)[0].T
                weights.append(sums / part.shape[1])
        norms = difference_norms(weights)
        order = simultaneous_order(sign * shared.values, sign * shared.draws, norms)
        best, worst = rank_sets(order.above)
        ranges = {rows[i]: (int(best[k]), int(worst[k])) for k, i in enumerate(ranked)}
    found: list[tuple[int, int, Difference]] = []
    for a, b in combinations(range(len(ranked)), 2):
        difference = _difference(strata, ranked, (a, b), present, common, shared, options)
        if difference is not None:
            found.append((a, b, difference))
    adjusted = holm([difference.p for *_, difference in found])
    pairs = tuple(
        Pair(
            first=rows[ranked[a]], second=rows[ranked[b]], difference=difference, p_holm=p,
            p_max_t=None if order is None else float(order.p_max_t[a, b]),
            separated=bool(above[a, b] or above[b, a]),
            ordered=None if order is None else bool(order.above[a, b] or order.above[b, a]),
        )
        for (a, b, difference), p in zip(found, adjusted, strict=True)
    )
    return pairs, None if order is None else order.c, ranges


def _difference(
    strata: Sequence[Stratum], ranked: list[int], pair: tuple[int, int], present: list[Bools],
    common: list[Bools], shared: _Means | None, options: _Options,
) -> Difference | None:
    a, b = pair
    masks = common if shared is not None else [p[ranked[a]] & p[ranked[b]] for p in present]
    means, columns = shared, (a, b)
    if means is None:
        if not any(mask.any() for mask in masks):
            return None
        means, columns = _means(strata, [ranked[a], ranked[b]], masks, options), (0, 1)
    if means.draws is None:
        return None
    draws = means.draws[:, columns[0]] - means.draws[:, columns[1]]
    kept = [(s, m) for s, m in zip(strata, masks, strict=True) if m.any()]
    first = np.concatenate([s.scores[ranked[a]][m] for s, m in kept])
    second = np.concatenate([s.scores[ranked[b]][m] for s, m in kept])
    numbers = number_clusters(np.concatenate([s.clusters[m] for s, m in kept]))
    made = difference_from_draws(first, second, draws, clusters=numbers, level=options.level)
    made = replace(made, value=float(means.values[columns[0]] - means.values[columns[1]]))
    if len(kept) == 1:
        return made
    parts = [(s.scores[ranked[a]][m], s.scores[ranked[b]][m]) for s, m in kept]
    return _pooled_difference(made, parts, [s.clusters[m] for s, m in kept])


def _oracle(strata: Sequence[Stratum], ranked: list[int], common: list[Bools], options: _Options) -> Oracle:
    scores = np.concatenate([s.scores[ranked][:, m] for s, m in zip(strata, common, strict=True)], axis=1)
    numbers = np.concatenate([s.clusters[m] for s, m in zip(strata, common, strict=True)])
    if options.scale.better == "low":
        scores = -scores
    seed = strata[0].seed if len(strata) == 1 else options.pool_seed
    return oracle(scores, seed=seed, n_resamples=options.n_resamples, clusters=numbers)
