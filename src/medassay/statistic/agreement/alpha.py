"""Krippendorff's alpha with its interval: agreement beyond chance, missing ratings allowed.

Source: specification of statistics, 7.10; specification of rubric judging, "Agreement".
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medassay.core.records.estimate import Estimate
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats, count_rows, number_clusters

REVISION = 1

Level = Literal["nominal", "ordinal", "interval"]
FEW_ITEMS = 50
_CHUNK = 4096  # units whose pairs are held at once
_MOST_DROPPED = 0.05  # of the draws; above it there is no interval


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float | None:
    """Return alpha, at most 1.

    None if fewer than two units can be paired, or all ratings are equal.

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
    array = _check_ratings(ratings)
    values = np.unique(array[~np.isnan(array)])
    if np.count_nonzero((~np.isnan(array)).sum(axis=0) > 1) < 2:
        return None
    pooled = coincidences(array, values, np.zeros(array.shape[1], dtype=np.int64), 1)
    [alpha] = _alphas(pooled.reshape(1, len(values), -1), values, level)
    return None if np.isnan(alpha) else float(alpha)


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
    array = _check_ratings(ratings)
    alpha = krippendorff_alpha(array, level)
    if alpha is None:
        return None
    numbers = number_clusters(items)
    index = np.arange(array.shape[1]) if numbers is None else numbers
    n_items = int(index.max()) + 1
    alphas = alpha_draws(array, index, count_rows(n_items, n_resamples, seed), level)
    finite = alphas[~np.isnan(alphas)]
    if len(finite) < (1 - _MOST_DROPPED) * n_resamples or n_items < 2:
        return None
    lo, hi = np.quantile(finite, [0.025, 0.975])
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
    ratings: Floats, items: NDArray[np.int64], blocks: Iterable[Floats], level: Level
) -> Floats:
    """Return alpha in every draw, NaN where a draw has one category.

    Parameters
    ----------
    items : number of each unit's item, counted from 0
    blocks : how often each item was drawn, arrays of shape (n_draws, n_items)
    """
    values = np.unique(ratings[~np.isnan(ratings)])
    shape = (-1, len(values), len(values))
    per_item = coincidences(ratings, values, items, int(items.max()) + 1)
    alphas = (_alphas((counts @ per_item).reshape(shape), values, level) for counts in blocks)
    return np.concatenate(list(alphas))


def _check_ratings(ratings: ArrayLike) -> Floats:
    array = np.asarray(ratings, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise StatisticError(
            f"ratings have shape {array.shape}; expected raters × units, at least one of each"
        )
    if np.isinf(array).any():
        raise StatisticError("a rating is infinite; a missing one is NaN")
    return array


def coincidences(ratings: Floats, values: Floats, items: NDArray[np.int64], n_items: int) -> Floats:
    """Return the coincidence matrix of every item, flat, shape (n_items, n_values²).

    Every ordered pair of two raters' values in a unit of m ratings counts 1 / (m - 1).

    Parameters
    ----------
    items : number of each unit's item, counted from 0
    """
    summed = np.zeros((n_items, len(values) ** 2))
    for start in range(0, ratings.shape[1], _CHUNK):
        chunk = slice(start, start + _CHUNK)
        counts = (ratings[:, chunk, None] == values).sum(axis=0).astype(np.float64)
        m = counts.sum(axis=1)
        paired = counts[:, :, None] * counts[:, None, :]
        paired -= np.eye(len(values)) * counts[:, :, None]  # no value pairs with itself
        paired /= np.where(m > 1, m - 1, np.inf)[:, None, None]
        np.add.at(summed, items[chunk], paired.reshape(len(m), -1))
    return summed


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
