"""Likeness to references in a terminal: every metric of a row with its interval."""

from collections.abc import Iterator

from medassay.core.records.leaderboard import honest_ends
from medassay.kinds.kind import Rows, Statistics, Table


def tables(rows: Rows, statistics: Statistics) -> Iterator[Table]:
    """Yield what stands beside a ranking of texts, and which metrics are unavailable."""
    lines = []
    for row in rows:
        for name, estimate in row["text"]["metrics"].items():
            if estimate is None:
                continue
            ends = honest_ends(estimate) if estimate["flags"] is not None else estimate
            band = "" if ends["lo"] is None else f" [{ends['lo']:.3f}, {ends['hi']:.3f}]"
            cells = [
                row["model"],
                row["setting"],
                name.replace("_", " "),
                f"{estimate['score']:.3f}{band}",
                "–" if estimate["se"] is None else f"{estimate['se']:.3f}",
                str(estimate["n"]),
                str(estimate["nulls"]),
            ]
            lines.append(cells)
    short = [
        f"{row['model']} · {row['setting']}: {row['text']['left_out']} answers blank or too short"
        for row in rows
        if row["text"]["left_out"]
    ]
    reasons = statistics["text"]["unavailable"].values()
    yield Table(
        rows=lines,
        text=("model", "setting", "metric"),
        numbers=("value", "standard error", "items", "without a value"),
        title="every metric, 95 % intervals",
        notes=(*short, *(f"unavailable: {reason}" for reason in reasons)),
    )
