"""Distributions as violin and swarm, and points in four quadrants."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.publication.plot.figure import Figure

_FEWEST = 10  # below, a density would show more than is there


def violin_swarm(
    points: Sequence[Mapping[str, Any]],
    *,
    value: str,
    bandwidth: float,
    extent: tuple[float, float],
) -> Figure:
    """Return the distribution of `value` for each group, the points themselves over it.

    Parameters
    ----------
    points : each with group, `value` and jitter in [-1, 1], computed with a seed
    bandwidth : of the density, in units of the value
    extent : the ends of the scale
    """
    sizes: dict[str, int] = {}
    for point in points:
        sizes[point["group"]] = sizes.get(point["group"], 0) + 1
    rows = [
        {
            "group": f"{point['group']} (n = {sizes[point['group']]})",
            value: point[value],
            "jitter": point["jitter"],
            "many": sizes[point["group"]] >= _FEWEST,
        }
        for point in points
    ]
    y = {
        "field": value,
        "type": "quantitative",
        "title": value,
        "scale": {"domain": list(extent)},
    }
    density = {
        "density": value,
        "groupby": ["group"],
        "bandwidth": bandwidth,
        "extent": list(extent),
        "as": [value, "density"],
    }
    hidden = {"type": "quantitative", "axis": None}
    return Figure(
        name="violin_swarm",
        title=f"Distribution of {value}",
        description="For each group the density, mirrored, and every point.",
        caption=f"Bandwidth {bandwidth:g}; below {_FEWEST} points the points alone.",
        columns={"group": "group", value: value},
        rows=rows,
        spec={
            "facet": {
                "column": {"field": "group", "type": "nominal", "title": None, "sort": None}
            },
            "spacing": 4,
            "spec": {
                "width": 110,
                "height": 280,
                "layer": [
                    {
                        "transform": [{"filter": "datum.many"}, density],
                        "mark": {"type": "area", "orient": "horizontal", "opacity": 0.35},
                        "encoding": {
                            "y": y,
                            "x": {"field": "density", **hidden, "stack": "center"},
                        },
                    },
                    {
                        "mark": {"type": "point", "size": 18, "filled": True, "opacity": 0.8},
                        "encoding": {
                            "y": y,
                            "x": {"field": "jitter", **hidden, "scale": {"domain": [-3, 3]}},
                        },
                    },
                ],
                "resolve": {"scale": {"x": "independent"}},
            },
        },
    )


def quadrant(
    points: Sequence[Mapping[str, Any]], *, x: str, y: str, names: Sequence[str]
) -> Figure:
    """Return points between −1 and 1 on two axes that cross at 0, with both intervals.

    Parameters
    ----------
    points : each with label, `x` and `y`; `x`_lo, `x`_hi, `y`_lo, `y`_hi where there are intervals
    names : of the quadrants: upper right, upper left, lower left, lower right
    """
    scale = {"domain": [-1, 1]}
    across = {"field": x, "type": "quantitative", "title": x, "scale": scale}
    up = {"field": y, "type": "quantitative", "title": y, "scale": scale}
    corners = [
        {"x": sx * 0.97, "y": sy * 0.93, "name": name, "align": "right" if sx > 0 else "left"}
        for name, (sx, sy) in zip(names, ((1, 1), (-1, 1), (-1, -1), (1, -1)), strict=True)
    ]
    zero = {"datum": 0, "type": "quantitative"}
    has = f"isValid(datum['{x}_lo'])"
    corner_text = [
        {
            "data": {"values": [corner]},
            "mark": {"type": "text", "align": corner["align"], "fontStyle": "italic"},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "scale": scale},
                "y": {"field": "y", "type": "quantitative", "scale": scale},
                "text": {"field": "name"},
            },
        }
        for corner in corners
    ]
    return Figure(
        name="quadrant",
        title=f"{y} against {x}",
        description=f"Points by {x} and {y}, both from −1 to 1; the axes cross at 0.",
        caption=f"{len(points)} points; lines are 95 % intervals.",
        columns={"label": "point", x: x, y: y},
        rows=[dict(point) for point in points],
        spec={
            "width": 380,
            "height": 380,
            "layer": [
                {"mark": "rule", "encoding": {"x": zero}},
                {"mark": "rule", "encoding": {"y": zero}},
                *corner_text,
                {
                    "transform": [{"filter": has}],
                    "mark": "rule",
                    "encoding": {
                        "x": {**across, "field": f"{x}_lo"},
                        "x2": {"field": f"{x}_hi"},
                        "y": up,
                    },
                },
                {
                    "transform": [{"filter": has}],
                    "mark": "rule",
                    "encoding": {
                        "y": {**up, "field": f"{y}_lo"},
                        "y2": {"field": f"{y}_hi"},
                        "x": across,
                    },
                },
                {
                    "mark": {"type": "point", "size": 60, "filled": True},
                    "encoding": {"x": across, "y": up},
                },
                {
                    "mark": {"type": "text", "align": "left", "dx": 8, "dy": -8},
                    "encoding": {"x": across, "y": up, "text": {"field": "label"}},
                },
            ],
        },
    )
