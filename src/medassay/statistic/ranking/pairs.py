"""Pairs of ranked models on their common items: differences, tests, the simultaneous order."""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from medassay.core.records.trial import RowKey
from medassay.statistic.draws import Floats, cluster_sums, count_clusters, number_clusters
from medassay.statistic.interval.bootstrap import SMALL_N, TIE
from medassay.statistic.ranking.pool import (
    Options,
    PooledMeans,
    Stratum,
    means_of,
    stratified_spread,
)
from medassay.statistic.ranking.relation import Relation, range_ranks, relation_of, shown_better
from medassay.statistic.ranking.shared import Bools, Rank, rank_sets
from medassay.statistic.ranking.simultaneous import (
    SimultaneousOrder,
    difference_norms,
    simultaneous_order,
)
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import Difference, difference_from_draws
from medassay.statistic.test.planner import critical_value


class RankedRows(msgspec.Struct, frozen=True, kw_only=True):
    """What the ranked rows share: their places among all rows, which items they have, the options.

    `common` are the items that all of them have; None when they are too few, so that each pair is
    compared on its own common items (`present`, per domain a matrix of rows × items). `means` are
    those of the ranked rows on the common items, where they are there already.
    """

    rows: Sequence[RowKey]
    strata: Sequence[Stratum]
    ranked: list[int]
    present: list[Bools]
    common: list[Bools] | None
    options: Options
    means: PooledMeans | None = None


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs, the critical value c, and the ranges of the simultaneous order."""

    pairs: tuple["Pair", ...]
    c: float | None
    ranges: dict[RowKey, tuple[int, int]]


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two ranked rows compared on their `n` common items, first minus second.

    `se` is what the simultaneous order divides by; difference ± c·se is the simultaneous interval.
    By the rule "simultaneous" a pair has `better` ("first", "second", or "" where no difference is
    shown) in place of `separated` and `ordered`, and the ends of its simultaneous interval.
    """

    first: RowKey
    second: RowKey
    difference: Difference
    n: int
    p_holm: float
    p_max_t: float | None
    se: float | None
    separated: bool | None = None
    ordered: bool | None = None
    better: str | None = None
    ends: tuple[float, float] | None = None

    @property
    def note(self) -> str:
        """Return what to print where bands and paired evidence disagree."""
        if self.ordered and not self.separated:
            return "supported by paired evidence although the bands overlap"
        if self.separated and self.ordered is False:
            return "bands apart, not confirmed by the simultaneous paired test"
        return ""


class RankedPairs(msgspec.Struct, frozen=True, kw_only=True):
    """What holds among the ranked rows of a board: the relation, the rank of each by its place, and
    from what these were made.

    `binary` says whether all scores are right or wrong, `n` counts the common items.
    """

    relation: Relation | None
    ranks: dict[int, Rank]
    means: PooledMeans | None
    binary: bool
    n: int


def board_of(field: RankedRows, *, step_down: bool) -> RankedPairs:
    """Return relation and ranks of the ranked rows on the items that all of them have.

    Parameters
    ----------
    step_down : whether c is found by step-down; else it is Tukey's, which needs no draws of
        hundreds of thousands of pairs
    """
    common = field.common or []
    n = sum(int(mask.sum()) for mask in common)
    if not field.ranked or not n:
        return RankedPairs(relation=None, ranks={}, means=None, binary=False, n=n)
    means = field.means or means_of(field.strata, field.ranked, common, field.options)
    better = field.options.scale.better
    values = np.asarray(means.values)
    se = _norms(field, common)
    scale = field.options.scale
    parts = [s.scores[field.ranked][:, m] for s, m in zip(field.strata, common, strict=True)]
    binary = all(bool(np.isin(part, (scale.lo, scale.hi)).all()) for part in parts)
    clustered = any(
        number_clusters(s.clusters[m]) is not None
        for s, m in zip(field.strata, common, strict=True)
        if m.any()
    )
    clustered |= means.n_clusters < n
    # Right and wrong answers move a mean in steps of one item; the normal quantile knows nothing of
    # steps, so a difference must exceed it by one. Clusters and graded scores have no such step.
    kappa = (scale.hi - scale.lo) / n if binary and not clustered else 0.0
    if step_down and means.draws is not None:
        relation = relation_of(values, means.draws, se, kappa=kappa, better=better)
    else:
        c = critical_value(max(2, len(field.ranked)))
        better_shown = shown_better(values, se, kappa=kappa, c=c, better=better)
        relation = Relation(better=better_shown, se=se, kappa=kappa, steps=(), c=c)
    names = [f"{field.rows[i][0]}\x1f{field.rows[i][1]}" for i in field.ranked]
    ranks, _ = range_ranks(names, values, relation.better, better=better)
    return RankedPairs(
        relation=relation,
        ranks=dict(zip(field.ranked, ranks, strict=True)),
        means=means,
        binary=binary,
        n=n,
    )


def pairs_of_board(
    field: RankedRows, board: RankedPairs, rows_told: Sequence[int] | None = None
) -> Pairs:
    """Return every pair of ranked rows with what the board's relation says of it.

    Parameters
    ----------
    rows_told : places among the ranked rows of those whose pairs are wanted; None for all
    """
    relation = board.relation
    if relation is None or board.means is None:
        return Pairs(pairs=(), c=None, ranges={})
    differences: list[tuple[int, int, Difference, int]] = []
    for a, b in combinations(range(len(field.ranked)), 2):  # Holm's p is of the whole family
        pair_difference = _difference(field, board.means, a, b)
        if pair_difference is not None:
            differences.append((a, b, *pair_difference))
    adjusted = holm([difference.p for *_, difference, _ in differences])
    pairs = []
    for (a, b, difference, n), p in zip(differences, adjusted, strict=True):
        if rows_told is not None and not {a, b} <= {*rows_told}:
            continue
        se = float(relation.se[a, b])
        half = relation.kappa + relation.c * se
        above = "first" if relation.better[a, b] else ""
        pairs.append(
            Pair(
                first=field.rows[field.ranked[a]],
                second=field.rows[field.ranked[b]],
                difference=difference,
                n=n,
                p_holm=p,
                p_max_t=None,
                se=se,
                better="second" if relation.better[b, a] else above,
                ends=(difference.value - half, difference.value + half),
            )
        )
    return Pairs(pairs=tuple(pairs), c=relation.c, ranges={})


def pairs_of(field: RankedRows, above: Bools) -> Pairs:
    """Return every pair of ranked rows; `above` is the separation S among them."""
    shared = field.means
    if shared is None and field.common is not None:
        shared = means_of(field.strata, field.ranked, field.common, field.options)
    order, se = _order(field, shared)
    differences: list[tuple[int, int, tuple[Difference, int]]] = []
    for a, b in combinations(range(len(field.ranked)), 2):
        difference = _difference(field, shared, a, b)
        if difference is not None:
            differences.append((a, b, difference))
    adjusted = holm([difference.p for *_, (difference, _) in differences])
    pairs = tuple(
        Pair(
            first=field.rows[field.ranked[a]],
            second=field.rows[field.ranked[b]],
            difference=difference,
            n=n,
            p_holm=p,
            p_max_t=None if order is None else float(order.p_max_t[a, b]),
            se=None if se is None else float(se[a, b]),
            separated=bool(above[a, b] or above[b, a]),
            ordered=None if order is None else bool(order.above[a, b] or order.above[b, a]),
        )
        for (a, b, (difference, n)), p in zip(differences, adjusted, strict=True)
    )
    if order is None:
        return Pairs(pairs=pairs, c=None, ranges={})
    best, worst = rank_sets(order.above)
    ranges = {field.rows[i]: (int(best[k]), int(worst[k])) for k, i in enumerate(field.ranked)}
    return Pairs(pairs=pairs, c=order.c, ranges=ranges)


def _order(
    field: RankedRows, shared: PooledMeans | None
) -> tuple[SimultaneousOrder | None, Floats | None]:
    """Return P and its SE; None where it is not computed (7.2) or orders nothing (too few
    items).
    """
    if shared is None or shared.draws is None or field.common is None:
        return None, None
    if min(shared.n, shared.n_clusters) < SMALL_N:
        return None, None
    sign = 1.0 if field.options.scale.better == "high" else -1.0
    se = _norms(field, field.common)
    return simultaneous_order(sign * shared.values, sign * shared.draws, se), se


def _norms(field: RankedRows, common: list[Bools]) -> Floats:
    """Return SE of the difference of every two ranked rows, shape (n, n)."""
    weights: list[Floats] = []
    for stratum, mask in zip(field.strata, common, strict=True):
        if mask.any():
            part = stratum.scores[field.ranked][:, mask]
            numbers = number_clusters(stratum.clusters[mask])
            sums = part if numbers is None else cluster_sums(part.T, numbers)[0].T
            weights.append(sums / part.shape[1])
    return difference_norms(weights)


def _difference(
    field: RankedRows, shared: PooledMeans | None, a: int, b: int
) -> tuple[Difference, int] | None:
    """Return the difference of two ranked rows and its n, None without a common item or an
    interval.
    """
    first, second = field.ranked[a], field.ranked[b]
    masks = field.common
    means, columns = shared, (a, b)
    if means is None or masks is None:
        masks = [p[first] & p[second] for p in field.present]
        if not any(mask.any() for mask in masks):
            return None
        means, columns = means_of(field.strata, [first, second], masks, field.options), (0, 1)
    if means.draws is None:
        return None
    draws = means.draws[:, columns[0]] - means.draws[:, columns[1]]
    common_strata = [(s, m) for s, m in zip(field.strata, masks, strict=True) if m.any()]
    pairs = [(s.scores[first][m], s.scores[second][m]) for s, m in common_strata]
    clusters = [s.clusters[m] for s, m in common_strata]
    difference = difference_from_draws(
        np.concatenate([first_scores for first_scores, _ in pairs]),
        np.concatenate([other for _, other in pairs]),
        draws,
        clusters=number_clusters(np.concatenate(clusters)),
        level=field.options.level,
    )
    value = float(means.values[columns[0]] - means.values[columns[1]])
    difference = replace(difference, value=value)
    difference = (
        difference if len(common_strata) == 1 else _pooled_difference(difference, pairs, clusters)
    )
    return difference, means.n


def _pooled_difference(
    difference: Difference,
    pairs: list[tuple[Floats, Floats]],
    clusters: list[NDArray[np.int64]],
) -> Difference:
    """Return a difference of macro means, tested by the stratified t: McNemar would test the micro
    mean.
    """
    from scipy.special import stdtr

    outside = not (difference.lo <= TIE and difference.hi >= -TIE)
    apart = sum(count_clusters(names) for names in clusters)
    if (
        count_clusters(np.concatenate(clusters)) < apart
    ):  # domains share clusters: only the draws know
        different = outside and abs(difference.value) > TIE
        return replace(difference, p=difference.p_bootstrap, test="bootstrap", different=different)
    numbers = [number_clusters(names) for names in clusters]
    spread = stratified_spread([a - b for a, b in pairs], numbers)
    if spread is None or spread[1] == 0:
        p = 1.0 if abs(difference.value) <= TIE else difference.p
    else:
        p = float(2 * stdtr(spread[2], -abs(spread[0]) / sqrt(spread[1])))
    return replace(
        difference, p=p, test="stratified_t", different=outside and abs(difference.value) > TIE
    )
