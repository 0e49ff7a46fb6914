"""McNemar's exact test on paired right/wrong answers."""

from medassay.errors import StatisticError

REVISION = 1


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p value from the discordant pairs.

    Parameters
    ----------
    only_a, only_b : items that only the first, only the second model answered rightly

    References
    ----------
    McNemar (1947), Psychometrika 12:153-157, doi:10.1007/BF02295996.

    Examples
    --------
    >>> round(mcnemar(10, 2), 9), mcnemar(0, 0)
    (0.038574219, 1.0)
    """
    from scipy.special import bdtr

    if only_a < 0 or only_b < 0:
        raise StatisticError("counts of discordant pairs are negative")
    n = only_a + only_b
    return 1.0 if n == 0 else min(1.0, 2.0 * float(bdtr(min(only_a, only_b), n, 0.5)))
