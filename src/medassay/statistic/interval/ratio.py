"""Intervals of Σ numerators / Σ denominators: weighted means, whose weights are drawn with their
cases.

Cases may come from several domains: each is drawn by its own seed and stretched about its sums, as
the specification of statistics (7.2) asks for pools; clusters that span domains are drawn over all
of them.
"""

from collections.abc import Sequence
from functools import cached_property
from math import sqrt

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from medassay.core.records.estimate import Estimate, Second
from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.statistic.draws import (
    Floats,
    cluster_sums,
    count_clusters,
    count_rows,
    number_clusters,
)
from medassay.statistic.interval.bootstrap import (
    TIE,
    bca_ends,
    clipped,
    interval_flags,
    percentile,
    second_interval,
)
from medassay.statistic.interval.cluster import linearised_se
from medassay.statistic.interval.wilson import wilson_interval

REVISION = 1


class DrawnStratum(msgspec.Struct, frozen=True):
    """The cluster of each case of one domain (cases sorted by id), and the seed of the domain's
    draws.
    """

    clusters: NDArray[np.int64]
    seed: int


class Strata:
    """Cases of some domains, as they are drawn.

    Parameters
    ----------
    strata : domains with at least one case; cluster numbers are unique over all of them
    pool_seed : of draws over all domains, where a cluster spans several
    """

    def __init__(self, strata: Sequence[DrawnStratum], *, pool_seed: int, n_resamples: int) -> None:
        self._strata = [stratum for stratum in strata if len(stratum.clusters)]
        self._pool_seed = pool_seed
        self._n_resamples = n_resamples

    @cached_property
    def clusters(self) -> NDArray[np.int64] | None:
        """Return the cluster of each case over all domains, None if every case is its own."""
        return number_clusters(np.concatenate([s.clusters for s in self._strata]))

    @cached_property
    def n_clusters(self) -> int:
        """Return the number of clusters."""
        return count_clusters(np.concatenate([s.clusters for s in self._strata]))

    @cached_property
    def _groups(self) -> list[int]:
        return [count_clusters(stratum.clusters) for stratum in self._strata]

    @property
    def stratified(self) -> bool:
        """Return whether domains are drawn apart: there are several, and no cluster spans two."""
        return len(self._strata) > 1 and self.n_clusters == sum(self._groups)

    @property
    def has_interval(self) -> bool:
        """Return whether draws say anything: a domain of a pool with one cluster varies in no
        draw.
        """
        return bool(self._strata) and not (self.stratified and min(self._groups) < 2)

    def sums(self, columns: Floats) -> Floats:
        """Return the sum of every column in every draw, shape (n_resamples, n_columns).

        Parameters
        ----------
        columns : shape (n_cases, n_columns), cases in the order of the domains
        """
        if not self.has_interval:
            raise StatisticError("a domain of the pool has a single item: no interval")
        if not self.stratified:
            joined = len(self._strata) > 1
            seed = self._pool_seed if joined else self._strata[0].seed
            return resampled_sums(columns, self.clusters, self._n_resamples, seed)
        total = np.zeros((self._n_resamples, columns.shape[1]))
        for part, groups, stratum in zip(
            self._split(columns), self._groups, self._strata, strict=True
        ):
            numbers = number_clusters(stratum.clusters)
            domain_sums = resampled_sums(part, numbers, self._n_resamples, stratum.seed)
            sums = part.sum(axis=0)
            total += sums + sqrt(groups / (groups - 1)) * (domain_sums - sums)
        return total

    def spread(self, values: Floats) -> tuple[float, float]:
        """Return standard error and degrees of freedom of the plain mean of some values, one a
        case.

        Clusters count as one value; domains drawn apart add their variances, with Satterthwaite's
        degrees of freedom.
        """
        if not self.stratified:
            each = np.arange(len(values)) if self.clusters is None else self.clusters
            factor = sqrt(self.n_clusters / (self.n_clusters - 1))
            return linearised_se(values, each) * factor, float(self.n_clusters - 1)
        parts = []
        for own_residuals, groups, stratum in zip(
            self._split(values), self._groups, self._strata, strict=True
        ):
            numbers = number_clusters(stratum.clusters)
            each = np.arange(len(own_residuals)) if numbers is None else numbers
            share = len(own_residuals) / len(values)
            parts.append((share * linearised_se(own_residuals, each)) ** 2 * groups / (groups - 1))
        variance = sum(parts)
        pairs = zip(parts, self._groups, strict=True)
        below = sum(part**2 / (groups - 1) for part, groups in pairs)
        return sqrt(variance), variance**2 / below if below else np.inf

    def _split(self, columns: Floats) -> list[Floats]:
        ends = np.cumsum([len(stratum.clusters) for stratum in self._strata])
        return np.split(columns, ends[:-1])


def resampled_sums(
    columns: Floats, clusters: NDArray[np.int64] | None, n_resamples: int, seed: int
) -> Floats:
    """Return the sum of every column in every draw, shape (n_resamples, n_columns).

    Parameters
    ----------
    columns : shape (n_items, n_columns), items sorted by id
    clusters : number of each item's cluster; clusters are drawn whole
    """
    units = columns if clusters is None else cluster_sums(columns, clusters)[0]
    return np.concatenate([c @ units for c in count_rows(len(units), n_resamples, seed)])


def linearised(numerators: Floats, denominators: Floats) -> Floats:
    """Return one value an item, whose plain mean is the ratio and whose spread is that of the
    ratio.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., section 6.4.
    """
    value = numerators.sum() / denominators.sum()
    return np.asarray(value + (numerators - value * denominators) / denominators.mean())


def ratio_estimate(
    numerators: Floats,
    denominators: Floats,
    draws: Floats,
    strata: Strata,
    *,
    scale: Scale,
    level: float = 0.95,
) -> Estimate:
    """Estimate Σ numerators / Σ denominators from given draws of it, with both intervals.

    The second interval is BCa with a jackknife over items; with clusters or several domains mean ±
    t of the linearised ratio; of plain means in one domain (denominators 1) that of
    `second_interval`.
    """
    value = float(numerators.sum() / denominators.sum())
    lo, hi = (float(end) for end in percentile(draws, level))
    plain = bool(np.all(denominators == 1))
    if plain and not strata.stratified:
        second = second_interval(numerators, strata.clusters, draws, scale=scale, level=level)
    elif strata.clusters is None and not strata.stratified:
        second = _bca(value, numerators, denominators, draws, level)
    else:
        second = _by_t(linearised(numerators, denominators), strata, scale=scale, level=level)
    estimate = Estimate(
        value=value,
        lo=lo,
        hi=hi,
        n=len(numerators),
        n_clusters=strata.n_clusters,
        level=level,
        second=second,
    )
    shown_estimate = (
        clipped(estimate, scale) if strata.stratified else estimate
    )  # stretched draws leave the scale
    flags = interval_flags(
        shown_estimate.lo, shown_estimate.hi, shown_estimate.second, strata.n_clusters, scale
    )
    return replace(shown_estimate, flags=tuple(flags))


def _bca(
    value: float, numerators: Floats, denominators: Floats, draws: Floats, level: float
) -> Second | None:
    if len(numerators) < 2:
        return None
    below = _without_each(denominators)
    if not below.min() > 0:  # one case has all the weight: without it there is no ratio
        return None
    ends = bca_ends(value, _without_each(numerators) / below, draws, level)
    return None if ends is None else Second(method="bca", lo=ends[0], hi=ends[1])


def _without_each(values: Floats) -> Floats:
    """Return the sum without each value.

    By sums from both ends, so that nothing large is subtracted.
    """
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    behind = np.concatenate([np.cumsum(values[::-1])[:-1][::-1], [0.0]])
    return np.asarray(before + behind)


def _by_t(values: Floats, strata: Strata, *, scale: Scale, level: float) -> Second | None:
    from scipy.special import stdtrit

    if strata.n_clusters < 2:
        return None
    error, freedom = strata.spread(values)
    mean = float(values.mean())
    if error <= TIE:
        if not scale.unit:
            return None
        lo, hi = wilson_interval(mean * len(values), len(values), level=level)
        return Second(method="wilson", lo=lo, hi=hi)
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    method = "stratified_t" if strata.stratified else "cluster_t"
    return Second(method=method, lo=mean - half, hi=mean + half)


def ratio_p(differences: Floats, strata: Strata) -> float:
    """Return the two-sided p of the t test of linearised differences, one a case."""
    from scipy.special import stdtr

    mean = float(differences.mean())
    error, freedom = strata.spread(differences) if strata.n_clusters > 1 else (0.0, 1.0)
    if error <= TIE:
        return 1.0 if abs(mean) <= TIE else 0.0
    return float(2.0 * stdtr(freedom, -abs(mean) / error))
