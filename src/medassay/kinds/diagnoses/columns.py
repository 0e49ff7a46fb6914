"""Ranked diagnoses in a terminal: aggregates, plain means, top-k, and how long the lists are."""

from collections.abc import Iterator, Sequence

from medassay.core.records.estimate import RowEstimate
from medassay.core.records.statistics import Statistics
from medassay.core.table import Table
from medassay.kinds.diagnoses.row import DiagnosesRow, DiagnosesSummary
from medassay.kinds.diagnoses.scorer import BEST


def tables(statistics: Statistics, domain: str) -> Iterator[Table]:
    """Yield both aggregates of ranked diagnoses, their plain means, and top-k."""
    rows = statistics.rows_as(DiagnosesRow, domain)
    summary = statistics.part("ddx", DiagnosesSummary)
    leading = summary.leading
    highest = 2 * BEST / summary.semantic_max - 1
    cells = [
        [
            row.model,
            row.prompt,
            *(_estimate_text(aggregates[leading]) for aggregates in (row.semantic, row.severity)),
            *(_estimate_text(mean, ".1f") for mean in (row.semantic_mean, row.severity_mean)),
            *(_estimate_text(share, ".1f", 100) for share in row.tops.values()),
            str((row.semantic_mean or row).n),
            f"{row.unjudged} of {row.labels}",
        ]
        for row in rows
    ]
    yield Table(
        rows=cells,
        text=("model", "prompt", "semantic", "severity", "semantic mean", "severity mean"),
        numbers=("top 1", "top 3", "top 5", "n", "unjudged"),
        title=(
            f"weighted aggregates, −1 to 1 (semantic to {highest:.3g}), {summary.leading_text};"
            " means of 16; top-k in %; percentile intervals"
        ),
    )
    if any(row.names for row in rows):
        yield _names(rows)


def _estimate_text(estimate: RowEstimate | None, form: str = ".2f", factor: float = 1.0) -> str:
    """Return an estimate with its interval, a dash where there is none."""
    return "–" if estimate is None else estimate.text(form, factor)


def _names(rows: Sequence[DiagnosesRow]) -> Table:
    """Return how many names lists hold: a short list of one right name scores high."""
    cells = [
        [
            row.model,
            row.prompt,
            _estimate_text(row.names, ".1f"),
            _estimate_text(row.short_lists, ".1f", 100),
            _estimate_text(row.semantic_mean, ".1f"),
            _estimate_text(row.all_places_mean, ".1f"),
        ]
        for row in rows
    ]
    return Table(
        rows=cells,
        text=("model", "prompt"),
        numbers=("names a list", "short lists, %", "semantic mean", "over all places"),
        title="names in lists: a list of one right name scores 16, over all places it does not",
    )
