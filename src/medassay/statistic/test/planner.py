"""How many items would show the difference of two models: 5 % error, 80 % power.

First for one pair with a test of its own (McNemar, t), as other planners count; then for a pair of
a board.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil, sqrt

import msgspec
import numpy as np

from medassay.errors import ScaleError, StatisticError
from medassay.statistic.interval.bootstrap import TIE

POWER = 0.8
_Z_TEST, _Z_POWER = 1.959963984540054, 0.8416212335729143
_EXACT_UP_TO = 100_000  # items; beyond, the exact sums say what the formula says


class ItemsNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """Items needed: by the formula, and the first number at which the exact test has the power."""

    n_asymptotic: int
    n_exact: int | None
    power: float | None


def _check(discordance: float, difference: float) -> None:
    if not 0 < discordance <= 1:
        raise ScaleError(f"discordance {discordance:g}; expected a share above 0, at most 1")
    if discordance < abs(difference) - TIE:
        raise ScaleError(
            f"discordance {discordance:g} with a difference of {difference:g}: models that differ"
            " by so much disagree on at least that share of items"
        )


def items_paired(discordance: float, difference: float) -> int | None:
    """Return the items that McNemar's test needs by the formula, None for no difference.

    Parameters
    ----------
    discordance : share of items that just one of the two answers rightly

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
    return ceil((_Z_TEST * sqrt(discordance) + _Z_POWER * spread) ** 2 / difference**2)


def items_exact(discordance: float, difference: float) -> ItemsNeeded | None:
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
        return ItemsNeeded(n_asymptotic=n, n_exact=None, power=None)
    n_enough = n
    while (power := exact_power(n_enough, discordance, difference)) < POWER:
        n_enough += 1
    return ItemsNeeded(n_asymptotic=n, n_exact=n_enough, power=power)


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
    both_sides = binom.cdf(side, discordant, first) + binom.cdf(side, discordant, 1 - first)
    return float((binom.pmf(discordant, n, discordance) * both_sides).sum())


def items_graded(deviation: float, difference: float) -> int | None:
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
    return max(1, ceil(((_Z_TEST + _Z_POWER) * deviation / difference) ** 2))


# The planner of boards: power of one pair under the relation of `ranking/relation.py`
# (specification of ranks, R6).

_C_OF_TWO = 1.983  # the mean of what step-down gives for two models
_FEWEST, _IN_A_ROW = 10, 3
_MOST_ITEMS = 10_000_000


@lru_cache(maxsize=64)
def critical_value(models: int) -> float:
    """Return the c that a board of so many models has, about: Tukey's for more than two.

    Examples
    --------
    >>> round(critical_value(10), 3)
    3.164
    """
    from scipy.stats import studentized_range

    if models < 2:
        raise StatisticError(f"{models} models: expected at least 2")
    return (
        _C_OF_TWO if models == 2 else float(studentized_range.ppf(0.95, models, np.inf) / sqrt(2))
    )


def power_right_wrong(n: int, discordance: float, difference: float, c: float) -> float:
    """Return the probability that the better of two models is shown to be better, with right and
    wrong answers to n items.

    Parameters
    ----------
    discordance : share of items that just one of the two answers rightly
    difference : of the two shares of right answers
    """
    from scipy.stats import binom

    _check(discordance, difference)
    reach = 9 * sqrt(n * discordance * (1 - discordance)) + 9
    centre = n * discordance
    k = np.arange(max(0, int(centre - reach)), min(n, ceil(centre + reach)) + 1)
    share = min(1.0, (discordance + difference) / (2 * discordance))
    # x of k discordant items are the better model's: shown where 2x − k − 1 > c·√k.
    least = np.floor((k + 1 + c * np.sqrt(k)) / 2 + TIE)
    return float((binom.pmf(k, n, discordance) * binom.sf(least, k, share)).sum())


def power_graded(n: int, deviation: float, difference: float, c: float) -> float:
    """Return the probability that the better of two models is shown to be better, with graded
    scores of n items.

    Parameters
    ----------
    deviation : standard deviation of the items' differences
    """
    from scipy.stats import nct

    if n <= c * c:
        return 0.0
    if deviation == 0:
        return 1.0
    t = sqrt((n - 1) * c * c / (n - c * c))
    return float(nct.sf(t, n - 1, difference * sqrt(n) / deviation))


def fewest_items(power: Callable[[int], float]) -> int | None:
    """Return the smallest number of items from 10 on from which the power is at least 80 % three
    times in a row; None beyond 10 million.

    Power of right and wrong answers goes up and down by single items, hence three. Beyond 20,000
    items it is a crossing of the 80 % and perhaps not the first of them: they lie within a few
    thousandths of the number.
    """
    high = _FEWEST
    while power(high) < POWER:
        high *= 2
        if high > _MOST_ITEMS:
            return None
    low = max(_FEWEST, high // 2)
    swing = _SWING * low if low < _EXACT_TO else 0.0
    while high - low > max(1.0, swing):  # far from the goal power only rises
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    n = max(_FEWEST, low - int(_SWING * low if low < _EXACT_TO else 0) - _IN_A_ROW)
    run = 0
    while run < _IN_A_ROW:
        run = run + 1 if power(n) >= POWER else 0
        n += 1
    return n - _IN_A_ROW


_SWING = 0.03  # of n: power rises over a longer stretch than it goes up and down
_EXACT_TO = (
    20_000  # items: from there on the stretch would take minutes, and the number is "about" anyway
)


def items_to_show(
    difference: float,
    *,
    models: int = 2,
    discordance: float | None = None,
    deviation: float | None = None,
    c: float | None = None,
) -> int | None:
    """Return how many items a board needs to show one of two models to be better with 80 % power;
    None for no difference.

    Parameters
    ----------
    models : how many the board ranks
    discordance, deviation : of right and wrong answers, or of graded scores; just one of them
    c : the board's own critical value, where it is known

    Examples
    --------
    >>> items_to_show(0.1, discordance=0.2), items_to_show(0.1, deviation=0.35, models=10)
    (170, 205)
    """
    if (discordance is None) == (deviation is None):
        raise StatisticError("expected a discordance or a deviation, not both")
    if difference == 0:
        return None
    critical, size = critical_value(models) if c is None else c, abs(difference)
    if discordance is not None:
        return fewest_items(lambda n: power_right_wrong(n, discordance, size, critical))
    spread = deviation or 0.0
    return fewest_items(lambda n: power_graded(n, spread, size, critical))


def difference_shown(
    items: int,
    *,
    models: int = 2,
    discordance: float | None = None,
    deviation: float | None = None,
) -> float | None:
    """Return the smallest difference that so many items show with 80 % power.

    None where even the largest is not shown.
    """
    from scipy.optimize import brentq

    c = critical_value(models)
    if discordance is not None:
        most, power = discordance, partial(power_right_wrong, items, discordance)
    else:
        spread = deviation or 0.0
        power = partial(power_graded, items, spread)
        most = 1.0
        while power(most, c) < POWER:
            most *= 2
            if most > _MOST_ITEMS:
                return None
    if power(most, c) < POWER:
        return None
    return float(brentq(lambda d: power(d, c) - POWER, 0.0, most, xtol=1e-7))


_MOST_TOLD = 1_000_000  # items; a larger number says no more than that nobody will ask so many


def items_to_tell(
    difference: float, se: float, n: int, *, c: float, right_wrong: bool, width: float = 1.0
) -> int | None:
    """Return about how many items would show which of two rows of a board is better, if they go on
    to differ so.

    Parameters
    ----------
    difference, se, n : of the pair on its common items, in units of the score
    c : the critical value of the board
    right_wrong : whether scores are right or wrong, each item by itself
    width : of the scale

    Returns
    -------
    int or None
        None where they do not differ, or more than a million would be needed.
    """
    size = abs(difference) / width
    if size <= TIE or se <= TIE:
        return None
    if right_wrong:
        n_items = items_to_show(size, discordance=min(1.0, n * (se / width) ** 2), c=c)
    else:
        spread = sqrt(max(0.0, n * se**2 - difference**2)) / width
        n_items = items_to_show(size, deviation=spread, c=c)
    return None if n_items is None or n_items > _MOST_TOLD else n_items
