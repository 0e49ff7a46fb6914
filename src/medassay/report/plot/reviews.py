"""Mean scores of reviews over time."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.report.plot.figure import SHAPES, Figure
from medassay.report.plot.trend import end_labels

_HEIGHT = 260  # pixels
_MAX_SERIES = 8  # more lines than colours and shapes cannot be told apart


def review_trend(points: Sequence[Mapping[str, Any]], *, aspect: str) -> Figure:
    """Return mean scores from 1 to 5 by month, a line for each category or qualification.

    Parameters
    ----------
    points : each with month, name, mean, lo, hi and reviews
    """
    totals: dict[str, int] = {}
    for point in points:
        totals[point["name"]] = totals.get(point["name"], 0) + int(point["reviews"])
    names_shown = sorted(totals, key=lambda name: (-totals[name], name))[:_MAX_SERIES]
    rows = [
        {
            **{key: point[key] for key in ("month", "lo", "hi", "reviews")},
            "row": point["name"],
            "score": point["mean"],
        }
        for point in points
        if point["name"] in names_shown
    ]
    months = sorted({row["month"] for row in rows})
    x = {
        "field": "month",
        "type": "ordinal",
        "title": None,
        "sort": months,
        "axis": {"labelAngle": 0},
    }
    y = {
        "field": "score",
        "type": "quantitative",
        "title": f"mean score, {aspect}",
        "scale": {"domain": [1, 5]},
    }
    colour = {"field": "row", "type": "nominal", "legend": None}
    left_out = len(totals) - len(names_shown)
    reviews = sum(int(row["reviews"]) for row in rows)
    rest = f"; {left_out} more with fewer reviews stand in the table" if left_out else ""
    return Figure(
        name="review_trend",
        title="Mean scores of reviews by month",
        description="Mean scores from 1 to 5 with 95 % intervals from resampling items.",
        caption=f"{reviews} scores in {len(months)} month{'s' if len(months) != 1 else ''}{rest}.",
        columns={
            "month": "month",
            "row": "of",
            "score": "mean",
            "lo": "from",
            "hi": "to",
            "reviews": "scores",
        },
        rows=rows,
        spec={
            "width": {"step": max(70, 480 // max(1, len(months)))},
            "height": _HEIGHT,
            "encoding": {"x": x},
            "layer": [
                {"mark": "line", "encoding": {"y": y, "color": colour}},
                {
                    "mark": {"type": "rule", "opacity": 0.7},
                    "encoding": {
                        "y": {**y, "field": "lo"},
                        "y2": {"field": "hi"},
                        "color": colour,
                    },
                },
                {
                    "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1},
                    "encoding": {
                        "y": y,
                        "color": colour,
                        "shape": {**colour, "scale": {"range": SHAPES}},
                    },
                },
                {
                    "data": {"values": end_labels(rows, "month", _HEIGHT)},
                    "mark": {"type": "text", "align": "left", "dx": 9},
                    "encoding": {"y": {**y, "field": "y"}, "text": {"field": "row"}},
                },
            ],
        },
    )
