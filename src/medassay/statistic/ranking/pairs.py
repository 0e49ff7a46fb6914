"""Pairs of ranked models on their common items: differences, tests, the simultaneous order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from medassay.statistic.draws import Floats, cluster_sums, number_clusters
from medassay.statistic.interval.bootstrap import SMALL_N, TIE
from medassay.statistic.ranking.pool import Means, Options, Stratum, means_of, stratified_spread
from medassay.statistic.ranking.shared import Bools, rank_sets
from medassay.statistic.ranking.simultaneous import (
    SimultaneousOrder,
    difference_norms,
    simultaneous_order,
)
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import Difference, difference_from_draws

Row = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What the ranked rows share: their places among all rows, which items they have, the options.

    `common` are the items that all of them have; None when they are too few, so that each pair is
    compared on its own common items (`present`, per domain a matrix of rows × items).
    """

    rows: Sequence[Row]
    strata: Sequence[Stratum]
    ranked: list[int]
    present: list[Bools]
    common: list[Bools] | None
    options: Options


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """All pairs, the critical value c, and the ranges of the simultaneous order."""

    pairs: tuple["Pair", ...]
    c: float | None
    ranges: dict[Row, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two ranked rows compared on their `n` common items, first minus second.

    `se` is what the simultaneous order divides by; difference ± c·se is the simultaneous interval.
    """

    first: Row
    second: Row
    difference: Difference
    n: int
    p_holm: float
    p_max_t: float | None
    se: float | None
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


def pairs_of(field: Compared, above: Bools) -> Pairs:
    """Return every pair of ranked rows; `above` is the separation S among them."""
    shared = None
    if field.common is not None:
        shared = means_of(field.strata, field.ranked, field.common, field.options)
    order, se = _order(field, shared)
    found: list[tuple[int, int, tuple[Difference, int]]] = []
    for a, b in combinations(range(len(field.ranked)), 2):
        difference = _difference(field, shared, a, b)
        if difference is not None:
            found.append((a, b, difference))
    adjusted = holm([difference.p for *_, (difference, _) in found])
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
        for (a, b, (difference, n)), p in zip(found, adjusted, strict=True)
    )
    if order is None:
        return Pairs(pairs=pairs, c=None, ranges={})
    best, worst = rank_sets(order.above)
    ranges = {field.rows[i]: (int(best[k]), int(worst[k])) for k, i in enumerate(field.ranked)}
    return Pairs(pairs=pairs, c=order.c, ranges=ranges)


def _order(
    field: Compared, shared: Means | None
) -> tuple[SimultaneousOrder | None, Floats | None]:
    """Return P and its SE; None where it is not computed (7.2) or orders nothing (too few items)."""
    if shared is None or shared.draws is None or field.common is None:
        return None, None
    if min(shared.n, shared.n_clusters) < SMALL_N:
        return None, None
    sign = 1.0 if field.options.scale.better == "high" else -1.0
    weights: list[Floats] = []
    for stratum, mask in zip(field.strata, field.common, strict=True):
        if mask.any():
            part = stratum.scores[field.ranked][:, mask]
            numbers = number_clusters(stratum.clusters[mask])
            sums = part if numbers is None else cluster_sums(part.T, numbers)[0].T
            weights.append(sums / part.shape[1])
    se = difference_norms(weights)
    return simultaneous_order(sign * shared.values, sign * shared.draws, se), se


def _difference(
    field: Compared, shared: Means | None, a: int, b: int
) -> tuple[Difference, int] | None:
    """Return the difference of two ranked rows and its n, None without a common item or an interval."""
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
    kept = [(s, m) for s, m in zip(field.strata, masks, strict=True) if m.any()]
    pairs = [(s.scores[first][m], s.scores[second][m]) for s, m in kept]
    clusters = [s.clusters[m] for s, m in kept]
    made = difference_from_draws(
        np.concatenate([one for one, _ in pairs]),
        np.concatenate([other for _, other in pairs]),
        draws,
        clusters=number_clusters(np.concatenate(clusters)),
        level=field.options.level,
    )
    value = float(means.values[columns[0]] - means.values[columns[1]])
    made = replace(made, value=value)
    made = made if len(kept) == 1 else _pooled_difference(made, pairs, clusters)
    return made, means.n


def _pooled_difference(
    made: Difference, pairs: list[tuple[Floats, Floats]], clusters: list[NDArray[np.int64]]
) -> Difference:
    """Return a difference of macro means, tested by the stratified t: McNemar would test the micro mean."""
    from scipy.special import stdtr

    outside = not (made.lo <= TIE and made.hi >= -TIE)
    apart = sum(len(np.unique(names)) for names in clusters)
    if (
        len(np.unique(np.concatenate(clusters))) < apart
    ):  # domains share clusters: only the draws know
        different = outside and abs(made.value) > TIE
        return replace(made, p=made.p_bootstrap, test="bootstrap", different=different)
    numbers = [number_clusters(names) for names in clusters]
    spread = stratified_spread([a - b for a, b in pairs], numbers)
    if spread is None or spread[1] == 0:
        p = 1.0 if abs(made.value) <= TIE else made.p
    else:
        p = float(2 * stdtr(spread[2], -abs(spread[0]) / sqrt(spread[1])))
    return replace(made, p=p, test="stratified_t", different=outside and abs(made.value) > TIE)
