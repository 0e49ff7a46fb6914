"""Items of a bank by how hard they are and how well they tell models apart."""

import random
from collections.abc import Sequence

import msgspec

from medassay.report.plot.figure import Figure
from medassay.report.plot.vega import Channel

_APART = 0.03  # shares, to either side
_X: Channel = {
    "field": "place",
    "type": "quantitative",
    "title": "share of models that solve it",
    "scale": {"domain": [-0.03, 1.03], "nice": False},
}
_Y: Channel = {
    "field": "discrimination",
    "type": "quantitative",
    "title": "discrimination (correlation with the rest)",
    "scale": {"domain": [-1, 1]},
}
_READING: Channel = {
    "field": "reading",
    "type": "nominal",
    "sort": ["other", "suspect"],
    "title": None,
}


class ItemPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How hard an item is, and how well it tells models apart.

    Attributes
    ----------
    difficulty : share of models that are right, 0 to 1
    discrimination : correlation with the rest, -1 to 1
    suspect : whether strong models miss it together
    """

    item: str
    difficulty: float
    discrimination: float
    suspect: bool


def item_map(points: Sequence[ItemPosition]) -> Figure:
    """Return a point for each item: the share of models that solve it, and its discrimination."""
    jitter = random.Random("items")  # few models make few places: points would hide each other
    rows = [
        {
            **msgspec.structs.asdict(point),
            "place": round(point.difficulty + jitter.uniform(-_APART, _APART), 4),
            "reading": "suspect" if point.suspect else "other",
        }
        for point in points
    ]
    suspects = sum(point.suspect for point in points)
    against = sum(point.discrimination < 0 for point in points)
    return Figure(
        name="item_map",
        title="Items by difficulty and discrimination",
        description=(
            "A point for each item; below zero stronger models miss it more often than weaker ones."
        ),
        caption=(
            f"{len(rows)} items that some models solve and some do not, {against} below zero,"
            f" {suspects} suspect: strong models miss them together."
        ),
        columns={
            "item": "item",
            "difficulty": "share right",
            "discrimination": "discrimination",
            "reading": "reading",
        },
        rows=rows,
        spec={
            "width": 460,
            "height": 320,
            "layer": [
                {
                    "mark": {"type": "rule", "strokeDash": [4, 3]},
                    "encoding": {"y": {"datum": 0, "type": "quantitative"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 30, "opacity": 0.55},
                    "encoding": {
                        "x": _X,
                        "y": _Y,
                        "color": _READING,
                        "shape": {**_READING, "legend": None},
                    },
                },
            ],
        },
    )
