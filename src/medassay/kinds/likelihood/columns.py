"""Likelihoods in a terminal: every metric of a row with its interval."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from medassay.core.records.leaderboard import honest_ends, units
from medassay.kinds.kind import Rows, Statistics, Table

SETTING = re.compile(r"\[[^]]*\]")  # the same in all names of a run: told once


def tables(rows: Rows, statistics: Statistics) -> Iterator[Table]:
    """Yield what stands beside a ranking by likelihood; rows without any are left out."""
    names = [name for row in rows for name in row["likelihood"]["metrics"]]
    setting = next((settings[0] for name in names if (settings := SETTING.findall(name))), "")
    lines = []
    for row in rows:
        for name, estimate in row["likelihood"]["metrics"].items():
            ends, scale = honest_ends(estimate), estimate["scale"]
            value, lo, hi = (units(n, scale) for n in (estimate["score"], ends["lo"], ends["hi"]))
            cells = [
                row["model"],
                row["setting"],
                SETTING.sub("", name),
                f"{value} [{lo}, {hi}]",
                units(estimate.get("median"), scale),
                str(estimate["n"]),
                str(estimate.get("nulls", 0)),
            ]
            lines.append(cells)
    notes = [f"{row['model']} · {row['setting']}: {n}" for row in rows for n in _row_notes(row)]
    yield Table(
        rows=lines,
        text=("model", "setting", "metric"),
        numbers=("value", "median", "items", "without a value"),
        title=(
            "beside the score, 95 % intervals; shares in %, perplexities: lower is better"
            f" {setting}"
        ),
        notes=notes,
    )


def _row_notes(row: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know of a row's texts and completions."""
    likelihood = row["likelihood"]
    lines = []
    if likelihood.get("bytes_per_word"):
        lines.append(
            f"{likelihood['words']} words, {likelihood['bytes']} bytes"
            f" ({likelihood['bytes_per_word']:.2f} a word), {likelihood['tokens']} tokens"
        )
    if likelihood.get("texts_differ"):
        lines.append(
            "its texts are not those of the other models: these numbers cannot be compared"
        )
    if likelihood.get("kept"):
        lines.append(
            f"{likelihood['distinct']:.1f} distinct completions an item, {likelihood['kept']:.1f}"
            " kept"
        )
    if likelihood["impossible"]:
        lines.append(f"{likelihood['impossible']} items are impossible to the model: no value")
    return lines
