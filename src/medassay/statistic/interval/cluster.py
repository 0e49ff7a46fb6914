"""The t interval of a mean over items that come in clusters."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from medassay.statistic.draws import Floats

REVISION = 1


def linearised_se(scores: Floats, clusters: NDArray[np.int64]) -> float:
    """Return √(Σ over clusters of (sum of residuals)²)/n, without a small-sample factor.

    References
    ----------
    Miller (2024), Adding Error Bars to Evals, arXiv:2411.00640.
    """
    residuals = np.bincount(clusters, weights=scores - scores.mean())
    return float(np.sqrt((residuals**2).sum()) / len(scores))


def cluster_t(
    scores: Floats,
    clusters: NDArray[np.int64],
    *,
    level: float = 0.95,
    clip: tuple[float, float] | None = (0.0, 1.0),
) -> tuple[float, float] | None:
    """Return mean ± t(G−1)·√(G/(G−1))·linearised SE, None for a single cluster."""
    from scipy.special import stdtrit

    groups = int(clusters.max()) + 1
    if groups < 2:
        return None
    half = stdtrit(groups - 1, (1 + level) / 2) * sqrt(groups / (groups - 1))
    half *= linearised_se(scores, clusters)
    lo, hi = float(scores.mean() - half), float(scores.mean() + half)
    return (lo, hi) if clip is None else (max(clip[0], lo), min(clip[1], hi))
