"""Judges against people: the prediction-powered mean, and how far judge and person agree.

A few answers have a person's score, all have the judge's. The judge's mean over the many, corrected
by its error on the few, has a shorter interval than the people's scores alone and, unlike the
judge's mean, no bias. Source: specification of statistics, 7.10; Angelopoulos et al. (2023),
doi:10.1126/science.adi6000, and "PPI++", arXiv:2311.01453.
"""

from math import sqrt

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from medassay.errors import StatisticError
from medassay.statistic.agreement.alpha import FEW_ITEMS
from medassay.statistic.draws import Floats, cluster_sums, count_rows, number_clusters
from medassay.statistic.interval.ratio import resampled_sums

REVISION = 1

LEAST_LABELLED = 30


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction-powered mean with its interval.

    `lam` is the weight given to the judge, in [0, 1].
    """

    value: float
    lo: float
    hi: float
    se: float
    lam: float
    n_labelled: int
    n_unlabelled: int


def prediction_powered_mean(
    human: ArrayLike,
    judge_on_labelled: ArrayLike,
    judge_on_unlabelled: ArrayLike,
    *,
    lam: float | None = None,
    clip: tuple[float, float] | None = (0.0, 1.0),
    least: int = LEAST_LABELLED,
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
) -> CorrectedMean | None:
    """Return the mean of people's scores as estimated with a judge's help; None below `least`
    labels.

    Parameters
    ----------
    human, judge_on_labelled : scores of a random draw of answers, by a person and by the judge
    judge_on_unlabelled : the judge's scores of the answers without a person's (never of all)
    lam : weight of the judge; None tunes it for the smallest variance, clipped to [0, 1]
    clip : the interval is cut to this scale; None leaves it
    clusters : the cluster of each labelled and of each unlabelled answer (answers to one item, or
        to items of one case, are not independent); None takes each answer as its own

    Raises
    ------
    StatisticError
        When lengths differ or a score is not finite.
    """
    people, labelled, others = (
        np.asarray(a, dtype=np.float64) for a in (human, judge_on_labelled, judge_on_unlabelled)
    )
    if people.shape != labelled.shape or people.ndim != 1 or others.ndim != 1:
        raise StatisticError(
            f"{people.size} human scores, {labelled.size} judge scores of the same answers;"
            " expected one each"
        )
    if not all(np.isfinite(a).all() for a in (people, labelled, others)):
        raise StatisticError("a score is NaN or infinite; leave nulls out and count them")
    n, rest = len(people), len(others)
    if n < least or n == 0:
        return None
    if rest == 0:
        se = sqrt(_variance_of_mean(people, clusters and clusters[0]))
        return _corrected_mean(float(people.mean()), se, 0.0, n, 0, clip)
    if lam is None:
        lam = _tuned(people, labelled, others)
    value = lam * others.mean() + (people - lam * labelled).mean()
    own_variance = _variance_of_mean(people - lam * labelled, clusters and clusters[0])
    se = sqrt(lam**2 * _variance_of_mean(others, clusters and clusters[1]) + own_variance)
    return _corrected_mean(float(value), se, lam, n, rest, clip)


def _variance_of_mean(scores: Floats, clusters: ArrayLike | None) -> float:
    """Return the variance of a mean: from the sums over clusters where there are any."""
    numbers = None if clusters is None else number_clusters(clusters)
    if numbers is None:
        return float(np.var(scores)) / len(scores)
    sums, _ = cluster_sums((scores - scores.mean())[:, None], numbers)
    return float((sums**2).sum()) / len(scores) ** 2


def _tuned(people: Floats, labelled: Floats, others: Floats) -> float:
    n, rest = len(people), len(others)
    covariance = np.mean((people - people.mean()) * (labelled - labelled.mean()))
    spread = np.var(np.concatenate([labelled, others]), ddof=1)
    return float(np.clip(covariance / ((1 + n / rest) * spread), 0, 1)) if spread > 0 else 0.0


def _corrected_mean(
    value: float, se: float, lam: float, n: int, rest: int, clip: tuple[float, float] | None
) -> CorrectedMean:
    from scipy.special import ndtri

    half = float(ndtri(0.975)) * se
    lo, hi = value - half, value + half
    if clip is not None:
        lo, hi = (min(max(end, clip[0]), clip[1]) for end in (lo, hi))
    return CorrectedMean(value=value, lo=lo, hi=hi, se=se, lam=lam, n_labelled=n, n_unlabelled=rest)


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Variance of scores by item, judge and the rest; negative estimates are kept as they are."""

    item: float
    judge: float
    residual: float
    n_items: int
    n_judges: int

    def of_mean(self, n_items: int, n_judges: int, *, fixed: bool = True) -> float:
        """Return the variance of the mean of so many items and judges; negatives count as 0.

        `fixed` takes the panel as given; otherwise its judges are a draw from many ("another
        panel").
        """
        item, judge, rest = (max(0.0, v) for v in (self.item, self.judge, self.residual))
        return item / n_items + (0.0 if fixed else judge / n_judges) + rest / (n_items * n_judges)


def variance_components(scores: ArrayLike) -> Components:
    """Return the ANOVA estimators of a crossed item × judge table, one verdict a cell.

    References
    ----------
    Searle, Casella and McCulloch (1992), Variance Components, ch. 4.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2 or not np.isfinite(table).all():
        raise StatisticError(
            f"scores of shape {table.shape}; expected items × judges, at least 2 × 2, no gap"
        )
    n, judges = table.shape
    mean, rows, columns = table.mean(), table.mean(axis=1), table.mean(axis=0)
    ms_item = judges * ((rows - mean) ** 2).sum() / (n - 1)
    ms_judge = n * ((columns - mean) ** 2).sum() / (judges - 1)
    rest = table - rows[:, None] - columns[None, :] + mean
    ms_rest = (rest**2).sum() / ((n - 1) * (judges - 1))
    return Components(
        item=float((ms_item - ms_rest) / judges),
        judge=float((ms_judge - ms_rest) / n),
        residual=float(ms_rest),
        n_items=n,
        n_judges=judges,
    )


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Cohen's kappa of two raters' categories; None when chance agreement is complete.

    Examples
    --------
    >>> round(cohen_kappa([1, 1, 2, 2], [1, 2, 2, 2]), 3)
    0.5
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or not a.size:
        raise StatisticError(f"{a.size} and {b.size} ratings; expected equally many, at least one")
    values = np.unique(np.concatenate([a, b]))
    shares = [((a == v).mean(), (b == v).mean()) for v in values]
    by_chance = sum(p * q for p, q in shares)
    return None if by_chance == 1 else float(((a == b).mean() - by_chance) / (1 - by_chance))


def kappa_interval(
    first: ArrayLike, second: ArrayLike, items: ArrayLike, *, seed: int, n_resamples: int = 1000
) -> tuple[float, float] | None:
    """Return kappa's percentile interval from resampling items.

    None when over 5 % are undefined.
    """
    a, b = np.asarray(first), np.asarray(second)
    values = np.unique(np.concatenate([a, b]))
    pairs = np.searchsorted(values, a) * len(values) + np.searchsorted(values, b)
    cells = np.eye(len(values) ** 2)[pairs]
    draws = resampled_sums(cells, number_clusters(items), n_resamples, seed)
    tables = draws.reshape(-1, len(values), len(values))
    tables = tables / tables.sum(axis=(1, 2))[:, None, None]
    agreed = np.trace(tables, axis1=1, axis2=2)
    by_chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = np.where(by_chance < 1, (agreed - by_chance) / (1 - by_chance), np.nan)
    finite = kappas[~np.isnan(kappas)]
    if len(finite) < 0.95 * n_resamples:
        return None
    lo, hi = np.quantile(finite, [0.025, 0.975])
    return float(lo), float(hi)


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Krippendorff's alpha of two raters' scores, interval level; ends are None where undefined.

    Flag `approximate` below 50 items.
    """

    alpha: float | None
    lo: float | None
    hi: float | None
    n: int
    flags: tuple[str, ...] = ()


def score_agreement(
    first: ArrayLike, second: ArrayLike, items: ArrayLike, *, seed: int, n_resamples: int = 1000
) -> Agreement:
    """Return alpha at interval level of two raters who both scored every unit, with its interval.

    1 − mean squared difference / (2 × variance of all scores together): the general formula for two
    raters without missing scores, in sums over items, so that continuous scores cost nothing. The
    interval resamples items whole; None when alpha is undefined in over 5 % of the draws.

    Examples
    --------
    >>> round(score_agreement([1, 2, 3, 3], [1, 2, 3, 4], [1, 2, 3, 4], seed=1).alpha, 4)
    0.8889
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or not a.size:
        raise StatisticError(f"{a.size} and {b.size} scores; expected equally many, at least one")
    rows = np.stack([np.ones_like(a), (a - b) ** 2, a + b, a**2 + b**2], axis=1)
    numbers = number_clusters(items)
    sums = rows if numbers is None else cluster_sums(rows, numbers)[0]
    [alpha] = _interval_alphas(sums.sum(axis=0)[None])
    draws = np.concatenate([c @ sums for c in count_rows(len(sums), n_resamples, seed)])
    alphas = _interval_alphas(draws)
    alphas = alphas[~np.isnan(alphas)]
    ends: list[float | None] = [None, None]
    if len(sums) > 1 and len(alphas) >= 0.95 * n_resamples:
        ends = [float(q) for q in np.quantile(alphas, [0.025, 0.975])]
    value = None if np.isnan(alpha) else float(alpha)
    flags = ("approximate",) if len(sums) < FEW_ITEMS else ()
    return Agreement(alpha=value, lo=ends[0], hi=ends[1], n=a.size, flags=flags)


def _interval_alphas(sums: Floats) -> Floats:
    """Return alpha from rows of (units, Σ(a − b)², Σ(a + b), Σ(a² + b²)); NaN where undefined."""
    units, apart, total, squares = sums.T
    n = 2 * units
    spread = squares - total**2 / n  # n − 1 times the variance of all scores
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (apart / units) * (n - 1) / (2 * spread)
    return np.asarray(np.where((units > 1) & (spread > 1e-12), alphas, np.nan))
