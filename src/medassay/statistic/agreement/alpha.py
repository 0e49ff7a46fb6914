"""Krippendorff's alpha with its interval: agreement beyond chance, missing ratings allowed.

Source: specification of statistics, 7.10; specification of rubric judging, "Agreement".
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medassay.core.estimate import Estimate
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats, count_rows, number_clusters

Level = Literal["nominal", "ordinal", "interval"]
FEW_ITEMS = 50
_MOST_DROPPED = 0.05  # of the draws; above it there is no interval


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float | None:
    """Return alpha, at most 1; None if fewer than two units can be paired, or all ratings are equal.

    Parameters
    ----------
    ratings : raters × units, NaN where a rating is missing; for `ordinal` and `interval` the
        numbers are the scale's values
    level : how far apart two values are: equal or not, by ranks, or by their difference

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's alpha-reliability", eqs. 1-5.

    Examples
    --------
    >>> krippendorff_alpha([[0, 1, 2, 0], [0, 1, 2, 0], [0, 1, 1, 0]])
    0.75
    """
    array = _checked(ratings)
    values = np.unique(array[~np.isnan(array)])
    per_unit = coincidences(array, values)
    if np.count_nonzero(per_unit.any(axis=(1, 2))) < 2:
        return None
    [found] = _alphas(per_unit.sum(axis=0)[None], values, level)
    return None if np.isnan(found) else float(found)


def alpha_estimate(
    ratings: ArrayLike,
    items: ArrayLike,
    *,
    level: Level = "nominal",
    n_resamples: int = 1000,
    seed: int,
) -> Estimate | None:
    """Return alpha with a percentile interval from resampling items, all their units together.

    None where alpha is undefined. Draws with a single category are dropped; the interval is left
    out (None) when that happens to over 5 % of them. Flag `approximate` below 50 items.
    """
    array = _checked(ratings)
    alpha = krippendorff_alpha(array, level)
    if alpha is None:
        return None
    numbers = number_clusters(items)
    index = np.arange(array.shape[1]) if numbers is None else numbers
    n_items = int(index.max()) + 1
    blocks = (
        alpha_draws(array, index, counts, level)
        for counts in count_rows(n_items, n_resamples, seed)
    )
    alphas = np.concatenate(list(blocks))
    kept = alphas[~np.isnan(alphas)]
    if len(kept) < (1 - _MOST_DROPPED) * n_resamples or n_items < 2:
        return None
    lo, hi = np.quantile(kept, [0.025, 0.975])
    flags = ("approximate",) if n_items < FEW_ITEMS else ()
    return Estimate(
        value=alpha,
        lo=float(lo),
        hi=float(hi),
        n=array.shape[1],
        n_clusters=n_items,
        flags=flags,
    )


def alpha_draws(
    ratings: Floats, items: NDArray[np.int64], counts: Floats, level: Level
) -> Floats:
    """Return alpha in every draw, NaN where a draw has one category.

    Parameters
    ----------
    items : number of each unit's item, counted from 0
    counts : how often each item was drawn, shape (n_draws, n_items)
    """
    values = np.unique(ratings[~np.isnan(ratings)])
    per_unit = coincidences(ratings, values).reshape(ratings.shape[1], -1)
    per_item = np.zeros((counts.shape[1], per_unit.shape[1]))
    np.add.at(per_item, items, per_unit)
    return _alphas((counts @ per_item).reshape(-1, len(values), len(values)), values, level)


def _checked(ratings: ArrayLike) -> Floats:
    array = np.asarray(ratings, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise StatisticError(
            f"ratings have shape {array.shape}; expected raters × units, at least one of each"
        )
    if np.isinf(array).any():
        raise StatisticError("a rating is infinite; a missing one is NaN")
    return array


def coincidences(ratings: Floats, values: Floats) -> Floats:
    """Return the coincidence matrix of every unit, shape (n_units, n_values, n_values).

    Every ordered pair of two raters' values in a unit of m ratings counts 1 / (m - 1).
    """
    counts = (ratings[:, :, None] == values).sum(axis=0).astype(np.float64)
    m = counts.sum(axis=1)
    paired = counts[:, :, None] * counts[:, None, :]
    paired -= np.eye(len(values)) * counts[:, :, None]  # no value pairs with itself
    return np.asarray(paired / np.where(m > 1, m - 1, np.inf)[:, None, None])


def _alphas(matrices: Floats, values: Floats, level: Level) -> Floats:
    """Return one alpha for each summed coincidence matrix, NaN where it is undefined."""
    totals = matrices.sum(axis=2)
    n = totals.sum(axis=1)
    distance = _distances(totals, values, level)
    observed = (matrices * distance).sum(axis=(1, 2))
    expected = (totals[:, :, None] * totals[:, None, :] * distance).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = np.where(expected > 0, 1 - (n - 1) * observed / expected, np.nan)
    return np.asarray(alphas)


def _distances(totals: Floats, values: Floats, level: Level) -> NDArray[np.float64]:
    if level == "nominal":
        return 1 - np.eye(len(values))
    if level == "interval":
        return np.asarray((values[:, None] - values[None, :]) ** 2)
    # Ordinal: half of both ends and all in between, by how often each value was given.
    middle = np.cumsum(totals, axis=1) - totals / 2
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)
