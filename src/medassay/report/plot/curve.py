"""Scores of checkpoints over the steps of a training."""

from collections.abc import Sequence

from medassay.report.plot.figure import N_COLOURS, Figure
from medassay.report.plot.trend import LinePoint, end_labels, interval_layers
from medassay.report.plot.vega import Channel

_HEIGHT = 280  # pixels


def checkpoint_curve(points: Sequence[LinePoint], *, series: str) -> Figure:
    """Return the scores of one training: a line for each benchmark, over the steps.

    Parameters
    ----------
    points : by step; `place` is the step, `row` the benchmark, scores are shares; of more
        benchmarks than there are colours the first are drawn, all stand in the table
    series : name of the training
    """
    names = list(dict.fromkeys(point.row for point in points))
    drawn = set(names[:N_COLOURS])
    line_points = [point.times(100) for point in points if point.row in drawn]
    x: Channel = {"field": "step", "type": "quantitative", "title": "step"}
    y: Channel = {
        "field": "score",
        "type": "quantitative",
        "title": "score, %",
        "scale": {"zero": False},
    }
    colour: Channel = {"field": "row", "type": "nominal", "legend": None}
    left_out = len(names) - len(drawn)
    return Figure(
        name="checkpoint-curve",
        title="Scores of checkpoints",
        description="Scores by step with 95 % intervals; a line for each benchmark.",
        caption=f"{len({p.place for p in points})} checkpoints of {series}."
        + (f" {left_out} more benchmarks stand in the table alone." if left_out else ""),
        columns={"step": "step", "row": "benchmark", "score": "score", "lo": "from", "hi": "to"},
        rows=[
            {"step": p.place, "row": p.row, "score": p.score, "lo": p.lo, "hi": p.hi}
            for p in line_points
        ],
        spec={
            "width": 480,
            "height": _HEIGHT,
            "layer": [
                {"mark": "line", "encoding": {"x": x, "y": y, "color": colour}},
                *interval_layers(x, y, colour, end_labels(line_points, "step", _HEIGHT)),
            ],
        },
    )
