"""Differences with their intervals around zero.

Pairs of which no difference is shown are hollow.
"""

from collections.abc import Sequence

import msgspec

from medassay.core.ranks import NOT_SHOWN, SHOWN
from medassay.core.wording import counted
from medassay.report.plot.figure import Figure
from medassay.report.plot.vega import Channel, Datum, VegaView


class NamedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference with its interval; `different` says whether a difference is shown."""

    name: str
    diff: float
    lo: float
    hi: float
    different: bool


class NamedCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """A correlation with its interval, both from -1 to 1."""

    name: str
    r: float
    lo: float
    hi: float


def forest(pairs: Sequence[NamedDifference], *, unit: str, factor: float = 1.0) -> Figure:
    """Return the forest of differences.

    Parameters
    ----------
    pairs : differences, in units of the score
    unit : of the axis
    factor : from scores to that unit, 100 for points of 100
    """
    rows: list[dict[str, Datum]] = [
        {
            "pair": pair.name,
            "diff": factor * pair.diff,
            "lo": factor * pair.lo,
            "hi": factor * pair.hi,
            "reading": SHOWN if pair.different else NOT_SHOWN,
        }
        for pair in pairs
    ]
    apart = sum(pair.different for pair in pairs)
    return Figure(
        name="forest",
        title="Differences between models",
        description="A point and a 95 % interval for each pair, a line at zero.",
        caption=(
            f"A difference is shown for {apart} of {counted(len(pairs), 'pair')}; hollow points: no"
            " difference shown."
        ),
        columns={
            "pair": "pair",
            "diff": "difference",
            "lo": "from",
            "hi": "to",
            "reading": "reading",
        },
        rows=rows,
        spec=_around_zero("pair", "diff", f"difference, {unit}"),
    )


def agreement(points: Sequence[NamedCorrelation], *, unit: str) -> Figure:
    """Return correlations with their intervals around zero.

    Parameters
    ----------
    points : correlations
    unit : of the axis, as "Pearson's r with FactualF1"
    """
    rows: list[dict[str, Datum]] = [
        {
            "name": point.name,
            "r": point.r,
            "lo": point.lo,
            "hi": point.hi,
            "reading": SHOWN if point.lo * point.hi > 0 else NOT_SHOWN,
        }
        for point in points
    ]
    sure = sum(point.lo * point.hi > 0 for point in points)
    return Figure(
        name="agreement",
        title="Agreement",
        description="A point and a 95 % interval for each correlation, a line at zero.",
        caption=f"{sure} of {len(rows)} exclude 0; hollow points do not.",
        columns={"name": "metric", "r": "r", "lo": "from", "hi": "to", "reading": "reading"},
        rows=rows,
        spec=_around_zero("name", "r", unit),
    )


def _around_zero(names: str, value: str, title: str) -> VegaView:
    """Return points with intervals beside a line at zero; hollow where the interval includes it."""
    y: Channel = {"field": names, "type": "nominal", "sort": None, "title": None}
    x: Channel = {"field": "lo", "type": "quantitative", "title": title}
    return {
        "width": 420,
        "height": {"step": 22},
        "layer": [
            {
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"x": {"datum": 0, "type": "quantitative"}},
            },
            {"mark": "rule", "encoding": {"y": y, "x": x, "x2": {"field": "hi"}}},
            {
                "mark": {"type": "point", "size": 60, "filled": True},
                "transform": [{"filter": f"datum.reading == '{SHOWN}'"}],
                "encoding": {"y": y, "x": {**x, "field": value}},
            },
            {
                "mark": {"type": "point", "size": 60, "filled": False, "strokeWidth": 2},
                "transform": [{"filter": f"datum.reading != '{SHOWN}'"}],
                "encoding": {"y": y, "x": {**x, "field": value}},
            },
        ],
    }
