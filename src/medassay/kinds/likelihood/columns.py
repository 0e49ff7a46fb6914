"""Likelihoods in a terminal: every metric of a row with its interval."""

import re
from collections.abc import Iterator

from medassay.core.records.statistics import Statistics
from medassay.core.scale import units
from medassay.core.table import Table
from medassay.kinds.likelihood.row import LikelihoodRow

SETTING = re.compile(r"\[[^]]*\]")  # the same in all names of a run: told once


def tables(statistics: Statistics, domain: str) -> Iterator[Table]:
    """Yield what stands beside a ranking by likelihood; rows without any are left out."""
    rows = statistics.rows_as(LikelihoodRow, domain)
    names = [name for row in rows for name in row.likelihood.metrics]
    setting = next((settings[0] for name in names if (settings := SETTING.findall(name))), "")
    lines = []
    for row in rows:
        for name, estimate in row.likelihood.metrics.items():
            cells = [
                *row.key,
                SETTING.sub("", name),
                estimate.on(estimate.scale),
                units(estimate.median, estimate.scale),
                str(estimate.n),
                str(estimate.nulls),
            ]
            lines.append(cells)
    notes = [f"{row.name}: {n}" for row in rows for n in _row_notes(row)]
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


def _row_notes(row: LikelihoodRow) -> list[str]:
    """Return what a reader must know of a row's texts and completions."""
    likelihood = row.likelihood
    lines = []
    if likelihood.bytes_per_word:
        lines.append(
            f"{likelihood.words} words, {likelihood.bytes} bytes"
            f" ({likelihood.bytes_per_word:.2f} a word), {likelihood.tokens} tokens"
        )
    if likelihood.texts_differ:
        lines.append(
            "its texts are not those of the other models: these numbers cannot be compared"
        )
    if likelihood.kept:
        lines.append(
            f"{likelihood.distinct:.1f} distinct completions an item, {likelihood.kept:.1f} kept"
        )
    if likelihood.impossible:
        lines.append(f"{likelihood.impossible} items are impossible to the model: no value")
    return lines
