"""The score interval at the effective number of items: of a mean over items that come in clusters,
in domains, or are graded.

Wilson's formula needs two numbers, a share and a number of independent items. Here the second one
is what the variance that was seen says, mixed with what chance would say where few clusters vary:
near 0 and 1 the variance seen is often 0 and says nothing.

Source: specification of ranks, R5.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats

REVISION = 1

_NONE = 1e-20  # a sum of squares below this is none
_FLAT = 1e-12  # M(1 − M) below this: every score lies at one end
WILSON, SCORE, T = "wilson", "score_effective", "t_effective"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How the scores of one domain spread: G clusters of n items, mean m, each term as the
    specification names it.
    """

    mean: float
    v: float  # variance of the mean
    q: float  # Σ over clusters of (share of the items)²: 1/q is the effective number of clusters
    f: float  # how many clusters the spread comes from


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its interval.

    `n_star` is the effective number of items, `n_effective` that of clusters; `ends` None: no
    interval.
    """

    method: str
    mean: float
    ends: tuple[float, float] | None
    n_star: float
    n_effective: float
    quantile: float


def spread_of(
    scores: Floats, clusters: NDArray[np.int64] | None, weights: Floats | None = None
) -> Spread:
    """Return how scores of one domain spread.

    Parameters
    ----------
    scores : what is averaged; with `weights`, residuals about the mean of each item's own domain
    clusters : cluster number of each item from 0; None if every item is its own
    weights : of each item, where clusters span domains; None for 1/n
    """
    n = len(scores)
    each = np.arange(n) if clusters is None else clusters
    mean = 0.0 if weights is not None else float(scores.mean())
    share = np.full(n, 1 / n) if weights is None else weights
    residuals = np.bincount(each, weights=share * (scores - mean))
    held = np.bincount(each, weights=share)
    groups = len(residuals)
    total = float((residuals**2).sum())
    q = float((held**2).sum())
    if total <= _NONE or groups == 1:
        return Spread(mean=mean, v=0.0, q=q, f=0.0)
    f = total**2 / float((residuals**4).sum())
    return Spread(mean=mean, v=total * groups / (groups - 1), q=q, f=f)


def effective_interval(
    domains: Sequence[tuple[Floats, NDArray[np.int64] | None]],
    *,
    scale: Scale,
    weights: Sequence[float] | None = None,
    spanning: NDArray[np.int64] | None = None,
    level: float = 0.95,
) -> Effective:
    """Return the interval that is printed beside a mean over one domain or several.

    Parameters
    ----------
    domains : scores and cluster numbers (None: every item is its own) of each domain
    weights : of the domains, summing to 1; None for equal ones
    spanning : cluster numbers of the items of all domains, one after the other, where a cluster
        spans domains; None where none does

    Raises
    ------
    StatisticError
        When there is no item: no data is not a share of zero.

    References
    ----------
    Wilson (1927), J. Am. Stat. Assoc. 22:209-212; Korn and Graubard (1998), Survey Methodology
    24:193-201 (the effective number of items in a score interval).

    Examples
    --------
    >>> twelve = np.ones(36), np.repeat(np.arange(12), 3)
    >>> found = effective_interval([twelve], scale=Scale())
    >>> found.method, [round(end, 6) for end in found.ends]
    ('score_effective', [0.712406, 1.0])
    """
    if not domains or any(len(scores) == 0 for scores, _ in domains):
        raise StatisticError("no items: no data is not a share of zero")
    all_scores = np.concatenate([scores for scores, _ in domains])
    binary = bool(np.isin(all_scores, (scale.lo, scale.hi)).all())
    bounded = _is_on(scale, all_scores)
    width = scale.hi - scale.lo if bounded else 1.0
    origin = scale.lo if bounded else 0.0
    unit = [((scores - origin) / width, clusters) for scores, clusters in domains]
    shares = [1 / len(domains)] * len(domains) if weights is None else [*weights]
    alone = len(domains) == 1 and unit[0][1] is None
    mean = sum(a * float(scores.mean()) for a, (scores, _) in zip(shares, unit, strict=True))
    parts = _parts(unit, shares, spanning)
    n_effective = 1 / sum(a * a * part.q for a, part in parts)
    if not bounded:
        return _t_interval(mean, parts, n_effective, level)
    chance = mean * (1 - mean)
    variance = 0.0
    for a, part in parts:
        mixing = float(part.f == 0) if alone and not binary else 0.5**part.f
        variance += a * a * ((1 - mixing) * part.v + mixing * chance * part.q)
    n_star = n_effective if chance <= _FLAT else chance / variance
    if binary:
        n_star = min(n_star, float(len(all_scores)))
    if binary and alone:
        method, n_star = WILSON, float(len(all_scores))
        quantile = NormalDist().inv_cdf((1 + level) / 2)
    else:
        method, quantile = SCORE, _t_quantile(n_effective, level)
    lo, hi = _score_ends(mean, n_star, quantile)
    return Effective(
        method=method,
        mean=origin + width * mean,
        ends=(origin + width * lo, origin + width * hi),
        n_star=n_star,
        n_effective=n_effective,
        quantile=quantile,
    )


def effective_number(sizes: Sequence[Sequence[int]]) -> float:
    """Return the effective number of clusters of domains of equal weight, each given by the sizes
    of its clusters.

    Examples
    --------
    >>> round(effective_number([[1, 1, 2, 2, 3, 3, 5, 5, 10, 20]]), 6)
    4.678201
    """
    parts = [
        sum(s * s for s in sizes_of_domain) / sum(sizes_of_domain) ** 2 for sizes_of_domain in sizes
    ]
    return len(sizes) ** 2 / sum(parts)


def _parts(
    domains: Sequence[tuple[Floats, NDArray[np.int64] | None]],
    shares: Sequence[float],
    spanning: NDArray[np.int64] | None,
) -> list[tuple[float, Spread]]:
    """Return weight and spread of each stratum: a domain, or all of them where a cluster spans
    some.
    """
    if spanning is None:
        return [(a, spread_of(*domain)) for a, domain in zip(shares, domains, strict=True)]
    residuals = np.concatenate([scores - scores.mean() for scores, _ in domains])
    weights = np.concatenate(
        [
            np.full(len(scores), a / len(scores))
            for a, (scores, _) in zip(shares, domains, strict=True)
        ]
    )
    return [(1.0, spread_of(residuals, spanning, weights))]


def _is_on(scale: Scale, scores: Floats) -> bool:
    finite = np.isfinite(scale.lo) and np.isfinite(scale.hi)
    return bool(finite and (scores >= scale.lo).all() and (scores <= scale.hi).all())


def _t_quantile(n_effective: float, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, n_effective - 1), (1 + level) / 2))


def _t_interval(
    mean: float, parts: Sequence[tuple[float, Spread]], n_effective: float, level: float
) -> Effective:
    variance = sum(a * a * part.v for a, part in parts)
    quantile = _t_quantile(n_effective, level)
    half = quantile * sqrt(variance)
    return Effective(
        method=T,
        mean=mean,
        ends=None if variance == 0 else (mean - half, mean + half),
        n_star=n_effective,
        n_effective=n_effective,
        quantile=quantile,
    )


def _score_ends(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's ends at any number of items and any quantile, clipped to [0, 1]."""
    square = quantile * quantile
    centre = share + square / (2 * n)
    half = quantile * sqrt(share * (1 - share) / n + square / (4 * n * n))
    denominator = 1 + square / n
    # An end that is a share of all or of nothing is so in exact numbers.
    lo = 0.0 if share <= 0 else max(0.0, (centre - half) / denominator)
    hi = 1.0 if share >= 1 else min(1.0, (centre + half) / denominator)
    return lo, hi
