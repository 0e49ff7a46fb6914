"""Ranked diagnoses in a terminal: aggregates, plain means, top-k, and how long the lists are."""

from collections.abc import Iterator
from typing import Any

from medassay.core.records.leaderboard import honest_ends
from medassay.kinds.diagnoses.aggregates import TOPS
from medassay.kinds.diagnoses.scorer import BEST
from medassay.kinds.kind import Rows, Statistics, Table


def tables(rows: Rows, statistics: Statistics) -> Iterator[Table]:
    """Yield both aggregates of ranked diagnoses, their plain means, and top-k."""
    document = statistics["ddx"]
    leading = document["leading"]
    weights = document["presets"][leading]
    highest = 2 * BEST / document["semantic_max"] - 1
    cells = [
        [
            row["model"],
            row["prompt"],
            *(_estimate_text(row[name][leading]) for name in ("semantic", "severity")),
            *(_estimate_text(row[f"{name}_mean"], digits=1) for name in ("semantic", "severity")),
            *(_estimate_text(row[f"top{k}"], 100.0, 1) for k in TOPS),
            str((row["semantic_mean"] or row)["n"]),
            f"{row['unjudged']} of {row['labels']}",
        ]
        for row in rows
    ]
    yield Table(
        rows=cells,
        text=("model", "prompt", "semantic", "severity", "semantic mean", "severity mean"),
        numbers=("top 1", "top 3", "top 5", "n", "unjudged"),
        title=(
            f"weighted aggregates, −1 to 1 (semantic to {highest:.3g}), {leading}: k ="
            f" {weights['k']:g}, x0 = {weights['x0']:g}; means of 16; top-k in %"
        ),
    )
    if any(row.get("names") for row in rows):
        yield _names(rows)


def _estimate_text(estimate: dict[str, Any] | None, factor: float = 1.0, digits: int = 2) -> str:
    """Return an estimate with its interval, a dash where there is none."""
    if not estimate:
        return "–"
    ends = honest_ends(estimate)
    numbers = [factor * n for n in (estimate["score"], ends["lo"], ends["hi"])]
    return "{} [{}, {}]".format(*(f"{n:.{digits}f}" for n in numbers))


def _names(rows: Rows) -> Table:
    """Return how many names lists hold: a short list of one right name scores high."""
    cells = [
        [
            row["model"],
            row["prompt"],
            _estimate_text(row["names"], digits=1),
            _estimate_text(row["short_lists"], 100.0, 1),
            _estimate_text(row["semantic_mean"], digits=1),
            _estimate_text(row["all_places_mean"], digits=1),
        ]
        for row in rows
    ]
    return Table(
        rows=cells,
        text=("model", "prompt"),
        numbers=("names a list", "short lists, %", "semantic mean", "over all places"),
        title="names in lists: a list of one right name scores 16, over all places it does not",
    )
