"""How many items a run needs before it is paid for."""

from math import sqrt
from typing import Any

from medassay.errors import InputError
from medassay.statistic.test.planner import exact_power, items_exact, items_graded

_NEARBY = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the difference asked for


def plan_items(
    difference: float,
    *,
    discordance: float | None = None,
    deviation: float | None = None,
    items: int | None = None,
) -> dict[str, Any]:
    """Return the items needed to find a difference with 80 % power at the two-sided 5 % level.

    Parameters
    ----------
    difference : in units of the score
    discordance : of right-or-wrong answers, the share of items that just one model answers rightly
    deviation : of graded scores, the standard deviation of the items' differences
    items : a number of items whose power is told

    Raises
    ------
    InputError
        When not exactly one of discordance and deviation is given, or the difference is not positive.
    ScaleError
        When the models cannot differ by so much with this discordance.

    Examples
    --------
    >>> found = plan_items(0.1, discordance=0.2, items=100)
    >>> found["items"], found["by_formula"], round(found["power"], 3)
    (168, 155, 0.544)
    """
    _check(difference, discordance, deviation, items)

    def needed(wanted: float) -> tuple[int | None, int | None]:
        if discordance is None:
            n = items_graded(deviation or 0.0, wanted)
            return n, n
        found = items_exact(discordance, wanted)
        return (None, None) if found is None else (found.n_exact, found.n_asymptotic)

    exact, formula = needed(difference)
    power = None
    if items is not None:
        if discordance is not None:
            power = exact_power(items, discordance, difference)
        else:
            power = _graded_power(items, deviation or 0.0, difference)
    wanted = [difference * factor for factor in _NEARBY]
    nearby = [d for d in wanted if discordance is None or d <= discordance]
    return {
        "difference": difference,
        "discordance": discordance,
        "deviation": deviation,
        "test": "paired t" if discordance is None else "McNemar's exact test",
        "items": formula if exact is None else exact,
        "by_formula": formula,
        "power": power,
        "nearby": [{"difference": d, "items": needed(d)[0] or needed(d)[1]} for d in nearby],
    }


def _check(
    difference: float, discordance: float | None, deviation: float | None, items: int | None
) -> None:
    """Refuse wishes that no number of items could be told for."""
    if (discordance is None) == (deviation is None):
        raise InputError(
            "give --discordance for right-or-wrong answers, or --deviation for graded scores"
        )
    if deviation is not None and not 0 < deviation < float("inf"):
        raise InputError(f"--deviation {deviation:g}: expected a number above 0")
    if not 0 < difference < float("inf"):
        raise InputError(f"--difference {difference:g}: expected a number above 0")
    if items is not None and items < 1:
        raise InputError(f"--items {items}: expected at least 1")

    if deviation is not None and not 1e-6 < difference / deviation < 1e6:
        raise InputError(
            f"--difference {difference:g} with --deviation {deviation:g}: out of all proportion"
        )


def _graded_power(items: int, deviation: float, difference: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(difference * sqrt(items) / deviation - 1.959963984540054))
