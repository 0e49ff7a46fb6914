"""Intervals of Σ numerators / Σ denominators: weighted means, whose weights are drawn with their cases."""

import numpy as np
from numpy.typing import NDArray

from medassay.core.estimate import Estimate, Second
from medassay.core.trial import Scale
from medassay.statistic.draws import Floats, cluster_sums, count_rows
from medassay.statistic.interval.bootstrap import (
    bca_ends,
    interval_flags,
    percentile,
    second_interval,
)


def drawn_sums(
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
    """Return one value an item, whose plain mean is the ratio and whose spread is that of the ratio.

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
    *,
    clusters: NDArray[np.int64] | None,
    scale: Scale,
    level: float = 0.95,
) -> Estimate:
    """Estimate Σ numerators / Σ denominators from given draws of it, with both intervals.

    The second interval is BCa with a jackknife over items, with clusters mean ± t of the linearised
    ratio; of plain means (denominators 1) it is that of `second_interval`.
    """
    value = float(numerators.sum() / denominators.sum())
    lo, hi = (float(end) for end in percentile(draws, level))
    plain = bool(np.all(denominators == 1))
    if plain or clusters is not None:
        values = numerators if plain else linearised(numerators, denominators)
        second = second_interval(values, clusters, draws, scale=scale, level=level)
    else:
        second = _bca(value, numerators, denominators, draws, level)
    n_clusters = len(numerators) if clusters is None else int(clusters.max()) + 1
    return Estimate(
        value=value,
        lo=lo,
        hi=hi,
        n=len(numerators),
        n_clusters=n_clusters,
        level=level,
        second=second,
        flags=tuple(interval_flags(lo, hi, second, n_clusters, scale)),
    )


def _bca(
    value: float, numerators: Floats, denominators: Floats, draws: Floats, level: float
) -> Second | None:
    if len(numerators) < 2:
        return None
    left_out = (numerators.sum() - numerators) / (denominators.sum() - denominators)
    ends = bca_ends(value, left_out, draws, level)
    return None if ends is None else Second(method="bca", lo=ends[0], hi=ends[1])
