"""Means in which bad cases weigh more: a model that is dangerous now and then is not saved by the
rest.

Source: specification of differential-diagnosis scoring, "Algorithm", 5 to 7 (the Kernel29 method).
"""

import numpy as np
from numpy.typing import ArrayLike

from medassay.errors import ScaleError, StatisticError
from medassay.statistic.draws import Floats

REVISION = 1

# Name → (k, x0). A higher k punishes bad cases more; x0 is the score at which a case weighs one
# half.
PRESETS: dict[str, tuple[float, float]] = {
    "easy": (1.0, 0.3),
    "medium": (2.0, 0.0),
    "hard": (3.0, 0.0),
}
# The semantic score that the authors' plots rescale by: their practical best, rounded as they did.
PUBLISHED_MAX = 10.33


def score_maximum(value: float | str) -> float:
    """Return the score that is rescaled to 1: a number above 0, or the authors' 10.33."""
    if value == "published":
        return PUBLISHED_MAX
    if isinstance(value, str) or not 0 < value < np.inf:
        raise ScaleError(f"score_max {value!r}; expected a number above 0, or 'published'")
    return float(value)


def rescale(score: ArrayLike, score_max: float | str = 16.0) -> Floats:
    """Return 2·score / score_max − 1: 0 becomes −1, `score_max` becomes 1.

    Examples
    --------
    >>> float(rescale(8.0)), float(rescale(10.33, "published"))
    (0.0, 1.0)
    """
    return np.asarray(2.0 * np.asarray(score, dtype=np.float64) / score_maximum(score_max) - 1)


def reliability_weights(scores: ArrayLike, *, k: float, x0: float) -> Floats:
    """Return the weight 1 / (1 + exp(k·(s − x0))) of each case; s is clipped to [−1, 1] for it.

    Raises
    ------
    ScaleError
        A ValueError: k not above 0, or a parameter or score that is no number.
    """
    return np.exp(_log_weights(scores, k=k, x0=x0))


def relative_weights(scores: ArrayLike, *, k: float, x0: float) -> Floats:
    """Return the weights of cases, the largest of them 1: no k is so steep that all become 0."""
    logs = _log_weights(scores, k=k, x0=x0)
    return np.asarray(np.exp(logs - logs.max(initial=-np.inf)))


def _log_weights(scores: ArrayLike, *, k: float, x0: float) -> Floats:
    if not 0 < k < np.inf or not np.isfinite(x0):
        raise ScaleError(f"k {k}, x0 {x0}; expected k above 0 and finite numbers")
    values = np.asarray(scores, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise ScaleError("a score is NaN or infinite; leave nulls out and count them")
    from scipy.special import log_expit

    return np.asarray(log_expit(-k * (np.clip(values, -1.0, 1.0) - x0)))


def reliability_weighted_mean(scores: ArrayLike, *, k: float, x0: float) -> float:
    """Return Σ W·s / Σ W over the rescaled scores of all cases; low scores weigh more.

    Parameters
    ----------
    scores : shape (n_cases,), rescaled; above 1 where rescaled by less than the best score
    k, x0 : steepness and midpoint of the weights, see `PRESETS`

    Raises
    ------
    StatisticError
        If `scores` is empty: no data is not a score of zero.
    ScaleError
        As `reliability_weights`.

    Examples
    --------
    >>> round(reliability_weighted_mean([1, -0.5, 0.25, -1], k=3, x0=0), 4)
    -0.5769
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise StatisticError("no scores in one row: no data is not a score of zero")
    weights = relative_weights(values, k=k, x0=x0)
    return float((weights * values).sum() / weights.sum())
