"""Exact nearest neighbours in a file of vectors, and the joining of rankings.

Vectors are read block by block from a memory map whose pages are given back, so memory is bounded
by a block. Distances are computed in single precision and those that rounding could change are
computed again in double: the result is that of brute force.
"""

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medassay.errors import IntegrityError

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
Distances = NDArray[np.float64]
BLOCK = 16_384  # vectors
_QUERIES = 256  # at once
_UNIT = 2.0**-24  # the rounding error of single precision
_RRF = 60  # of reciprocal rank fusion


class VectorFile:
    """Vectors on disk: little-endian float32, row after row."""

    def __init__(self, path: Path, width: int, n: int) -> None:
        size = path.stat().st_size if path.is_file() else -1
        if size != n * width * 4:
            raise IntegrityError(
                f"{path.name}: {size} bytes, expected {n} vectors of {width} numbers; build the"
                " index again"
            )
        self.width, self.n = width, n
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, Vectors]]:
        """Yield (number of the first, vectors) of each block; a block is not to be kept."""
        for first in range(0, self.n, size):
            n = min(size, self.n - first)
            flat = np.frombuffer(
                self._map, dtype="<f4", count=n * self.width, offset=first * self.width * 4
            )
            yield first, flat.reshape(n, self.width)
            # Whole pages only; what a neighbouring block shares is read again from the page cache.
            start = first * self.width * 4 // mmap.PAGESIZE * mmap.PAGESIZE
            end = (first + n) * self.width * 4
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)

    def rows(self, ids: Ids) -> Vectors:
        """Return some vectors, copied."""
        flat: Vectors = np.frombuffer(self._map, dtype="<f4")
        return flat.reshape(self.n, self.width)[ids].copy()


def nearest(vectors: VectorFile, queries: Vectors, k: int) -> tuple[Ids, Distances]:
    """Return the nearest vectors of each query by Euclidean distance, the lower number first among
    equals.

    Parameters
    ----------
    queries : float32 array, shape (n_queries, width)
    k : at least 1; fewer are returned where there are fewer vectors

    Returns
    -------
    ids, distances : shape (n_queries, min(k, n_vectors)), nearest first; distances are not squared
    """
    parts = [
        _nearest(vectors, queries[at : at + _QUERIES], min(k, vectors.n))
        for at in range(0, len(queries), _QUERIES)
    ]
    ids, distances = zip(*parts, strict=True)
    return np.concatenate(ids), np.concatenate(distances)


def _nearest(vectors: VectorFile, queries: Vectors, k: int) -> tuple[Ids, Distances]:
    """Find candidates in one pass over the blocks, and rank them exactly."""
    n = len(queries)
    squared_norms = np.einsum("ij,ij->i", queries, queries, dtype=np.float64)
    bound = np.full(n, np.inf)  # no neighbour among the k nearest is farther
    candidates: list[list[tuple[Distances, Ids]]] = [[] for _ in range(n)]
    longest = 0.0
    for first, block in vectors.blocks():
        lengths = np.einsum("ij,ij->i", block, block)
        longest = max(longest, float(lengths.max()))
        squared = queries @ block.T
        squared *= -2
        squared += lengths
        slack = _slack(squared_norms, longest, vectors.width)
        # Only rows below the bound are looked at: after some blocks these are few.
        near = squared <= (bound - squared_norms + slack).astype(np.float32)[:, None]
        for query in np.flatnonzero(near.any(axis=1)):
            ids = np.flatnonzero(near[query])
            distances_kept = squared[query, ids].astype(np.float64) + squared_norms[query]
            candidates[query].append((distances_kept, ids + first))
            bound[query] = _tighten(candidates[query], k, slack[query])
    rows = [_exact(vectors, queries[q], candidates[q], k) for q in range(n)]
    return np.stack([ids for ids, _ in rows]), np.stack([d for _, d in rows])


def _slack(squared_norms: Distances, longest: float, width: int) -> Distances:
    """Return by how much a squared distance in single precision may be off, for each query: twice
    the bound of a dot product of `width` terms.
    """
    bound = (np.sqrt(squared_norms) + np.sqrt(longest)) ** 2
    slack: Distances = 4 * (width + 4) * _UNIT * bound + np.finfo(np.float32).tiny
    return slack


def _tighten(candidates: list[tuple[Distances, Ids]], k: int, slack: float) -> float:
    """Keep the candidates that may be among the k nearest, and return how far these reach."""
    distances = np.concatenate([d for d, _ in candidates])
    ids = np.concatenate([i for _, i in candidates])
    if len(distances) < k:
        candidates[:] = [(distances, ids)]
        return np.inf
    reach = float(np.partition(distances, k - 1)[k - 1])
    within_reach = distances <= reach + slack
    candidates[:] = [(distances[within_reach], ids[within_reach])]
    return reach


def _exact(
    vectors: VectorFile, query: Vectors, candidates: list[tuple[Distances, Ids]], k: int
) -> tuple[Ids, Distances]:
    if not candidates:
        raise IntegrityError(
            "vectors.f32: holds numbers that are not finite; build the index again"
        )
    ids = np.sort(np.concatenate([i for _, i in candidates]))
    apart = vectors.rows(ids).astype(np.float64) - query.astype(np.float64)
    distances = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    order = np.argsort(distances, kind="stable")[:k]  # ids ascend: the lower one first among equals
    return ids[order], distances[order]


def fused(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, float]]:
    """Return the k best of several rankings by reciprocal rank fusion, the lower number first among
    equals.

    Source: Cormack, Clarke, Buettcher (2009), doi:10.1145/1571941.1572114; the constant is 60.

    Examples
    --------
    >>> [(one, round(score, 4)) for one, score in fused([[7, 3], [3, 9]], 2)]
    [(3, 0.0325), (7, 0.0164)]
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] = scores.get(place, 0.0) + 1 / (_RRF + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
