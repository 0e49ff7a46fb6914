"""Scores over publications. A line never crosses a change of bank or methodology."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.report.plot.figure import SHAPES, Figure

_HEIGHT, _LABEL = 280, 13  # pixels of the figure, and of a line of text
_MAX_SERIES = 8  # more lines than colours and shapes cannot be told apart
_NAMED = 12  # rows that are not drawn, named in the caption


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
    rows_shown = sorted(latest, key=lambda row: (-latest[row], row))[:_MAX_SERIES]
    rows = [
        {
            "publication": point["publication"],
            "row": point["row"],
            "series": point["series"],
            "line": f"{point['row']} {point['series']}",
            **{key: factor * point[key] for key in ("score", "lo", "hi")},
        }
        for point in points
        if point["row"] in rows_shown
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
    colour = {"field": "row", "type": "nominal", "legend": None}
    return Figure(
        name="trend",
        title="Scores over publications",
        description=(
            "Scores with 95 % intervals; lines join publications of the same question bank and "
            "methodology only, a dashed line marks where either changed."
        ),
        caption=_caption(len(order), len(markers), sorted(latest.keys() - set(rows_shown))),
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
            "height": _HEIGHT,
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
                {
                    "data": {"values": end_labels(rows, "publication", _HEIGHT)},
                    "mark": {"type": "text", "align": "left", "dx": 9},
                    "encoding": {"x": x, "y": {**y, "field": "y"}, "text": {"field": "row"}},
                },
            ],
        },
    )


def _caption(publications: int, changes: int, left_out: Sequence[str]) -> str:
    if not publications:
        return "No points of this metric."
    text = f"{publications} publication{'s' if publications > 1 else ''}"
    if changes:
        times = "once" if changes == 1 else f"{changes} times"
        text += (
            f"; bank or methodology changed {times}, and scores on two sides of a dashed line"
            " cannot be compared."
        )
    else:
        text += " of one series."
    if left_out:
        named = ", ".join(left_out[:_NAMED])
        more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
        text += (
            f" Drawn are the {_MAX_SERIES} with the highest latest scores; in the table alone:"
            f" {named}{more}."
        )
    return text


def end_labels(rows: Sequence[Mapping[str, Any]], over: str, height: int) -> list[dict[str, Any]]:
    """Return a name beside the last point of every row, moved down where two would collide.

    Parameters
    ----------
    over : the column along which the lines run
    height : of the figure, in pixels
    """
    last = {row["row"]: row for row in rows}
    ends = [row[key] for row in rows for key in ("score", "lo", "hi") if row[key] is not None]
    apart = (max(ends) - min(ends)) * _LABEL / height if ends else 0.0
    labels: list[dict[str, Any]] = []
    for row in sorted(last.values(), key=lambda row: -row["score"]):
        above = [label["y"] for label in labels if label[over] == row[over]]
        at = min([row["score"], *(y - apart for y in above)])
        labels.append({over: row[over], "row": row["row"], "y": at})
    return labels
