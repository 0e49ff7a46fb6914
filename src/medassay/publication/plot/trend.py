"""Scores over publications. A line never crosses a change of bank or methodology."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.publication.plot.figure import SHAPES, Figure

_MOST = 8  # more lines than colours and shapes cannot be told apart


def trend(
    points: Sequence[Mapping[str, Any]],
    markers: Sequence[str],
    *,
    unit: str,
    factor: float = 1.0,
) -> Figure:
    """Return the trend of the models with the highest latest scores.

    Parameters
    ----------
    points : each with publication, row (the model's name), series, score, lo and hi, oldest first
    markers : the publications that began a new series
    unit : of the axis
    factor : from scores to that unit
    """
    latest: dict[str, float] = {}
    for point in points:
        latest[point["row"]] = point["score"]
    shown = sorted(latest, key=lambda row: (-latest[row], row))[:_MOST]
    rows = [
        {
            "publication": point["publication"],
            "row": point["row"],
            "series": point["series"],
            "line": f"{point['row']} {point['series']}",
            **{key: factor * point[key] for key in ("score", "lo", "hi")},
        }
        for point in points
        if point["row"] in shown
    ]
    order = list(dict.fromkeys(point["publication"] for point in points))
    x = {
        "field": "publication",
        "type": "ordinal",
        "sort": order,
        "title": None,
        "axis": {"labelAngle": -30},
        "scale": {"domain": order},
    }
    y = {"field": "score", "type": "quantitative", "title": unit, "scale": {"zero": False}}
    colour = {"field": "row", "type": "nominal", "title": None}
    return Figure(
        name="trend",
        title="Scores over publications",
        description="Scores with 95 % intervals; lines join publications of the same question bank and "
        "methodology only, a dashed line marks where either changed.",
        caption=f"{len(order)} publications, {len(markers)} changes of bank or methodology; scores on "
        "two sides of a dashed line cannot be compared.",
        columns={
            "publication": "publication",
            "row": "model",
            "series": "series",
            "score": "score",
            "lo": "from",
            "hi": "to",
        },
        rows=rows,
        spec={
            "width": {"step": max(60, 480 // max(1, len(order)))},
            "height": 280,
            "layer": [
                {
                    "data": {"values": [{"publication": name} for name in markers]},
                    "mark": {"type": "rule", "strokeDash": [5, 4]},
                    "encoding": {"x": x},
                },
                {
                    "mark": "line",
                    "encoding": {"x": x, "y": y, "color": colour, "detail": {"field": "line"}},
                },
                {
                    "mark": {"type": "rule", "opacity": 0.7},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "lo"},
                        "y2": {"field": "hi"},
                        "color": colour,
                    },
                },
                {
                    "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1},
                    "encoding": {
                        "x": x,
                        "y": y,
                        "color": colour,
                        "shape": {**colour, "scale": {"range": SHAPES}},
                    },
                },
            ],
        },
    )
