"""How many items would separate two models: two-sided 5 %, 80 % power."""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from medassay.errors import ScaleError, StatisticError
from medassay.statistic.interval.bootstrap import TIE

POWER = 0.8
_Z_TEST, _Z_POWER = 1.959963984540054, 0.8416212335729143
_EXACT_UP_TO = 100_000  # items; beyond, the exact sums say what the formula says


@dataclass(frozen=True, kw_only=True)
class Needed:
    """Items needed: by the formula, and the first number at which the exact test has the power."""

    n_asymptotic: int
    n_exact: int | None
    power: float | None


def _check(discordance: float, difference: float) -> None:
    if not 0 < discordance <= 1 or discordance < abs(difference) - TIE:
        raise ScaleError(
            f"discordance {discordance:g} with a difference of {difference:g}: models that differ by so "
            "much disagree on at least that share of items"
        )


def items_paired(
    discordance: float, difference: float, *, critical: float = _Z_TEST
) -> int | None:
    """Return the items that McNemar's test needs by the formula, None for no difference.

    Parameters
    ----------
    discordance : share of items that just one of the two answers rightly
    critical : the value that a standardised difference must exceed; 1.96, or c of a simultaneous order

    References
    ----------
    Miettinen (1968), Biometrics 24:339-352; Connor (1987), Biometrics 43:207-211.

    Examples
    --------
    >>> items_paired(0.2, 0.05), items_paired(0.2, 0.1)
    (626, 155)
    """
    _check(discordance, difference)
    if difference == 0:
        return None
    spread = sqrt(max(0.0, discordance - difference**2))
    return ceil((critical * sqrt(discordance) + _Z_POWER * spread) ** 2 / difference**2)


def items_exact(discordance: float, difference: float) -> Needed | None:
    """Return formula and exact count for McNemar's exact test, None for no difference.

    Examples
    --------
    >>> items_exact(0.2, 0.05).n_exact
    658
    """
    n = items_paired(discordance, difference)
    if n is None:
        return None
    if n > _EXACT_UP_TO:
        return Needed(n_asymptotic=n, n_exact=None, power=None)
    found = n
    while (power := exact_power(found, discordance, difference)) < POWER:
        found += 1
    return Needed(n_asymptotic=n, n_exact=found, power=power)


def exact_power(n: int, discordance: float, difference: float) -> float:
    """Return the power of McNemar's exact test at the two-sided 5 % level with `n` items.

    Examples
    --------
    >>> round(exact_power(658, 0.2, 0.05), 6)
    0.800613
    """
    from scipy.stats import binom

    _check(discordance, difference)
    if n < 1:
        raise StatisticError(f"{n} items: expected at least one")
    reach = 8 * sqrt(n * discordance * (1 - discordance)) + 8
    centre = n * discordance
    discordant = np.arange(max(0, int(centre - reach)), min(n, ceil(centre + reach)) + 1)
    # The largest count on the smaller side that is still significant, -1 where none is.
    side = binom.ppf(0.025, discordant, 0.5)
    side = np.where(2 * binom.cdf(side, discordant, 0.5) > 0.05, side - 1, side)
    first = min(1.0, max(0.0, (discordance + difference) / (2 * discordance)))
    both = binom.cdf(side, discordant, first) + binom.cdf(side, discordant, 1 - first)
    return float((binom.pmf(discordant, n, discordance) * both).sum())


def items_graded(
    deviation: float, difference: float, *, critical: float = _Z_TEST
) -> int | None:
    """Return the items that a paired t test needs, None for no difference.

    Parameters
    ----------
    deviation : standard deviation of the items' differences

    Examples
    --------
    >>> items_graded(0.35, 0.05), items_graded(0.2, 0.02)
    (385, 785)
    """
    if deviation < 0:
        raise StatisticError(f"standard deviation {deviation:g}: expected 0 or more")
    if difference == 0:
        return None
    return max(1, ceil(((critical + _Z_POWER) * deviation / difference) ** 2))
