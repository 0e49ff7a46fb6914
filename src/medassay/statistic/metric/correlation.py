"""How numbers rise and fall together: Pearson, Spearman and Kendall pair by pair, and the order
that puts alike ones together.

Source: specification of statistics, 7.7.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

REVISION = 1

FEWEST = 3  # complete pairs
CUT = 0.5  # distance at which clusters end
_CONSTANT = 1e-12
_CELLS = 2**18  # of one block of draws: rows or columns × columns × draws
_MANY_ROWS = 500  # above, SciPy's way over sorted rows is faster
_MOST_LOST = 0.05  # of draws in which a correlation is undefined
Coefficient = Callable[[np.ndarray, np.ndarray], float | None]
Ends = tuple[tuple[float | None, ...], ...]


class Correlations(msgspec.Struct, frozen=True):
    """Correlations of k columns, None where there is none, and the number of complete pairs of
    each.
    """

    values: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]


class Tree(msgspec.Struct, frozen=True):
    """Columns joined by likeness: which two clusters join at which distance (as SciPy's linkage
    numbers them).

    `order` are the columns as the tree has them, `clusters` those that join below the cut, each in
    that order.
    """

    order: tuple[int, ...]
    merges: tuple[tuple[int, int, float], ...]
    clusters: tuple[tuple[int, ...], ...]


def pearson(columns: ArrayLike) -> Correlations:
    """Return Pearson's r of every pair of columns, over the rows that have both.

    Parameters
    ----------
    columns : shape (n_rows, k), NaN where a value is absent

    Returns
    -------
    Correlations
        None with fewer than three complete pairs, or where a column does not vary over them.

    Examples
    --------
    >>> pearson([[1, 2, 1], [2, 4, 1], [3, 6, 1]]).values[0]
    (1.0, 1.0, None)
    """
    return _pairwise(columns, _r)


def spearman(columns: ArrayLike) -> Correlations:
    """Return Spearman's rho of every pair of columns: Pearson's r of their average ranks, over the
    rows that have both.

    Examples
    --------
    >>> spearman([[1, 1], [2, 8], [3, 27], [4, 64]]).values[0]
    (1.0, 1.0)
    """
    from scipy.stats import rankdata

    # Most columns are known in the same rows, where the ranks of one serve all its pairs.
    ranks: dict[bytes, NDArray[np.float64]] = {}

    def ranks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        key = values.tobytes()
        if key not in ranks:
            ranks[key] = rankdata(values)
        return ranks[key]

    return _pairwise(columns, lambda a, b: _r(ranks_of(a), ranks_of(b)) if len(a) else None)


def kendall(columns: ArrayLike) -> Correlations:
    """Return Kendall's tau-b of every pair of columns, over the rows that have both.

    Examples
    --------
    >>> kendall([[1, 4], [2, 3], [3, 2], [4, 1]]).values[0]
    (1.0, -1.0)
    """
    table = np.asarray(columns, dtype=np.float64)
    return _pairwise(table, _tau) if len(table) > _MANY_ROWS else _kendall_of_few(table)


def _kendall_of_few(table: NDArray[np.float64]) -> Correlations:
    """Return Kendall's tau-b of a table of few rows, from all pairs of rows: SciPy takes a
    millisecond for each two columns.
    """
    n, k = table.shape
    is_known = (~np.isnan(table)).astype(np.float64)
    # Of two columns, over the pairs of rows that have both: pairs of one order less pairs of
    # opposite orders, and those that are no tie in the first. Whole numbers, so sums are exact.
    balance, untied = np.zeros((k, k)), np.zeros((k, k))
    at_once = max(1, _CELLS // max(1, n * k))
    for at in range(0, n, at_once):
        rows = slice(at, at + at_once)
        later = np.arange(n) > np.arange(n)[rows, None]  # each pair of rows once
        both = ((is_known[rows, None] * is_known) * later[:, :, None]).reshape(-1, k)
        order = np.nan_to_num(np.sign(table[rows, None] - table)).reshape(-1, k) * both
        balance += order.T @ order
        untied += np.abs(order).T @ both
    counts = is_known.T @ is_known
    varies = (counts >= FEWEST) & (np.minimum(untied, untied.T) > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = np.clip(balance / np.sqrt(untied) / np.sqrt(untied.T), -1.0, 1.0)
    tau = np.triu(tau) + np.triu(tau, 1).T  # the two may differ in their last digit
    return Correlations(
        values=tuple(
            tuple(float(v) if defined else None for v, defined in zip(*line, strict=True))
            for line in zip(tau, varies, strict=True)
        ),
        n=tuple(tuple(map(int, line)) for line in counts.tolist()),
    )


def _pairwise(columns: ArrayLike, coefficient: Coefficient) -> Correlations:
    table = np.asarray(columns, dtype=np.float64)
    is_known = ~np.isnan(table)
    k = table.shape[1]
    counts = is_known.T.astype(int) @ is_known.astype(int)
    values: list[list[float | None]] = [[None] * k for _ in range(k)]
    for i in range(k):
        for j in range(i, k):
            both_known = is_known[:, i] & is_known[:, j]
            values[i][j] = values[j][i] = coefficient(table[both_known, i], table[both_known, j])
    return Correlations(
        values=tuple(map(tuple, values)),
        n=tuple(tuple(map(int, line)) for line in counts.tolist()),
    )


def _tau(first: np.ndarray, second: np.ndarray) -> float | None:
    if len(first) < FEWEST:
        return None
    if min(np.ptp(first), np.ptp(second)) == 0:
        return None
    from scipy.stats import kendalltau

    return float(kendalltau(first, second).statistic)


def pearson_intervals(
    columns: ArrayLike,
    *,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
    n_resamples: int = 1000,
    level: float = 0.95,
) -> tuple[Ends, Ends]:
    """Return the lower and the upper end of each r, by drawing rows with replacement (percentiles).

    Parameters
    ----------
    columns : shape (n_rows, k), NaN where a value is absent; rows are what is drawn, as models
    clusters : number of the cluster of each row, from 0; clusters are drawn with all their rows

    Returns
    -------
    tuple
        None where r is undefined in more than a twentieth of the draws: too few rows to say.
    """
    table = np.asarray(columns, dtype=np.float64)
    n, k = table.shape
    weights_known = (~np.isnan(table)).astype(np.float64)
    # Far from 0 the sums of squares would lose the differences that matter.
    centre = np.nanmean(np.where(weights_known.any(axis=0), table, 0.0), axis=0)
    spread = np.nanstd(np.where(weights_known.any(axis=0), table, 0.0), axis=0)
    scaled = np.where(weights_known > 0, (table - centre) / np.where(spread > 0, spread, 1.0), 0.0)
    groups = np.arange(n) if clusters is None else clusters
    m = int(groups.max()) + 1
    rng = np.random.default_rng(seed)
    draws = np.empty((n_resamples, k, k))
    # In blocks: for a small table numpy's overhead for each call would dominate.
    at_once = max(1, _CELLS // (max(k, n) * k))
    for at in range(0, n_resamples, at_once):
        size_of_block = min(at_once, n_resamples - at)
        times = _times_drawn(rng, size_of_block, m)[:, groups, None]
        weighted = times * scaled
        distinct = _turned((times > 0) * weights_known) @ weights_known
        size = _turned(times * weights_known) @ weights_known
        sums_first = _turned(weighted) @ weights_known
        products = _turned(weighted) @ scaled
        square = _turned(times * scaled**2) @ weights_known
        with np.errstate(invalid="ignore", divide="ignore"):
            varies = square - sums_first**2 / size
            covaries = products - sums_first * _turned(sums_first) / size
            r = covaries / np.sqrt(varies * _turned(varies))
        defined = (distinct >= FEWEST) & (np.minimum(varies, _turned(varies)) > _CONSTANT)
        draws[at : at + size_of_block] = np.where(defined, np.clip(r, -1.0, 1.0), np.nan)
    lower, upper = (
        tuple(ends[at : at + k] for at in range(0, k * k, k))
        for ends in ends_of(draws.reshape(n_resamples, k * k), level)
    )
    return lower, upper


def _times_drawn(rng: np.random.Generator, n_draws: int, n: int) -> NDArray[np.float64]:
    """Return how often each of n comes in each draw of n, shape (n_draws, n)."""
    drawn = rng.integers(0, n, (n_draws, n)) + n * np.arange(n_draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=n_draws * n).reshape(n_draws, n).astype(np.float64)


def _turned(stack: NDArray[Any]) -> NDArray[Any]:
    return stack.transpose(0, 2, 1)


class PairCorrelations(msgspec.Struct, frozen=True):
    """Pearson's r of k pairs of columns with its interval, None where there is none, and each r in
    each draw of rows.

    `draws` has the shape (n_resamples, k), NaN where r is undefined.
    """

    values: tuple[float | None, ...]
    lo: tuple[float | None, ...]
    hi: tuple[float | None, ...]
    n: tuple[int, ...]
    draws: NDArray[np.float64]


def pearson_pairs(
    first: ArrayLike,
    second: ArrayLike,
    *,
    seed: int,
    n_resamples: int = 1000,
    level: float = 0.95,
) -> PairCorrelations:
    """Return Pearson's r of column j of one table with column j of another, with intervals by
    drawing rows (percentiles).

    Parameters
    ----------
    first, second : shape (n_rows, k), NaN where a value is absent; rows are what is drawn, as
        models

    Examples
    --------
    >>> pearson_pairs([[1], [2], [3], [4]], [[2], [4], [6], [8]], seed=0).values
    (1.0,)
    """
    table_one, other = (np.asarray(table, dtype=np.float64) for table in (first, second))
    both_known = ~(np.isnan(table_one) | np.isnan(other))
    n, k = table_one.shape
    rng = np.random.default_rng(seed)
    draws = np.empty((n_resamples, k))
    # Far from 0 the sums of squares would lose the differences that matter.
    scaled = [_scaled(np.where(both_known, table, np.nan)) for table in (table_one, other)]
    at_once = max(1, _CELLS // (n * k))
    for at in range(0, n_resamples, at_once):
        size_of_block = min(at_once, n_resamples - at)
        times = _times_drawn(rng, size_of_block, n)[:, :, None] * both_known
        size = np.maximum(times.sum(axis=1, keepdims=True), 1)
        left_centred, right = (
            table - (times * table).sum(axis=1, keepdims=True) / size for table in scaled
        )
        varies = [(times * table**2).sum(axis=1) for table in (left_centred, right)]
        defined = ((times > 0).sum(axis=1) >= FEWEST) & (np.minimum(*varies) > _CONSTANT)
        with np.errstate(invalid="ignore", divide="ignore"):
            r = (times * left_centred * right).sum(axis=1) / np.sqrt(varies[0] * varies[1])
        draws[at : at + size_of_block] = np.where(defined, np.clip(r, -1.0, 1.0), np.nan)
    lo, hi = ends_of(draws, level)
    return PairCorrelations(
        values=tuple(
            _r(table_one[both_known[:, j], j], other[both_known[:, j], j]) for j in range(k)
        ),
        lo=lo,
        hi=hi,
        n=tuple(map(int, both_known.sum(axis=0))),
        draws=draws,
    )


def _scaled(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns with mean 0 and spread 1, 0 where a value is absent."""
    is_known = ~np.isnan(table)
    size = np.maximum(is_known.sum(axis=0), 1)
    centred = np.where(is_known, table - np.where(is_known, table, 0.0).sum(axis=0) / size, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / size)
    return centred / np.where(spread > 0, spread, 1.0)


def ends_of(
    draws: NDArray[np.float64], level: float = 0.95
) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """Return the percentile ends of each column of draws, None where more than a twentieth of the
    draws are NaN.
    """
    lost = np.isnan(draws).mean(axis=0)
    tail = (1 - level) / 2
    ends = np.full((2, draws.shape[1]), np.nan)
    # With a NaN among them, NumPy goes through the columns one by one.
    for find, columns in (
        (np.quantile, lost == 0),
        (np.nanquantile, (lost > 0) & (lost <= _MOST_LOST)),
    ):
        if columns.any():
            ends[:, columns] = find(draws[:, columns], [tail, 1 - tail], axis=0)
    lo, hi = (tuple(None if np.isnan(v) else float(v) for v in row) for row in ends)
    return lo, hi


def _r(first: np.ndarray, second: np.ndarray) -> float | None:
    if len(first) < FEWEST:
        return None
    first_centred, other = first - first.mean(), second - second.mean()
    size = np.sqrt((first_centred @ first_centred) * (other @ other))
    scale = (np.abs(first).max() or 1.0) * (np.abs(second).max() or 1.0) * len(first)
    if size <= _CONSTANT * scale:
        return None
    return float(np.clip(first_centred @ other / size, -1.0, 1.0))


def tree(values: Sequence[Sequence[float | None]]) -> Tree:
    """Return the tree of columns by average linkage of the distance 1 − |r|.

    An undefined r is a distance of 1.
    """
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    k = len(values)
    if k < 2:
        return Tree(tuple(range(k)), (), tuple((i,) for i in range(k)))
    distances = np.array([[1.0 if r is None else 1.0 - abs(r) for r in row] for row in values])
    np.fill_diagonal(distances, 0.0)
    joined = linkage(squareform(distances, checks=False), method="average")
    order = tuple(int(at) for at in leaves_list(joined))
    label = fcluster(joined, CUT, criterion="distance")
    clusters: dict[int, list[int]] = {}
    for at in order:
        clusters.setdefault(int(label[at]), []).append(at)
    return Tree(
        order=order,
        merges=tuple((int(a), int(b), float(d)) for a, b, d, _ in joined),
        clusters=tuple(tuple(group) for group in clusters.values()),
    )
