"""Grouped bars with intervals, and counts stacked over years."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from medassay.core.wording import counted
from medassay.report.plot.figure import N_COLOURS, Figure
from medassay.report.plot.vega import Channel, Datum, VegaView

_ENDS = {"score": "score", "lo": "from", "hi": "to", "n": "n"}


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a group at a place, from `n` items; without an interval there is no line."""

    place: str
    group: str
    score: float
    lo: float | None
    hi: float | None
    n: int | None


class StackedCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of items of a part at a place."""

    place: str
    part: str
    n: int


class ScoreChange(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of a row before and after a change."""

    row: str
    before: float
    after: float


def bars(scores: Sequence[Bar], *, by: str, group: str, unit: str, factor: float = 1.0) -> Figure:
    """Return bars, one beside the other for each group, with 95 % intervals.

    Parameters
    ----------
    by, group : what the places and the groups are
    factor : from scores to the unit
    """
    bar_rows: list[dict[str, Datum]] = [
        {
            by: bar.place,
            group: bar.group,
            "n": bar.n,
            "score": factor * bar.score,
            "lo": None if bar.lo is None else factor * bar.lo,
            "hi": None if bar.hi is None else factor * bar.hi,
        }
        for bar in scores
    ]
    x: Channel = {
        "field": by,
        "type": "nominal",
        "title": by,
        "sort": None,
        "axis": {"labelAngle": -30},
    }
    side: Channel = {"field": group, "type": "nominal"}
    y: Channel = {"field": "score", "type": "quantitative", "title": unit}
    return Figure(
        name="bars",
        title=f"Scores by {by}",
        description=f"A bar with its 95 % interval for each {by} and {group}.",
        caption=f"{counted(len(bar_rows), 'bar')}; lines are 95 % intervals.",
        columns={by: by, group: group, **_ENDS},
        rows=bar_rows,
        spec={"height": 280, "layer": bar_layers(x, side, y, {**side, "title": group})},
    )


def bar_layers(x: Channel, side: Channel, y: Channel, colour: Channel) -> list[VegaView]:
    """Return bars, those of one place side by side, and their intervals."""
    places: dict[str, Channel] = {"x": x, "xOffset": side, "y": y}
    ends: dict[str, Channel] = {"y": {**y, "field": "lo"}, "y2": {"field": "hi"}}
    return [
        {"mark": "bar", "encoding": {**places, "color": colour}},
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {**places, **ends}},
    ]


def stacked(
    counts: Sequence[StackedCount], *, over: str, by: str, step: int | None = None
) -> Figure:
    """Return counts of items stacked by part (`by`) over places (`over`), as category over year.

    Parameters
    ----------
    counts : of more parts than there are colours, the smallest are one
    step : pixels from bar to bar, for labels that need room
    """
    total = sum(count.n for count in counts)
    n_parts = len({count.part for count in counts})
    counts, rest = _with_own_colours(counts)
    joined = f" The {N_COLOURS - 1} largest of {n_parts} are told apart." if rest else ""
    return Figure(
        name="stacked",
        title=f"Items by {by} and {over}",
        description=f"Numbers of items of each {by}, stacked for each {over}.",
        caption=f"{counted(total, 'item')}.{joined}",
        columns={over: over, by: by, "n": "items"},
        # Forms of items are words of ours; other parts are names that a bank gives.
        words=[*filter(None, [rest]), *(sorted({c.part for c in counts}) if by == "form" else ())],
        rows=[{over: count.place, by: count.part, "n": count.n} for count in counts],
        spec={
            "height": 260,
            **({} if step is None else {"width": {"step": step}}),
            "mark": "bar",
            "encoding": {
                "x": {
                    "field": over,
                    "type": "ordinal",
                    "title": over,
                    **({} if step is None else {"axis": {"labelAngle": 0}}),
                },
                "y": {
                    "field": "n",
                    "type": "quantitative",
                    "title": "items",
                    "stack": "zero",
                    "axis": {"tickMinStep": 1, "format": ",d"},
                },
                "color": {
                    "field": by,
                    "type": "nominal",
                    "title": by,
                    **({} if len({count.part for count in counts}) > 1 else {"legend": None}),
                },
            },
        },
    )


def _with_own_colours(counts: Sequence[StackedCount]) -> tuple[list[StackedCount], str]:
    """Return counts of which each part can have a colour of its own, and the name of those that
    were joined, "" where none was.
    """
    sizes: Counter[str] = Counter()
    for count in counts:
        sizes[count.part] += count.n
    if len(sizes) <= N_COLOURS:
        return list(counts), ""
    largest = {part for part, _ in sizes.most_common(N_COLOURS - 1)}
    rest = f"{len(sizes) - len(largest)} others"
    sums: Counter[tuple[str, str]] = Counter()
    for count in counts:
        sums[count.place, count.part if count.part in largest else rest] += count.n
    joined = [StackedCount(place=place, part=part, n=n) for (place, part), n in sums.items()]
    return joined, rest


def before_after(changes: Sequence[ScoreChange], *, unit: str, factor: float = 1.0) -> Figure:
    """Return scores before and after a change, joined for each row."""
    bar_rows: list[dict[str, Datum]] = [
        {"row": change.row, "when": when, "score": factor * score}
        for change in changes
        for when, score in (("before", change.before), ("after", change.after))
    ]
    risen = sum(change.after > change.before for change in changes)
    x: Channel = {"field": "when", "type": "ordinal", "sort": ["before", "after"], "title": None}
    y: Channel = {"field": "score", "type": "quantitative", "title": unit, "scale": {"zero": False}}
    colour: Channel = {"field": "row", "type": "nominal", "title": None}
    return Figure(
        name="before_after",
        title="Before and after",
        description="A line from the score before to the score after for each row.",
        caption=f"{risen} of {counted(len(changes), 'row')} rose.",
        columns={"row": "row", "when": "when", "score": "score"},
        words=("before", "after"),
        rows=bar_rows,
        spec={
            "width": 240,
            "height": 260,
            "mark": {"type": "line", "point": {"size": 60}},
            "encoding": {"x": x, "y": y, "color": colour},
        },
    )
