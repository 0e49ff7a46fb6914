"""The shared, portable draws of the bootstrap.

Every model of a domain and mode sees the same resamples, so that differences are paired. The
stream is that of `random.Random(S).random()`; a row of counts says how often each item was drawn.
Source: specification of statistics, 7.1.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

REVISION = 1

Floats = NDArray[np.float64]

_CHUNK = 1_000_000  # cells of the count matrix held at once: 8 MB
_CACHED = 30_000  # cells that are drawn and counted at once, so that they stay in cache


def seed_of(*parts: str) -> int:
    """Return the seed S of one domain and mode; the model is not part of it.

    Parameters
    ----------
    parts : bank version, run, domain and mode; where runs are compared their seals' roots, sorted,
        domain and mode

    Examples
    --------
    >>> seed_of("demo-2026.1", "r1", "cardiology", "solo") >= 2**63
    True
    """
    joined = "\x1f".join(parts).encode()
    return int.from_bytes(hashlib.sha256(joined).digest()[:8], "big") | 2**63


def stream(seed: int) -> np.random.RandomState:
    """Return the portable stream for a user's or a derived seed (bit 63 is set in both)."""
    full = seed | 2**63
    words = np.array([full & 0xFFFFFFFF, full >> 32], dtype=np.uint32)
    # The legacy class is frozen by numpy's promise of reproducibility, which is what we need here.
    return np.random.RandomState(words)


def count_rows(n: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of the matrix of counts, together (n_resamples, n), in the order of the
    stream.
    """
    random = stream(seed)
    rows, rows_cached = max(1, _CHUNK // n), max(1, _CACHED // n)
    for start in range(0, n_resamples, rows):
        block = np.empty((min(rows, n_resamples - start), n))
        for first in range(0, len(block), rows_cached):
            part = block[first : first + rows_cached]
            index = (random.random_sample(part.shape) * n).astype(np.int64)
            index += np.arange(len(part))[:, None] * n  # one bincount for all rows of the part
            part[:] = np.bincount(index.ravel(), minlength=part.size).reshape(part.shape)
        yield block


def draw_means(
    scores: Floats, clusters: NDArray[np.int64] | None, n_resamples: int, seed: int
) -> Floats:
    """Return the mean of every model in every draw.

    Parameters
    ----------
    scores : shape (n_items, n_models), no NaN, items sorted by id
    clusters : cluster number of each item, counted from 0 by first appearance; None if every item
        is its own. Clusters are drawn whole, and a draw's mean is sum over number of drawn items.

    Returns
    -------
    array, shape (n_resamples, n_models)
    """
    if clusters is None:
        n = scores.shape[0]
        return np.concatenate([c @ scores / n for c in count_rows(n, n_resamples, seed)])
    sums, sizes = cluster_sums(scores, clusters)
    blocks = (
        (counts @ sums) / (counts @ sizes)[:, None]
        for counts in count_rows(len(sizes), n_resamples, seed)
    )
    return np.concatenate(list(blocks))


def cluster_sums(scores: Floats, clusters: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return sums (n_clusters, n_models) and sizes (n_clusters,) of the clusters."""
    sizes = np.bincount(clusters).astype(np.float64)
    sums = np.zeros((len(sizes), scores.shape[1]))
    np.add.at(sums, clusters, scores)
    return sums, sizes


def count_clusters(names: NDArray[np.int64]) -> int:
    """Return how many different clusters there are.

    Examples
    --------
    >>> count_clusters(np.array([7, 8, 7]))
    2
    """
    # With their counts: numpy looks for masked arrays otherwise, whose import takes 20 ms.
    return len(np.unique(names, return_counts=True)[0])


def number_clusters(names: ArrayLike) -> NDArray[np.int64] | None:
    """Return cluster numbers by first appearance, or None when every item is its own cluster.

    Examples
    --------
    >>> number_clusters(["b", "a", "b"]), number_clusters([7, 8])
    (array([0, 1, 0]), None)
    """
    unique, first, inverse = np.unique(np.asarray(names), return_index=True, return_inverse=True)
    if len(unique) == len(inverse):
        return None
    place = np.empty(len(unique), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(unique))
    return place[inverse]
