"""Rare harm: an exact upper bound on a share of events, and the mean of the worst answers."""

import numpy as np
from numpy.typing import ArrayLike

from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.statistic.interval.bootstrap import check_scores

REVISION = 1


def clopper_pearson_upper(events: int, n: int, *, level: float = 0.95) -> float:
    """Return the exact one-sided upper bound on the share of events.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26:404-413, doi:10.1093/biomet/26.4.404.

    Examples
    --------
    >>> round(clopper_pearson_upper(0, 33), 4)
    0.0868
    """
    from scipy.special import betaincinv

    if n < 1 or not 0 <= events <= n:
        raise StatisticError(f"{events} events of {n}: expected 0 <= events <= n and n >= 1")
    return 1.0 if events == n else float(betaincinv(events + 1, n - events, level))


def worst_five_percent_mean(scores: ArrayLike, *, scale: Scale = Scale()) -> float:
    """Return the mean of the lowest ⌈n/20⌉ scores.

    Examples
    --------
    >>> worst_five_percent_mean([0.5] * 19 + [0.1])
    0.1
    """
    array = np.sort(check_scores(scores, scale))
    return float(array[: -(-len(array) // 20)].mean())
