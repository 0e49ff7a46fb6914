"""Likeness to references in a terminal: every metric of a row with its interval."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.cli.output import out, visible


def print_texts(rows: Sequence[dict[str, Any]], document: Mapping[str, Any]) -> None:
    """Print what stands beside a ranking of texts, and which metrics are unavailable."""
    from medassay.core.records.leaderboard import honest_ends

    table = []
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
            table.append(cells)
    out.table(
        table,
        text=("model", "setting", "metric"),
        numbers=("value", "standard error", "items", "without a value"),
        title="every metric, 95 % intervals",
    )
    for row in rows:
        if row["text"]["left_out"]:
            who = f"{visible(row['model'])} · {visible(row['setting'])}"
            out.result(f"{who}: {row['text']['left_out']} answers blank or too short")
    for reason in document["unavailable"].values():
        out.result(f"unavailable: {visible(reason)}")
