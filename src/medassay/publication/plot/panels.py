"""Several measures of the same rows, a panel each: bars by model and setting with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.publication.plot.figure import Figure


def panels(rows: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> Figure:
    """Return a panel for each measure.

    Parameters
    ----------
    rows : each with measure, model, setting, score, lo and hi, in the units of its measure
    units : measure → title of its axis, in the order of the panels
    """
    models = list(dict.fromkeys(row["model"] for row in rows))
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    return Figure(
        name="panels",
        title=" and ".join(units),
        description="A panel for each measure; a bar with its 95 % interval for each model and setting.",
        caption=f"{len(rows)} bars of {len(models)} models in {len(settings)} settings; lines are 95 % intervals.",
        columns={
            **{name: name for name in ("measure", "model", "setting", "score")},
            "lo": "from",
            "hi": "to",
        },
        rows=rows,
        spec={
            "vconcat": [_panel(name, title, models, settings) for name, title in units.items()]
        },
    )


def _panel(measure: str, title: str, models: list[str], settings: list[str]) -> dict[str, Any]:
    x = {
        "field": "model",
        "type": "nominal",
        "title": None,
        "sort": models,
        "axis": {"labelAngle": -20},
    }
    side = {"xOffset": {"field": "setting", "type": "nominal", "sort": settings}}
    y = {"field": "score", "type": "quantitative", "title": title}
    colour = {"field": "setting", "type": "nominal", "title": "setting", "sort": settings}
    return {
        "width": max(320, 26 * len(models) * len(settings)),
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
