"""Several measures of the same rows, a panel each: bars by model and setting with their
intervals.
"""

from collections.abc import Mapping, Sequence

import msgspec

from medassay.report.plot.bars import bar_layers
from medassay.report.plot.figure import Figure
from medassay.report.plot.vega import Channel, VegaView


class PanelBar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar with its interval, in the unit of its measure; bars of a model stand side by side."""

    measure: str
    model: str
    beside: str
    score: float
    lo: float
    hi: float


def panels(
    bars: Sequence[PanelBar], units: Mapping[str, str], *, beside: str = "setting"
) -> Figure:
    """Return a panel for each measure.

    Parameters
    ----------
    bars : in the order in which they stand
    units : measure → title of its axis, in the order of the panels
    beside : what the bars of one model differ in
    """
    models = list(dict.fromkeys(bar.model for bar in bars))
    values = list(dict.fromkeys(bar.beside for bar in bars))
    beside_text = f"in {len(values)} settings" if beside == "setting" else " and ".join(values)
    return Figure(
        name="panels",
        title=" and ".join(units),
        description=(
            f"A panel for each measure; a bar with its 95 % interval for each model and {beside}."
        ),
        caption=(
            f"{len(bars)} bars of {len(models)} models, {beside_text}; lines are 95 % intervals."
        ),
        columns={
            **{name: name for name in ("measure", "model", beside, "score")},
            "lo": "from",
            "hi": "to",
        },
        rows=[
            {
                "measure": bar.measure,
                "model": bar.model,
                beside: bar.beside,
                "score": bar.score,
                "lo": bar.lo,
                "hi": bar.hi,
            }
            for bar in bars
        ],
        spec={
            "vconcat": [
                _panel(name, title, models, (beside, values)) for name, title in units.items()
            ]
        },
    )


def _panel(measure: str, title: str, models: list[str], beside: tuple[str, list[str]]) -> VegaView:
    field, values = beside
    x: Channel = {
        "field": "model",
        "type": "nominal",
        "title": None,
        "sort": models,
        "axis": {"labelAngle": -20},
    }
    side: Channel = {"field": field, "type": "nominal", "sort": values}
    y: Channel = {"field": "score", "type": "quantitative", "title": title}
    colour: Channel = {"field": field, "type": "nominal", "title": field, "sort": values}
    return {
        "width": max(320, 26 * len(models) * len(values)),
        "height": 200,
        "transform": [{"filter": {"field": "measure", "equal": measure}}],
        "layer": bar_layers(x, side, y, colour),
    }
