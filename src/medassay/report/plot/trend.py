"""Scores over publications. A line never crosses a change of bank or methodology."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import msgspec
from msgspec.structs import replace

from medassay.report.plot.figure import SHAPES, Figure
from medassay.report.plot.vega import Channel, Datum, VegaView

_HEIGHT, _LABEL = 280, 13  # pixels of the figure, and of a line of text
_MAX_SERIES = 8  # more lines than colours and shapes cannot be told apart: each gets a panel
_MAX_PANELS, _PANELS_A_LINE = 40, 4
_NAMED = 12  # rows that are not drawn, named in the caption


class LinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of the line of a row: its place along the axis, its score and the interval, if any.

    `place` is a number of tokens, or the name of a publication or month.
    """

    row: str
    place: int | str
    score: float
    lo: float | None
    hi: float | None

    def times(self, factor: float) -> Self:
        """Return the point with its score and interval in another unit."""
        lo, hi = (None if end is None else factor * end for end in (self.lo, self.hi))
        return replace(self, score=factor * self.score, lo=lo, hi=hi)

    def heights(self) -> Iterator[float]:
        """Yield the score and the ends of its interval."""
        yield from (value for value in (self.score, self.lo, self.hi) if value is not None)


class SeriesPoint(LinePoint, frozen=True, kw_only=True):
    """A score in a publication; lines join points of the same series."""

    place: str
    series: str


def trend(
    points: Sequence[SeriesPoint],
    markers: Sequence[str],
    *,
    unit: str,
    factor: float = 1.0,
) -> Figure:
    """Return the trend of the models with the highest latest scores: of up to 8 in one panel, of
    more in a panel each, on one scale.

    Parameters
    ----------
    points : scores by publication, the oldest first
    markers : the publications that began a new series
    unit : of the axis
    factor : from scores to that unit
    """
    latest: dict[str, float] = {}
    for point in points:
        latest[point.row] = point.score
    in_panels = len(latest) > _MAX_SERIES
    rows_shown = sorted(latest, key=lambda row: (-latest[row], row))
    rows_shown = rows_shown[: _MAX_PANELS if in_panels else _MAX_SERIES]
    line_points = [point.times(factor) for point in points if point.row in rows_shown]
    order = list(dict.fromkeys(point.place for point in points))
    x: Channel = {
        "field": "publication",
        "type": "ordinal",
        "sort": order,
        "title": None,
        "axis": {"labelAngle": -30},
        "scale": {"domain": order},
    }
    y: Channel = {"field": "score", "type": "quantitative", "title": unit, "scale": {"zero": False}}
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
        rows=[_data_row(point) for point in line_points],
        spec=_panels(rows_shown, markers, x, y, unit)
        if in_panels
        else _one_panel(line_points, order, markers, x, y),
    )


def _data_row(point: SeriesPoint) -> Mapping[str, Datum]:
    return {
        "publication": point.place,
        "row": point.row,
        "series": point.series,
        "line": f"{point.row} {point.series}",
        "score": point.score,
        "lo": point.lo,
        "hi": point.hi,
    }


def _one_panel(
    points: Sequence[SeriesPoint],
    order: Sequence[str],
    markers: Sequence[str],
    x: Channel,
    y: Channel,
) -> VegaView:
    """Return all lines in one panel, named at their ends."""
    colour: Channel = {"field": "row", "type": "nominal", "legend": None}
    return {
        "width": {"step": max(60, 480 // max(1, len(order)))},
        "height": _HEIGHT,
        "layer": [
            _marker_lines(markers, x),
            {
                "mark": "line",
                "encoding": {"x": x, "y": y, "color": colour, "detail": {"field": "line"}},
            },
            *interval_layers(x, y, colour, end_labels(points, "publication", _HEIGHT)),
        ],
    }


def _panels(
    rows: Sequence[str],
    markers: Sequence[str],
    x: Channel,
    y: Channel,
    unit: str,
) -> VegaView:
    """Return a panel for each row, the highest latest score first."""
    y_bare: Channel = {**y, "title": None}
    lines: dict[str, Channel] = {"x": x, "y": y_bare}
    return {
        "facet": {"field": "row", "type": "nominal", "title": unit, "sort": list(rows)},
        "columns": _PANELS_A_LINE,
        "resolve": {"axis": {"x": "independent"}},  # no axis where the last line has no panel
        "spec": {
            "width": 130,
            "height": 90,
            "layer": [
                _marker_lines(markers, x),
                {"mark": "line", "encoding": {**lines, "detail": {"field": "line"}}},
                {
                    "mark": {"type": "rule", "opacity": 0.7},
                    "encoding": {
                        **lines,
                        "y": {**y_bare, "field": "lo"},
                        "y2": {"field": "hi"},
                    },
                },
                {"mark": {"type": "point", "size": 40, "filled": True}, "encoding": lines},
            ],
        },
    }


def _marker_lines(markers: Sequence[str], x: Channel) -> VegaView:
    """Return a dashed line before each publication that began a new series."""
    return {
        "data": {"values": [{"publication": name} for name in markers]},
        # Before the first points of the new series, not through them.
        "mark": {"type": "rule", "strokeDash": [5, 4], "xOffset": -12},
        "encoding": {"x": x},
    }


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
            f" Drawn are the {_MAX_PANELS} with the highest latest scores; in the table alone:"
            f" {named}{more}."
        )
    return text


def interval_layers(
    x: Channel,
    y: Channel,
    colour: Channel,
    labels: Sequence[Mapping[str, str | float]],
) -> list[VegaView]:
    """Return what stands on lines: intervals, points with a shape for each row, and its name beside
    the last one.
    """
    return [
        {
            "transform": [{"filter": "isValid(datum.lo)"}],  # not every point has an interval
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
            "data": {"values": labels},
            "mark": {"type": "text", "align": "left", "dx": 9},
            "encoding": {"x": x, "y": {**y, "field": "y"}, "text": {"field": "row"}},
        },
    ]


def end_labels(points: Sequence[LinePoint], axis: str, height: int) -> list[dict[str, str | float]]:
    """Return a name beside the last point of every row, moved down where two would collide.

    Parameters
    ----------
    axis : the field along which the lines run
    height : of the figure, in pixels
    """
    last = {point.row: point for point in points}
    ends = [end for point in points for end in point.heights()]
    apart = (max(ends) - min(ends)) * _LABEL / height if ends else 0.0
    labels: list[dict[str, str | float]] = []
    heights: dict[int | str, list[float]] = {}
    for point in sorted(last.values(), key=lambda point: -point.score):
        above = heights.setdefault(point.place, [])
        above.append(min([point.score, *(y - apart for y in above)]))
        labels.append({axis: point.place, "row": point.row, "y": above[-1]})
    return labels
