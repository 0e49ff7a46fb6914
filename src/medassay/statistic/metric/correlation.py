"""How numbers rise and fall together: Pearson's correlation pair by pair, and the order that puts alike ones together.

Source: specification of statistics, 7.7.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

FEWEST = 3  # complete pairs
CUT = 0.5  # distance at which clusters end
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Correlations:
    """Correlations of k columns, None where there is none, and the number of complete pairs of each."""

    values: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Tree:
    """Columns joined by likeness: which two clusters join at which distance (as SciPy's linkage numbers them).

    `order` are the columns as the tree has them, `clusters` those that join below the cut, each in that order.
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
    table = np.asarray(columns, dtype=np.float64)
    known = ~np.isnan(table)
    k = table.shape[1]
    values: list[tuple[float | None, ...]] = []
    counts = known.T.astype(int) @ known.astype(int)
    for i in range(k):
        row: list[float | None] = []
        for j in range(k):
            both = known[:, i] & known[:, j]
            row.append(_r(table[both, i], table[both, j]))
        values.append(tuple(row))
    return Correlations(
        values=tuple(values), n=tuple(tuple(map(int, line)) for line in counts.tolist())
    )


def _r(first: np.ndarray, second: np.ndarray) -> float | None:
    if len(first) < FEWEST:
        return None
    one, other = first - first.mean(), second - second.mean()
    size = np.sqrt((one @ one) * (other @ other))
    scale = (np.abs(first).max() or 1.0) * (np.abs(second).max() or 1.0) * len(first)
    if size <= _CONSTANT * scale:
        return None
    return float(np.clip(one @ other / size, -1.0, 1.0))


def tree(values: Sequence[Sequence[float | None]]) -> Tree:
    """Return the tree of columns by average linkage of the distance 1 − |r|; an undefined r is a distance of 1."""
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
        clusters=tuple(tuple(found) for found in clusters.values()),
    )
