"""How many items a run needs before it is paid for: with the power that its board will then
have.
"""

import msgspec

from medassay.errors import InputError
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.statistic.test.planner import (
    critical_value,
    difference_shown,
    items_to_show,
    power_graded,
    power_right_wrong,
)

_NEARBY = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the difference asked for


class NeededItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items that show a difference; None where ten million are not enough."""

    difference: float
    items: int | None


class ItemPlan(msgspec.Struct, frozen=True, kw_only=True):
    """With how many items a board shows a difference.

    Attributes
    ----------
    difference, discordance, deviation, models : what was asked, see `plan_items`
    items : needed for the difference; None where ten million are not enough
    power, shown : of the number of items that was asked about: the power, 0 to 1, and the least
        difference shown
    nearby : items for smaller and larger differences
    """

    difference: float
    discordance: float | None
    deviation: float | None
    models: int
    items: int | None
    power: float | None
    shown: float | None
    nearby: list[NeededItems]


def plan_items(
    difference: float,
    *,
    discordance: float | None = None,
    deviation: float | None = None,
    items: int | None = None,
    models: int = 2,
) -> ItemPlan:
    """Return the items with which a board shows the better of two models to be better, with 80 %
    power.

    Parameters
    ----------
    difference : in units of the score
    discordance : of right-or-wrong answers, the share of items that just one model answers rightly
    deviation : of graded scores, the standard deviation of the items' differences
    items : a number of items whose power is told, and what difference they show
    models : how many models the board ranks: all their pairs are tested at once

    Raises
    ------
    InputError
        When not exactly one of discordance and deviation is given, or a number is out of reach.
    ScaleError
        When the models cannot differ by so much with this discordance.

    Examples
    --------
    >>> found = plan_items(0.1, discordance=0.2, items=100)
    >>> found.items, round(found.power, 3), round(found.shown, 3)
    (170, 0.527, 0.13)
    """
    _check(difference, discordance, deviation, items)
    if models < 2:
        raise InputError(f"--models {models}: expected at least 2")

    def needed(size: float) -> int | None:
        return items_to_show(size, models=models, discordance=discordance, deviation=deviation)

    power = sentence = None
    if items is not None:
        c = critical_value(models)
        if discordance is not None:
            power = power_right_wrong(items, discordance, difference, c)
        else:
            power = power_graded(items, deviation or 0.0, difference, c)
        sentence = difference_shown(
            items, models=models, discordance=discordance, deviation=deviation
        )
    sizes = [difference * factor for factor in _NEARBY]
    nearby = [d for d in sizes if discordance is None or d <= discordance]
    return ItemPlan(
        difference=difference,
        discordance=discordance,
        deviation=deviation,
        models=models,
        items=needed(difference),
        power=power,
        shown=sentence,
        nearby=[NeededItems(difference=d, items=needed(d)) for d in nearby],
    )


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
    if items is not None and items < SMALL_N:
        raise InputError(
            f"--items {items}: expected at least {SMALL_N}; on fewer a board ranks no model"
        )

    if deviation is not None and not 1e-6 < difference / deviation < 1e6:
        raise InputError(
            f"--difference {difference:g} with --deviation {deviation:g}: out of all proportion"
        )
