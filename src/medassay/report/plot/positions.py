"""Log-probabilities along completions: where a model comes to say something."""

from collections.abc import Sequence

from medassay.report.plot.figure import Figure
from medassay.report.plot.trend import LinePoint, end_labels, interval_layers
from medassay.report.plot.vega import Channel

_MAX_SERIES = 8  # more lines than colours and shapes cannot be told apart
_HEIGHT = 300  # pixels


class PositionPoint(LinePoint, frozen=True, kw_only=True):
    """A mean log-probability after `place` tokens, of the `n` items that reach the position."""

    place: int
    n: int


def positions(points: Sequence[PositionPoint], *, unit: str) -> Figure:
    """Return a line for each row over the positions of its completions, at most eight rows.

    Parameters
    ----------
    points : of each row along its completions
    unit : of the axis
    """
    names = list(dict.fromkeys(point.row for point in points))[:_MAX_SERIES]
    line_points = [point for point in points if point.row in names]
    x: Channel = {"field": "at", "type": "quantitative", "title": "tokens of the completion"}
    y: Channel = {"field": "score", "type": "quantitative", "title": unit, "scale": {"zero": False}}
    colour: Channel = {"field": "row", "type": "nominal", "sort": names, "legend": None}
    return Figure(
        name="positions",
        title="Log-probability along completions",
        description=(
            "Mean log-probability of the statements after each length of the completions, with 95 %"
            " intervals; higher is likelier."
        ),
        caption=_caption(line_points),
        columns={
            "row": "row",
            "at": "tokens",
            "score": "log-probability",
            "lo": "from",
            "hi": "to",
            "n": "items",
        },
        rows=[
            {"row": p.row, "at": p.place, "score": p.score, "lo": p.lo, "hi": p.hi, "n": p.n}
            for p in line_points
        ],
        spec={
            "width": 520,
            "height": _HEIGHT,
            "layer": [
                {"mark": "line", "encoding": {"x": x, "y": y, "color": colour}},
                *interval_layers(x, y, colour, end_labels(line_points, "at", _HEIGHT)),
            ],
        },
    )


def _caption(points: Sequence[PositionPoint]) -> str:
    """Say where the first row's statements are likeliest."""
    if not points:
        return "No completion reaches a position."
    first = [point for point in points if point.row == points[0].row]
    best = max(first, key=lambda point: point.score)
    start = first[0].score
    if best is first[0]:
        text = f"likeliest at once ({start:.1f} nats)"
    else:
        text = f"likeliest after {best.place} tokens ({best.score:.1f} nats, {start:.1f} at once)"
    fewer = first[-1].n < first[0].n
    ended = " Completions that ended earlier are missing further right." if fewer else ""
    return f"{first[0].row}: {text}.{ended}"
