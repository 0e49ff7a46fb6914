"""Several measures of the same rows, a panel each: bars by model and setting with their
intervals.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.report.plot.figure import Figure


def panels(
    rows: Sequence[Mapping[str, Any]], units: Mapping[str, str], *, beside: str = "setting"
) -> Figure:
    """Return a panel for each measure.

    Parameters
    ----------
    rows : each with measure, model, score, lo, hi, in the units of its measure, and the field
        `beside`
    units : measure → title of its axis, in the order of the panels
    beside : whose values stand beside each other for each model
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    values = list(dict.fromkeys(row[beside] for row in rows))
    beside_text = f"in {len(values)} settings" if beside == "setting" else " and ".join(values)
    return Figure(
        name="panels",
        title=" and ".join(units),
        description=(
            f"A panel for each measure; a bar with its 95 % interval for each model and {beside}."
        ),
        caption=(
            f"{len(rows)} bars of {len(models)} models, {beside_text}; lines are 95 % intervals."
        ),
        columns={
            **{name: name for name in ("measure", "model", beside, "score")},
            "lo": "from",
            "hi": "to",
        },
        rows=rows,
        spec={
            "vconcat": [
                _panel(name, title, models, (beside, values)) for name, title in units.items()
            ]
        },
    )


def _panel(
    measure: str, title: str, models: list[str], beside: tuple[str, list[str]]
) -> dict[str, Any]:
    field, values = beside
    x = {
        "field": "model",
        "type": "nominal",
        "title": None,
        "sort": models,
        "axis": {"labelAngle": -20},
    }
    side = {"xOffset": {"field": field, "type": "nominal", "sort": values}}
    y = {"field": "score", "type": "quantitative", "title": title}
    colour = {"field": field, "type": "nominal", "title": field, "sort": values}
    return {
        "width": max(320, 26 * len(models) * len(values)),
        "height": 200,
        "transform": [{"filter": {"field": "measure", "equal": measure}}],
        "layer": [
            {"mark": "bar", "encoding": {"x": x, **side, "y": y, "color": colour}},
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    **side,
                    "y": {**y, "field": "lo"},
                    "y2": {"field": "hi"},
                },
            },
        ],
    }
