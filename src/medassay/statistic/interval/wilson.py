"""Wilson's score interval."""

from math import sqrt
from statistics import NormalDist

from medassay.errors import StatisticError

REVISION = 1


def wilson_interval(successes: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval for a proportion, clipped to [0, 1].

    With a sum of scores in [0, 1] instead of a count it is conservative, since
    Var(score) <= mean·(1 − mean).

    References
    ----------
    Wilson (1927), J. Am. Stat. Assoc. 22:209-212, doi:10.1080/01621459.1927.10502953.

    Examples
    --------
    >>> [round(end, 6) for end in wilson_interval(29, 33)]
    [0.726745, 0.951838]
    """
    if n < 1:
        raise StatisticError("no items: no data is not a proportion of zero")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = share + z * z / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
