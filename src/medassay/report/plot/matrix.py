"""A heat map in the order of its dendrogram, and the flow of ranks over metrics."""

from collections.abc import Sequence

import msgspec

from medassay.report.plot.figure import Figure
from medassay.report.plot.vega import Channel, Datum, VegaView

_VALUES_UP_TO = 20
_STEP = 56  # pixels of a column
_APART = 0.12  # ranks, between models that share one


class GridCell(msgspec.Struct, frozen=True, kw_only=True):
    """The share, from 0 to 1, where a row and a column meet."""

    row: str
    column: str
    value: float


class MetricRank(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of a model by a metric, 1 is best."""

    model: str
    metric: str
    rank: int


def heat_map(
    names: Sequence[str],
    matrix: Sequence[Sequence[float | None]],
    *,
    order: Sequence[int],
    merges: Sequence[tuple[int, int, float]],
    linkage: str,
) -> Figure:
    """Return the heat map of a correlation matrix under its dendrogram.

    An undefined value says so and is not 0.

    Parameters
    ----------
    order : rows and columns as the dendrogram has them
    merges : which two clusters join at which distance, as SciPy's linkage numbers them: below n the
        rows themselves, n + k what the merge k made
    linkage : how the dendrogram was made, for the caption
    """
    names_shown = [names[at] for at in order]
    rows: list[dict[str, Datum]] = [
        {
            "row": names[i],
            "column": names[j],
            "value": matrix[i][j],
            "shown": "undefined" if matrix[i][j] is None else f"{matrix[i][j]:.2f}",
        }
        for i in order
        for j in order
    ]
    x: Channel = {
        "field": "column",
        "type": "nominal",
        "sort": names_shown,
        "title": None,
        "axis": {"labelAngle": -40},
    }
    y: Channel = {"field": "row", "type": "nominal", "sort": names_shown, "title": None}
    colour: Channel = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [-1, 0, 1], "range": ["#c2410c", "#f2f0ea", "#0a5c66"]},
    }
    layers: list[VegaView] = [
        {
            "mark": {"type": "rect", "invalid": None},
            "encoding": {"x": x, "y": y, "color": colour},
        }
    ]
    if len(names) <= _VALUES_UP_TO:
        dark = "datum.value != null && abs(datum.value) > 0.6"
        ink: Channel = {"condition": {"test": dark, "value": "#ffffff"}, "value": "#17202b"}
        text: dict[str, Channel] = {"x": x, "y": y, "text": {"field": "shown"}, "color": ink}
        layers.append({"mark": {"type": "text", "fontSize": 10}, "encoding": text})
    undefined = sum(value is None for line in matrix for value in line)
    return Figure(
        name="heat_map",
        title="Correlations",
        description="A cell for each pair, ordered so that what correlates stands together.",
        caption=f"{len(names)} × {len(names)}, {linkage}; {undefined} undefined.",
        columns={"row": "row", "column": "column", "shown": "value"},
        rows=rows,
        spec={
            "vconcat": [
                _tree(order, merges),
                {"width": {"step": _STEP}, "height": {"step": 26}, "layer": layers},
            ],
            "spacing": 2,
        },
    )


def score_grid(cells: Sequence[GridCell], *, unit: str) -> Figure:
    """Return a cell for each row and column, darker where the share is higher.

    Parameters
    ----------
    cells : rows and columns are drawn in the order in which they come
    unit : what the shares are
    """
    rows: list[dict[str, Datum]] = [
        {"row": c.row, "column": c.column, "value": c.value, "shown": f"{c.value:.2f}"}
        for c in cells
    ]
    x: Channel = {
        "field": "column",
        "type": "nominal",
        "sort": list(dict.fromkeys(cell.column for cell in cells)),
        "title": None,
        "axis": {"labelAngle": -30, "orient": "top"},
    }
    y: Channel = {
        "field": "row",
        "type": "nominal",
        "sort": list(dict.fromkeys(cell.row for cell in cells)),
        "title": None,
    }
    colour: Channel = {
        "field": "value",
        "type": "quantitative",
        "title": unit,
        "scale": {"domain": [0, 1], "range": ["#f2f0ea", "#0a5c66"]},
    }
    ink: Channel = {
        "condition": {"test": "datum.value > 0.55", "value": "#ffffff"},
        "value": "#17202b",
    }
    text: dict[str, Channel] = {"x": x, "y": y, "text": {"field": "shown"}, "color": ink}
    lowest = min(cells, key=lambda cell: cell.value)
    return Figure(
        name="score_grid",
        title=f"{unit} by part",
        description="A cell for each row and part, darker where it is more alike.",
        caption=f"Lowest: {lowest.column} of {lowest.row}, {lowest.value:.2f}.",
        columns={"row": "row", "column": "part", "shown": unit},
        rows=rows,
        spec={
            "width": {"step": 64},
            "height": {"step": 26},
            "layer": [
                {
                    "mark": {"type": "rect", "stroke": "#545e6b", "strokeWidth": 0.5},
                    "encoding": {"x": x, "y": y, "color": colour},
                },
                {"mark": {"type": "text", "fontSize": 11}, "encoding": text},
            ],
        },
    )


def _tree(order: Sequence[int], merges: Sequence[tuple[int, int, float]]) -> VegaView:
    """Return the drawing of a dendrogram over columns in their order."""
    n = len(order)
    places = {name: float(at) for at, name in enumerate(order)}
    heights = dict.fromkeys(places, 0.0)
    lines = []
    for k, (a, b, distance) in enumerate(merges):
        for side in (a, b):
            at = places[side]
            lines.append({"x": at, "x2": at, "y": heights[side], "y2": distance})
        lines.append({"x": places[a], "x2": places[b], "y": distance, "y2": distance})
        places[n + k], heights[n + k] = (places[a] + places[b]) / 2, distance
    x: Channel = {
        "field": "x",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [-0.5, n - 0.5]},
    }
    y: Channel = {
        "field": "y",
        "type": "quantitative",
        "title": "distance",
        "axis": {"tickCount": 3},
    }
    return {
        "width": _STEP * n,
        "height": 70,
        "data": {"values": lines},
        "mark": "rule",
        "encoding": {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}},
    }


def rank_flow(ranks: Sequence[MetricRank], metrics: Sequence[str]) -> Figure:
    """Return the ranks of every model from metric to metric, 1 at the top.

    Models that share a rank are drawn side by side.

    Parameters
    ----------
    ranks : of every model by each metric
    metrics : in the order of the axis
    """
    last = max((rank.rank for rank in ranks), default=1)
    x: Channel = {
        "field": "metric",
        "type": "ordinal",
        "sort": list(metrics),
        "title": None,
        "axis": {"labelAngle": -30},
    }
    y: Channel = {
        "field": "place",
        "type": "quantitative",
        "title": "rank (1 is best)",
        "scale": {"domain": [last + 0.5, 0.5], "nice": False},
        "axis": {"values": list(range(1, last + 1)), "format": "d"},
    }
    colour: Channel = {"field": "model", "type": "nominal", "title": None}
    return Figure(
        name="rank_flow",
        title="Ranks from metric to metric",
        description="A line for each model through its rank by each metric.",
        caption=(
            f"{len({rank.model for rank in ranks})} models, {len(metrics)} metrics; side by side:"
            " they share a rank."
        ),
        columns={"model": "model", "metric": "metric", "rank": "rank"},
        rows=_side_by_side(ranks),
        spec={
            "width": {"step": 60},
            "height": max(120, min(400, 60 * last)),
            "mark": {"type": "line", "point": {"size": 50}},
            "encoding": {"x": x, "y": y, "color": colour},
        },
    )


def _side_by_side(ranks: Sequence[MetricRank]) -> list[dict[str, Datum]]:
    """Return the ranks with the place of each on the axis: those that share one stand around it."""
    sharing: dict[tuple[str, int], list[str]] = {}
    for rank in ranks:
        sharing.setdefault((rank.metric, rank.rank), []).append(rank.model)
    places: list[dict[str, Datum]] = []
    for rank in ranks:
        models = sorted(sharing[rank.metric, rank.rank])
        apart = min(_APART, 0.8 / len(models))
        off = models.index(rank.model) - (len(models) - 1) / 2
        place = round(rank.rank + apart * off, 4)
        places.append(
            {"model": rank.model, "metric": rank.metric, "rank": rank.rank, "place": place}
        )
    return places
