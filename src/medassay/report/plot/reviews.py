"""Mean scores of reviews over time."""

from collections.abc import Sequence

from medassay.report.plot.figure import Figure
from medassay.report.plot.trend import LinePoint, end_labels, interval_layers
from medassay.report.plot.vega import Channel

_HEIGHT = 260  # pixels
_MAX_SERIES = 8  # more lines than colours and shapes cannot be told apart


class MonthPoint(LinePoint, frozen=True, kw_only=True):
    """The mean score of the reviews of a month."""

    place: str
    reviews: int


def review_trend(points: Sequence[MonthPoint], *, aspect: str) -> Figure:
    """Return mean scores from 1 to 5 by month, a line for each category or qualification.

    Parameters
    ----------
    points : means by month; each row is a category or qualification
    """
    totals: dict[str, int] = {}
    for point in points:
        totals[point.row] = totals.get(point.row, 0) + point.reviews
    names_shown = sorted(totals, key=lambda name: (-totals[name], name))[:_MAX_SERIES]
    line_points = [point for point in points if point.row in names_shown]
    months = sorted({point.place for point in line_points})
    x: Channel = {
        "field": "month",
        "type": "ordinal",
        "title": None,
        "sort": months,
        "axis": {"labelAngle": 0},
    }
    y: Channel = {
        "field": "score",
        "type": "quantitative",
        "title": f"mean score, {aspect}",
        "scale": {"domain": [1, 5]},
    }
    colour: Channel = {"field": "row", "type": "nominal", "legend": None}
    left_out = len(totals) - len(names_shown)
    reviews = sum(point.reviews for point in line_points)
    rest = f"; {left_out} more with fewer reviews stand in the table" if left_out else ""
    return Figure(
        name="review_trend",
        title="Mean scores of reviews by month",
        description="Mean scores from 1 to 5 with 95 % intervals from resampling items.",
        caption=f"{reviews} scores in {len(months)} month{'s' if len(months) != 1 else ''}{rest}.",
        columns={
            "month": "month",
            "row": "of",
            "score": "mean",
            "lo": "from",
            "hi": "to",
            "reviews": "scores",
        },
        rows=[
            {
                "month": point.place,
                "lo": point.lo,
                "hi": point.hi,
                "reviews": point.reviews,
                "row": point.row,
                "score": point.score,
            }
            for point in line_points
        ],
        spec={
            "width": {"step": max(70, 480 // max(1, len(months)))},
            "height": _HEIGHT,
            "encoding": {"x": x},
            "layer": [
                {"mark": "line", "encoding": {"y": y, "color": colour}},
                *interval_layers(x, y, colour, end_labels(line_points, "month", _HEIGHT)),
            ],
        },
    )
