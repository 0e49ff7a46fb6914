"""A whole field of models in one domain and mode (or pooled over domains): estimates, ranks, pairs.

Source: specification of statistics, 7.2–7.5b; what it leaves open (the second interval and the
paired test of a pool) is decided in `docs/decisions/0002-pooled-intervals.md`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.core.records.estimate import Estimate, Second
from medassay.core.records.trial import RowKey
from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats, count_clusters, number_clusters
from medassay.statistic.interval.bootstrap import (
    SMALL_N,
    TIE,
    clipped,
    interval_flags,
    percentile,
    second_interval,
)
from medassay.statistic.interval.effective import effective_interval, effective_number
from medassay.statistic.ranking.oracle import Oracle, oracle
from medassay.statistic.ranking.pairs import (
    Pair,
    Pairs,
    RankedRows,
    board_of,
    pairs_of,
    pairs_of_board,
)
from medassay.statistic.ranking.pool import (
    Options,
    PooledMeans,
    Stratum,
    means_of,
    stratified_t,
)
from medassay.statistic.ranking.relation import Relation
from medassay.statistic.ranking.shared import Bools, Rank, separated, shared_ranks

REVISION = 1

MIN_COVERAGE = 0.9
ALL_PAIRS_UP_TO = 200
FEW_GRADED = 50  # items; below, the order of graded scores is approximate


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a field. `estimate` is None when there is no honest interval; `rank.reason` says
    why.

    `used` are the items that the row is scored on, over the strata. `marks` are what readers must
    know of the rank.
    """

    row: RowKey
    estimate: Estimate | None
    micro: Estimate | None
    rank: Rank
    coverage: float
    n_own: int
    used: Bools
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Field:
    """All rows of one ranking with what holds between them.

    `ranked` are the places of the ranked rows among all. By the rule "simultaneous"
    `ranges` is true: ranks are ranges, from the `relation` among the ranked rows on their common
    items (None where there is none), and `small_domains` names the domains of a pool with fewer
    than 10 items or clusters, with their items.
    """

    standings: tuple[Standing, ...]
    n_items: int
    n_common: int
    common_share: float
    not_common: bool
    leader_changes_with_nulls: bool
    c: float | None
    simultaneous_ranges: Mapping[RowKey, tuple[int, int]]
    pairs: tuple[Pair, ...]
    oracle: Oracle | None
    ranked: tuple[int, ...] = ()
    ranges: bool = False
    n_domains: int = 1
    relation: Relation | None = None
    graded: bool = False
    small_domains: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def field_of(
    rows: Sequence[RowKey],
    strata: Sequence[Stratum],
    options: Options,
    *,
    unranked: Mapping[RowKey, str] | None = None,
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
    reasons = dict(unranked or {})
    present: list[Bools] = [~np.isnan(s.scores) for s in strata]
    total = sum(p.shape[1] for p in present)
    n_own = np.array([sum(int(p[i].sum()) for p in present) for i in range(len(rows))])
    coverage = n_own / total
    eligible = [
        i for i in range(len(rows)) if rows[i] not in reasons and coverage[i] >= MIN_COVERAGE
    ]
    # Only rows that may rank decide what is common: else one model with many failed calls would
    # take items away from all others.
    among = eligible or list(range(len(rows)))
    common: list[Bools] = [np.asarray(p[among].all(axis=0)) for p in present]
    n_common = sum(int(mask.sum()) for mask in common)
    not_common = n_common / total < MIN_COVERAGE
    masks = {i: _masks(i, present, common, not_common=not_common) for i in range(len(rows))}
    estimates, micros, means_of_group = _estimates(strata, masks, options)
    estimates = [
        _with_bounds(e, i, strata, present, options.scale) for i, e in enumerate(estimates)
    ]
    # Draws of a pool are stretched, and single scores may lie below the scale: no mean does.
    estimates, micros = (
        [None if e is None else clipped(e, options.scale) for e in group]
        for group in (estimates, micros)
    )
    reason_of = _reasons(rows, estimates, coverage, reasons)
    small = _small_domains(strata, common) if options.simultaneous else {}
    board = None
    if options.simultaneous:
        reason_of |= _board_reasons(rows, reason_of, strata, common, small, options)
    ranked = [i for i in range(len(rows)) if i not in reason_of]
    compared = Pairs(pairs=(), c=None, ranges={})
    # Drawing is most of the work: where the ranked rows are one group on the common items, once.
    is_one_group = bool(ranked) and masks[ranked[0]] is common
    compared_rows = RankedRows(
        rows=rows,
        strata=strata,
        ranked=ranked,
        present=present,
        common=common if options.simultaneous or not not_common else None,
        options=options,
        means=means_of_group.get(tuple(ranked)) if is_one_group else None,
    )
    has_pairs = all_pairs and 2 <= len(ranked) <= ALL_PAIRS_UP_TO
    if options.simultaneous:
        board = board_of(compared_rows, step_down=all_pairs or len(ranked) <= ALL_PAIRS_UP_TO)
        board_ranks = board.ranks
        if has_pairs:
            compared = pairs_of_board(compared_rows, board)
    else:
        board_ranks, above = _ranks(rows, estimates, ranked, options)
        if has_pairs:
            compared = pairs_of(compared_rows, above)
    ranks = [
        (
            board_ranks[i]
            if i in board_ranks
            else Rank(rank=None, lo=None, hi=None, group=None, reason=reason_of[i])
        )
        for i in range(len(rows))
    ]
    graded = board is not None and not board.binary
    marks = _marks(strata, common, small, graded=graded) if options.simultaneous else ()
    bound = n_common > 0 and len(ranked) > 1
    return Field(
        standings=tuple(
            Standing(
                row=row,
                estimate=e,
                micro=m,
                rank=r,
                coverage=float(c),
                n_own=int(n),
                used=np.concatenate(masks[i]),
                marks=marks if i in board_ranks else (),
            )
            for i, (row, e, m, r, c, n) in enumerate(
                zip(rows, estimates, micros, ranks, coverage, n_own, strict=True)
            )
        ),
        n_items=total,
        n_common=n_common,
        common_share=n_common / total,
        not_common=not_common,
        leader_changes_with_nulls=_leader_changes(estimates, ranked, options.scale),
        c=compared.c,
        simultaneous_ranges=compared.ranges,
        pairs=compared.pairs,
        oracle=_oracle(strata, ranked, common, options) if bound else None,
        ranked=tuple(ranked),
        ranges=options.simultaneous,
        n_domains=sum(bool(mask.any()) for mask in common),
        relation=None if board is None else board.relation,
        graded=graded,
        small_domains=small,
    )


def _small_domains(strata: Sequence[Stratum], common: list[Bools]) -> dict[str, tuple[int, int]]:
    """Return the domains of a pool that have fewer than 10 items or clusters in common, with the
    numbers of both.
    """
    if len(strata) == 1:
        return {}
    counted = {
        stratum.name: (int(mask.sum()), count_clusters(stratum.clusters[mask]))
        for stratum, mask in zip(strata, common, strict=True)
        if mask.any()  # one without a common item is no part of the mean
    }
    return {name: counts for name, counts in counted.items() if counts[1] < SMALL_N}


def _board_reasons(
    rows: Sequence[RowKey],
    reasons: Mapping[int, str],
    strata: Sequence[Stratum],
    common: list[Bools],
    small: Mapping[str, tuple[int, int]],
    options: Options,
) -> dict[int, str]:
    """Return why no row is ranked, where the items that all have in common are too few."""
    clusters = np.concatenate([s.clusters[m] for s, m in zip(strata, common, strict=True)])
    if count_clusters(clusters) < SMALL_N:
        reason = "too_few_items"
    elif small and options.pooled_small == "exclude":
        reason = "small_domain"
    else:
        return {}
    return {i: reason for i in range(len(rows)) if i not in reasons}


def _marks(
    strata: Sequence[Stratum],
    common: list[Bools],
    small: Mapping[str, tuple[int, int]],
    *,
    graded: bool,
) -> tuple[str, ...]:
    sizes = [
        np.unique(stratum.clusters[mask], return_counts=True)[1].tolist()
        for stratum, mask in zip(strata, common, strict=True)
        if mask.any()
    ]
    marks = []
    if sizes and effective_number(sizes) < SMALL_N:
        marks.append("few_effective")
    if small:
        marks.append("small_domain")
    if graded and sum(int(mask.sum()) for mask in common) < FEW_GRADED:
        marks.append("few_graded")
    return tuple(marks)


def _masks(i: int, present: list[Bools], common: list[Bools], *, not_common: bool) -> list[Bools]:
    """Return the items row i is scored on: the common ones where it has them all, else its own."""
    on_common = not not_common and all(
        bool(p[i][mask].all()) for p, mask in zip(present, common, strict=True)
    )
    return common if on_common else [p[i] for p in present]


def _estimates(
    strata: Sequence[Stratum], masks: Mapping[int, list[Bools]], options: Options
) -> tuple[list[Estimate | None], list[Estimate | None], Mapping[tuple[int, ...], PooledMeans]]:
    """Return macro and micro estimates of every row, and the means of each group of rows scored on
    the same items, which share draws.
    """
    alike: dict[bytes, list[int]] = {}
    for i, mask in masks.items():
        alike.setdefault(b"".join(m.tobytes() for m in mask), []).append(i)
    estimates: list[Estimate | None] = [None] * len(masks)
    micros: list[Estimate | None] = [None] * len(masks)
    means_of_group: dict[tuple[int, ...], PooledMeans] = {}
    for members in alike.values():
        mask = masks[members[0]]
        if not any(m.any() for m in mask):
            continue
        means = means_of_group[tuple(members)] = means_of(strata, members, mask, options)
        if options.simultaneous:
            made_rows = _printed(strata, members, mask, means, options)
            for i, (macro, mean_of_items) in zip(members, made_rows, strict=True):
                estimates[i], micros[i] = macro, mean_of_items
            continue
        if means.draws is None or means.micro_draws is None:
            continue
        lo, hi = percentile(means.draws, options.level)
        micro_lo, micro_hi = percentile(means.micro_draws, options.level)
        for k, i in enumerate(members):
            second = _second(strata, i, mask, means.draws[:, k], options)
            estimate = Estimate(
                value=float(means.values[k]),
                lo=float(lo[k]),
                hi=float(hi[k]),
                n=means.n,
                n_clusters=means.n_clusters,
                level=options.level,
                second=second,
            )
            n = min(means.n, means.n_clusters)
            flags = interval_flags(estimate.lo, estimate.hi, second, n, options.scale)
            estimates[i] = replace(estimate, flags=tuple(flags))
            if len(strata) > 1:
                micros[i] = replace(
                    estimate,
                    value=float(means.micro[k]),
                    lo=float(micro_lo[k]),
                    hi=float(micro_hi[k]),
                    second=None,
                )
    return estimates, micros, means_of_group


def _printed(
    strata: Sequence[Stratum],
    members: Sequence[int],
    masks: list[Bools],
    means: PooledMeans,
    options: Options,
) -> Iterator[tuple[Estimate | None, Estimate | None]]:
    """Yield macro and micro mean of some rows with the score interval.

    The percentile interval is the second one.
    """
    pairs = [(s, m) for s, m in zip(strata, masks, strict=True) if m.any()]
    labels = [s.clusters[m] for s, m in pairs]
    numbers = [number_clusters(label) for label in labels]
    apart = sum(count_clusters(label) for label in labels)
    spanning = number_clusters(np.concatenate(labels)) if means.n_clusters < apart else None
    weights = [None, [len(label) / means.n for label in labels]]
    bands = [
        None if draws is None else percentile(draws, options.level)
        for draws in (means.draws, means.micro_draws)
    ]
    flags = ("small_n",) if min(means.n, means.n_clusters) < SMALL_N else ()
    for k, i in enumerate(members):
        domains = [(s.scores[i][m], n) for (s, m), n in zip(pairs, numbers, strict=True)]
        printed: list[Estimate | None] = []
        for share, band in zip(weights, bands, strict=True):
            interval = effective_interval(
                domains,
                scale=options.scale,
                weights=share,
                spanning=spanning,
                level=options.level,
            )
            second = None
            if band is not None:
                lo, hi = band
                second = Second(method="percentile", lo=float(lo[k]), hi=float(hi[k]))
            printed.append(
                None
                if interval.ends is None
                else Estimate(
                    value=interval.mean,
                    lo=interval.ends[0],
                    hi=interval.ends[1],
                    n=means.n,
                    n_clusters=means.n_clusters,
                    level=options.level,
                    second=second,
                    flags=flags,
                    interval=interval.method,
                )
            )
            if len(strata) == 1:
                printed.append(None)
                break
        yield printed[0], printed[1]


def _second(
    strata: Sequence[Stratum], i: int, masks: list[Bools], draws: Floats, options: Options
) -> Second | None:
    pairs = [(s, m) for s, m in zip(strata, masks, strict=True) if m.any()]
    scores = [s.scores[i][m] for s, m in pairs]
    numbers = [number_clusters(s.clusters[m]) for s, m in pairs]
    if len(pairs) > 1:
        return stratified_t(scores, numbers, scale=options.scale, level=options.level)
    return second_interval(scores[0], numbers[0], draws, scale=options.scale, level=options.level)


def _with_bounds(
    estimate: Estimate | None,
    i: int,
    strata: Sequence[Stratum],
    present: list[Bools],
    scale: Scale,
) -> Estimate | None:
    """Return the estimate with its coverage and, if any row has a null, its bounds over all
    items.
    """
    if estimate is None or all(p.all() for p in present):
        return estimate
    bounds = []
    least = [scale.lo if s.lowest is None else s.lowest for s in strata]
    for fills in (least, [scale.hi] * len(strata)):
        filled = [
            np.where(p[i], s.scores[i], fill).mean()
            for s, p, fill in zip(strata, present, fills, strict=True)
        ]
        bounds.append(float(np.mean(filled)))
    low, high = (
        # A scale may have no end on one side: what a null might be is not bounded then.
        bound if math.isfinite(bound) else None
        for bound in (bounds if scale.better == "high" else bounds[::-1])
    )
    coverage = sum(int(p[i].sum()) for p in present) / sum(p.shape[1] for p in present)
    return replace(estimate, coverage=coverage, worst=low, best=high)


def _reasons(
    rows: Sequence[RowKey],
    estimates: list[Estimate | None],
    coverage: Floats,
    unranked: Mapping[RowKey, str],
) -> dict[int, str]:
    """Return why rows are not ranked, by their place."""
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
    return reasons


def _ranks(
    rows: Sequence[RowKey],
    estimates: list[Estimate | None],
    ranked: Sequence[int],
    options: Options,
) -> tuple[dict[int, Rank], Bools]:
    """Return the rank of every ranked row by whether intervals overlap, and the separation among
    them.
    """
    known_estimates = [e for i in ranked if (e := estimates[i]) is not None]
    better = options.scale.better
    above: Bools = np.zeros((0, 0), dtype=np.bool_)
    if known_estimates:
        above = separated(
            known_estimates,
            better=better,
            percentile_only=options.percentile_only,
            touching=options.touching,
        )
    names = [f"{rows[i][0]}\x1f{rows[i][1]}" for i in ranked]
    values = [e.value for e in known_estimates]
    ranks_by_rule = shared_ranks(names, values, above, rule=options.rule, better=better)
    return dict(zip(ranked, ranks_by_rule, strict=True)), above


def _leader_changes(estimates: list[Estimate | None], ranked: list[int], scale: Scale) -> bool:
    known_estimates = [e for i in ranked if (e := estimates[i]) is not None]
    if not any(e.best is not None for e in known_estimates):
        return False
    sign = 1.0 if scale.better == "high" else -1.0
    leader = max(known_estimates, key=lambda e: sign * e.value)
    floor = leader.value if leader.worst is None else leader.worst
    if leader.worst is None and leader.best is not None:  # its nulls may be however bad
        floor = -sign * math.inf
    others = [e.value if e.best is None else e.best for e in known_estimates if e is not leader]
    return any(sign * other > sign * floor + TIE for other in others)


def _oracle(
    strata: Sequence[Stratum], ranked: list[int], common: list[Bools], options: Options
) -> Oracle:
    scores = np.concatenate(
        [s.scores[ranked][:, m] for s, m in zip(strata, common, strict=True)], axis=1
    )
    numbers = np.concatenate([s.clusters[m] for s, m in zip(strata, common, strict=True)])
    scale = options.scale
    if scale.better == "low":
        scores, scale = -scores, Scale(lo=-scale.hi, hi=-scale.least)
    seed = strata[0].seed if len(strata) == 1 else options.pool_seed
    return oracle(scores, seed=seed, n_resamples=options.n_resamples, clusters=numbers, scale=scale)
