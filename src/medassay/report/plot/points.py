"""Distributions as violin and swarm, and points in four quadrants."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import cos, sin, sqrt

import msgspec

from medassay.report.plot.figure import Figure
from medassay.report.plot.vega import Channel, Datum, Setting, VegaMark, VegaView

_FEWEST = 10  # below, a density would show more than is there
_VIOLINS_A_ROW = 10
_SIDE = 460  # of the plane, in pixels
_CROSS = "M-1,-1L1,1M1,-1L-1,1"
# Where a label may stand: pixels to the side of its point, lines above or below it; the nearest
# first.
_PLACES = sorted(
    ((away, lines) for away in (12, 40, 80, 120) for lines in range(-12, 13)),
    key=lambda place: place[0] + 14 * abs(place[1]),
)
_GOLDEN_ANGLE = 2.399963  # radians; points at it never stand in a line
_CORNERS = ((1, 1), (-1, 1), (-1, -1), (1, -1))
_CHARACTER, _LINE = 6.4, 14.0  # width and height of a label's letters, in pixels


class SwarmPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a group.

    `jitter`, from -1 to 1, is where it stands in the swarm; None where the swarm leaves it out,
    which density and quartiles do not.
    """

    group: str
    value: float
    jitter: float | None


class PlanePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point on two axes, with the ends of its intervals where it has any."""

    label: str
    x: float
    y: float
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None


class CasePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A case on two axes: its name, what a reader of it hears, and the address of its page."""

    x: float
    y: float
    case: str
    label: str
    says: str
    href: str


def violin_swarm(
    points: Sequence[SwarmPoint],
    *,
    value: str,
    bandwidth: float,
    extent: tuple[float, float],
) -> Figure:
    """Return the distribution of `value` for each group: density, quartiles, and the points over
    it.

    Parameters
    ----------
    points : groups are drawn in the order in which they come
    value : what the values are
    bandwidth : of the density, in units of the value; it ends with the data
    extent : the ends of the axis
    """
    sizes = Counter(point.group for point in points)
    names = {group: f"{group} (n = {n})" for group, n in sizes.items()}
    rows: list[dict[str, Datum]] = [
        {
            "group": names[point.group],
            value: point.value,
            **({} if point.jitter is None else {"jitter": point.jitter}),
            "many": sizes[point.group] >= _FEWEST,
        }
        for point in points
    ]
    return Figure(
        name="violin_swarm",
        title=f"Distribution of {value}",
        description="For each group the density, mirrored, with its quartiles, and every point.",
        caption=(
            f"Lines are quartiles, the long one the median. Bandwidth {bandwidth:g}; below"
            f" {_FEWEST} points the points alone."
        ),
        columns={"group": "group", value: value},
        rows=rows,
        spec={
            "facet": {
                "field": "group",
                "type": "nominal",
                "title": None,
                "sort": list(names.values()),
                "header": {"labelLimit": 114, "labelExpr": "split(datum.label, ' · ')"},
            },
            "columns": _VIOLINS_A_ROW,
            "spacing": {"column": 4, "row": 16},
            "spec": {
                "width": 110,
                "height": 280,
                "layer": _violin_layers(value, bandwidth, extent),
                "resolve": {"scale": {"x": "independent"}},
            },
        },
    )


def _violin_layers(value: str, bandwidth: float, extent: tuple[float, float]) -> list[VegaView]:
    """Return the density of a group, its points, and ticks at its quartiles."""
    y: Channel = {
        "field": value,
        "type": "quantitative",
        "title": value,
        "scale": {"domain": list(extent), "nice": False},
    }
    density: dict[str, Setting] = {
        "density": value,
        "groupby": ["group"],
        "bandwidth": bandwidth,
        "resolve": "independent",
        "as": [value, "density"],
    }
    hidden: Channel = {"type": "quantitative", "axis": None}
    middle: Channel = {"datum": 0, **hidden, "scale": {"domain": [-3, 3]}}
    many: dict[str, Setting] = {"filter": "datum.many"}
    return [
        {
            "transform": [many, density],
            "mark": {"type": "area", "orient": "horizontal", "opacity": 0.35},
            "encoding": {
                "y": y,
                "x": {"field": "density", **hidden, "stack": "center"},
            },
        },
        {
            "transform": [{"filter": "isValid(datum.jitter)"}],
            "mark": {"type": "point", "size": 18, "filled": True, "opacity": 0.8},
            "encoding": {
                "y": y,
                "x": {"field": "jitter", **hidden, "scale": {"domain": [-3, 3]}},
            },
        },
        _quartile({**y, "aggregate": "q1"}, middle, 26),
        _quartile({**y, "aggregate": "median"}, middle, 52),
        _quartile({**y, "aggregate": "q3"}, middle, 26),
    ]


def _quartile(y: Channel, x: Channel, size: int) -> VegaView:
    """Return a tick at a quartile of groups that are large enough, so many pixels long."""
    return {
        "transform": [{"filter": "datum.many"}],
        "mark": {"type": "tick", "orient": "horizontal", "thickness": 2, "size": size},
        "encoding": {"y": y, "x": x},
    }


def quadrant(
    points: Sequence[PlanePoint],
    *,
    x: str,
    y: str,
    names: Sequence[str],
    title: str = "",
    limit: float = 1.0,
) -> Figure:
    """Return points on two axes that cross at 0, with both intervals and their names beside them.

    Parameters
    ----------
    x, y : what the axes are
    names : of the quadrants: upper right, upper left, lower left, lower right
    limit : where the axes end, above and below 0
    """
    rows: list[dict[str, Datum]] = [
        {
            "label": point.label,
            **_coordinate(x, point.x, point.x_ends),
            **_coordinate(y, point.y, point.y_ends),
            "label_x": label_left,
            "label_y": top,
            "align": align,
        }
        for point, (label_left, top, align) in zip(
            points, _beside(points, limit, names), strict=True
        )
    ]
    plane = _Plane(x, y, limit)
    return Figure(
        name="quadrant",
        title=title or f"{y} against {x}",
        description=f"Points by {x} and {y}; the axes cross at 0.",
        caption=f"{len(points)} point{'s' if len(points) != 1 else ''}; lines are 95 % intervals.",
        columns={"label": "point", x: x, y: y},
        words=names,
        rows=rows,
        spec=plane.spec(
            title,
            names,
            [
                *_whiskers(plane, x, y),
                _leaders(plane),
                {
                    "mark": {"type": "point", "size": 60, "filled": True},
                    "encoding": {"x": plane.across, "y": plane.up},
                },
                *_labels(plane),
            ],
        ),
    )


def _whiskers(plane: "_Plane", x: str, y: str) -> list[VegaView]:
    """Return both intervals of each point that has them."""
    return [
        {
            "transform": [{"filter": f"isValid(datum['{name}_lo'])"}],
            "mark": "rule",
            "encoding": {
                axis: {**along, "field": f"{name}_lo"},
                f"{axis}2": {"field": f"{name}_hi"},
                other: beside,
            },
        }
        for name, axis, along, other, beside in (
            (x, "x", plane.across, "y", plane.up),
            (y, "y", plane.up, "x", plane.across),
        )
    ]


def _leaders(plane: "_Plane") -> VegaView:
    """Return a thin line from each point to its label."""
    return {
        "mark": {"type": "rule", "strokeWidth": 0.5, "strokeDash": [2, 2]},
        "encoding": {
            "x": plane.across,
            "y": plane.up,
            "x2": {"field": "label_x"},
            "y2": {"field": "label_y"},
        },
    }


def _labels(plane: "_Plane") -> list[VegaView]:
    """Return the names of the points, to the right and to the left of them."""
    return [
        {
            "transform": [{"filter": f"datum.align == '{align}'"}],
            "mark": {"type": "text", "align": align, "baseline": "middle"},
            "encoding": {
                "x": {**plane.across, "field": "label_x"},
                "y": {**plane.up, "field": "label_y"},
                "text": {"field": "label"},
            },
        }
        for align in ("left", "right")
    ]


def _coordinate(name: str, value: float, ends: tuple[float, float] | None) -> dict[str, float]:
    interval = {} if ends is None else {f"{name}_lo": ends[0], f"{name}_hi": ends[1]}
    return {name: value, **interval}


def case_quadrant(
    points: Sequence[CasePoint],
    *,
    x: str,
    y: str,
    names: Sequence[str],
    limit: float = 1.0,
) -> Figure:
    """Return a small cross for each case on two axes that cross at 0; each leads to the case.

    Cases at the same place are set around it, a few pixels apart, so that each can be reached.

    Parameters
    ----------
    x, y : what the axes are
    names : of the quadrants: upper right, upper left, lower left, lower right
    limit : where the axes end, above and below 0
    """
    plane = _Plane(x, y, limit)
    here: dict[str, Channel] = {
        "x": {**plane.across, "field": "at_x"},
        "y": {**plane.up, "field": "at_y"},
    }
    cross: VegaMark = {"type": "point", "shape": _CROSS, "size": 30, "strokeWidth": 1.5}
    return Figure(
        name="case_quadrant",
        title=f"{y} against {x}, case by case",
        description=f"Cases by {x} and {y}; the axes cross at 0.",
        caption="Cases at the same place are set around it.",
        columns={"label": "case", x: x, y: y},
        words=names,
        rows=list(_around(points, x, y, 2 * limit / _SIDE)),
        spec=plane.spec(
            "",
            names,
            [
                {
                    "mark": {"type": "text", "dy": -8, "fontSize": 9},
                    "encoding": {**here, "text": {"field": "label"}},
                },
                {
                    # A target for fingers.
                    "mark": {"type": "circle", "size": 450, "opacity": 0.01},
                    "encoding": {
                        **here,
                        "href": {"field": "href"},
                        "description": {"field": "says"},
                    },
                },
                {"mark": cross, "encoding": here},
            ],
        ),
    )


def case_density(
    points: Sequence[tuple[float, float]],
    *,
    x: str,
    y: str,
    names: Sequence[str],
    limit: float = 1.0,
) -> Figure:
    """Return how many cases lie where on two axes that cross at 0: too many to tell apart.

    Parameters
    ----------
    points : x and y of each case
    names : of the quadrants: upper right, upper left, lower left, lower right
    limit : where the axes end, above and below 0
    """
    plane = _Plane(x, y, limit)
    step: Channel = {
        "bin": {"extent": [-limit, limit], "step": limit / 20},
        "axis": {"values": [-1, -0.5, 0, 0.5, 1]},
    }
    return Figure(
        name="case_density",
        title=f"{y} against {x}, number of cases",
        description=f"Cases by {x} and {y}, counted in squares; the axes cross at 0.",
        caption=f"{len(points)} cases; the darker or brighter a square, the more lie in it.",
        columns={x: x, y: y},
        words=names,
        rows=[{x: across, y: up} for across, up in points],
        spec=plane.spec(
            "",
            names,
            [
                {
                    "mark": {"type": "rect", "opacity": 0.8},
                    "encoding": {
                        "x": {**plane.across, **step},
                        "y": {**plane.up, **step},
                        "color": {
                            "aggregate": "count",
                            "type": "quantitative",
                            "title": "cases",
                            "scale": {"scheme": "blues"},
                        },
                    },
                }
            ],
        ),
    )


def _around(
    points: Sequence[CasePoint], x: str, y: str, pixel: float
) -> Iterator[dict[str, float | str]]:
    """Yield points with the place where each is drawn: the second at a place goes beside it, on a
    spiral.
    """
    here: dict[tuple[float, float], int] = {}
    for point in points:
        place = (round(point.x, 4), round(point.y, 4))
        number = here[place] = here.get(place, -1) + 1
        away, angle = 11 * sqrt(number) * pixel, number * _GOLDEN_ANGLE
        yield {
            x: point.x,
            y: point.y,
            "label": point.label,
            "says": point.says,
            "case": point.case,
            "href": point.href,
            "at_x": point.x + away * cos(angle),
            "at_y": point.y + away * sin(angle),
        }


class _Plane:
    """Two axes that cross at 0, with the names of the quadrants in the corners."""

    def __init__(self, x: str, y: str, limit: float) -> None:
        self._limit = limit
        self._kind: Channel = {
            "type": "quantitative",
            "scale": {"domain": [-limit, limit], "nice": False},
        }
        self.across: Channel = {"field": x, "title": x, **self._kind}
        self.up: Channel = {"field": y, "title": y, **self._kind}

    def spec(self, title: str, names: Sequence[str], layers: Sequence[VegaView]) -> VegaView:
        """Return the specification of a plane with some layers on it."""
        zero: Channel = {"datum": 0, "type": "quantitative"}
        return {
            **({"title": title} if title else {}),
            "width": _SIDE,
            "height": _SIDE,
            "layer": [
                {"mark": "rule", "encoding": {"x": zero}},
                {"mark": "rule", "encoding": {"y": zero}},
                *self._corners(names),
                *layers,
            ],
        }

    def _corners(self, names: Sequence[str]) -> Iterator[VegaView]:
        for name, (sx, sy) in zip(names, _CORNERS, strict=True):
            place: dict[str, Datum] = {
                "x": sx * 0.98 * self._limit,
                "y": sy * 0.96 * self._limit,
                "name": name,
            }
            yield {
                "data": {"values": [place]},
                "mark": {
                    "type": "text",
                    "align": "right" if sx > 0 else "left",
                    "fontStyle": "italic",
                },
                "encoding": {
                    "x": {"field": "x", **self._kind},
                    "y": {"field": "y", **self._kind},
                    "text": {"field": "name"},
                },
            }


def _beside(
    points: Sequence[PlanePoint], limit: float, corners: Sequence[str]
) -> Iterator[tuple[float, float, str]]:
    """Yield (x, y, alignment) of each label: beside its point, clear of points, whiskers and
    labels.

    Where nothing is free a label stands at its point all the same.
    """
    pixel = 2 * limit / _SIDE
    boxes = [_box(point.x, point.y, 6 * pixel, 6 * pixel) for point in points]
    for name, (sx, sy) in zip(corners, _CORNERS, strict=True):
        wide = _CHARACTER * len(name) * pixel
        boxes.append(_box(sx * (limit - wide / 2), sy * 0.96 * limit, wide, _LINE * pixel))
    thin = 2 * pixel
    for point in points:
        if point.x_ends:
            boxes.append((point.x_ends[0], point.y - thin, point.x_ends[1], point.y + thin))
        if point.y_ends:
            boxes.append((point.x - thin, point.y_ends[0], point.x + thin, point.y_ends[1]))
    for point in points:
        width = _CHARACTER * len(point.label) * pixel
        places = []
        for away, steps in _PLACES:
            for side in (1, -1):
                label_left = point.x + side * away * pixel
                places.append((label_left, point.y + steps * _LINE * pixel, side))
        free = (
            (at, box)
            for at in places
            if _inside(box := _box(at[0] + at[2] * width / 2, at[1], width, _LINE * pixel), limit)
            and not any(_meet(box, other) for other in boxes)
        )
        (label_left, top, side), box = next(free, (places[0], _box(*places[0][:2], 0, 0)))
        boxes.append(box)
        yield label_left, top, "left" if side > 0 else "right"


def _box(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _inside(box: tuple[float, float, float, float], limit: float) -> bool:
    return min(box) >= -limit and max(box) <= limit


def _meet(
    first: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    apart = first[2] < other[0] or other[2] < first[0] or first[3] < other[1] or other[3] < first[1]
    return not apart
