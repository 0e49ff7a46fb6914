"""Grouped bars with intervals, and counts stacked over years."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from medassay.core.wording import counted
from medassay.report.plot.figure import N_COLOURS, Figure

_ENDS = {"score": "score", "lo": "from", "hi": "to", "n": "n"}


def bars(
    rows: Sequence[Mapping[str, Any]], *, by: str, group: str, unit: str, factor: float = 1.0
) -> Figure:
    """Return bars of `by`, one beside the other for each `group`, with 95 % intervals.

    Parameters
    ----------
    rows : each with the fields `by` and `group`, score, lo, hi and n
    """
    bar_rows = [
        {by: row[by], group: row[group], "n": row["n"]}
        | {key: factor * row[key] for key in ("score", "lo", "hi")}
        for row in rows
        if row["score"] is not None
    ]
    x = {"field": by, "type": "nominal", "title": by, "sort": None, "axis": {"labelAngle": -30}}
    side = {"xOffset": {"field": group, "type": "nominal"}}
    y = {"field": "score", "type": "quantitative", "title": unit}
    return Figure(
        name="bars",
        title=f"Scores by {by}",
        description=f"A bar with its 95 % interval for each {by} and {group}.",
        caption=f"{counted(len(bar_rows), 'bar')}; lines are 95 % intervals.",
        columns={by: by, group: group, **_ENDS},
        rows=bar_rows,
        spec={
            "height": 280,
            "layer": [
                {
                    "mark": "bar",
                    "encoding": {
                        "x": x,
                        **side,
                        "y": y,
                        "color": {"field": group, "type": "nominal", "title": group},
                    },
                },
                {
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {
                        "x": x,
                        **side,
                        "y": {**y, "field": "lo"},
                        "y2": {"field": "hi"},
                    },
                },
            ],
        },
    )


def stacked(
    counts: Sequence[Mapping[str, Any]], *, over: str, by: str, step: int | None = None
) -> Figure:
    """Return counts of items stacked by `by` over `over` (category × year).

    Parameters
    ----------
    counts : each with the fields `over` and `by`, and n; of more values of `by` than there are
        colours, the smallest are one
    step : pixels from bar to bar, for labels that need room
    """
    total = sum(int(row["n"]) for row in counts)
    counts, joined = _with_own_colours(counts, over, by)
    return Figure(
        name="stacked",
        title=f"Items by {by} and {over}",
        description=f"Numbers of items of each {by}, stacked for each {over}.",
        caption=f"{counted(total, 'item')}." + (f" {joined}" if joined else ""),
        columns={over: over, by: by, "n": "items"},
        rows=[dict(row) for row in counts],
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
                "color": {"field": by, "type": "nominal", "title": by},
            },
        },
    )


def _with_own_colours(
    counts: Sequence[Mapping[str, Any]], over: str, by: str
) -> tuple[list[dict[str, Any]], str]:
    """Return counts of which each value of `by` can have a colour of its own, and a sentence on
    those that were joined.
    """
    sizes: Counter[Any] = Counter()
    for row in counts:
        sizes[row[by]] += int(row["n"])
    if len(sizes) <= N_COLOURS:
        return [dict(row) for row in counts], ""
    shown_values = {value for value, _ in sizes.most_common(N_COLOURS - 1)}
    rest = f"{len(sizes) - len(shown_values)} others"
    added: Counter[tuple[Any, Any]] = Counter()
    for row in counts:
        added[row[over], row[by] if row[by] in shown_values else rest] += int(row["n"])
    rows = [{over: place, by: value, "n": n} for (place, value), n in added.items()]
    return rows, f"The {len(shown_values)} largest of {len(sizes)} are told apart."


def before_after(rows: Sequence[Mapping[str, Any]], *, unit: str, factor: float = 1.0) -> Figure:
    """Return scores before and after a change, joined for each row.

    Parameters
    ----------
    rows : each with row (its name), before and after
    """
    bar_rows = [
        {"row": row["row"], "when": when, "score": factor * row[when]}
        for row in rows
        for when in ("before", "after")
    ]
    risen = sum(row["after"] > row["before"] for row in rows)
    x = {"field": "when", "type": "ordinal", "sort": ["before", "after"], "title": None}
    y = {"field": "score", "type": "quantitative", "title": unit, "scale": {"zero": False}}
    colour = {"field": "row", "type": "nominal", "title": None}
    return Figure(
        name="before_after",
        title="Before and after",
        description="A line from the score before to the score after for each row.",
        caption=f"{risen} of {counted(len(rows), 'row')} rose.",
        columns={"row": "row", "when": "when", "score": "score"},
        rows=bar_rows,
        spec={
            "width": 240,
            "height": 260,
            "mark": {"type": "line", "point": {"size": 60}},
            "encoding": {"x": x, "y": y, "color": colour},
        },
    )
