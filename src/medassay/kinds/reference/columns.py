"""Likeness to references in a terminal: every metric of a row with its interval."""

from collections.abc import Iterator

from medassay.core.records.statistics import Statistics
from medassay.core.table import Table
from medassay.kinds.reference.row import TextRow, TextSummary


def tables(statistics: Statistics, domain: str) -> Iterator[Table]:
    """Yield what stands beside a ranking of texts, and which metrics are unavailable."""
    rows = statistics.rows_as(TextRow, domain)
    lines = []
    for row in rows:
        for name, estimate in row.text.metrics.items():
            if estimate is None:
                continue
            cells = [
                *row.key,
                name.replace("_", " "),
                estimate.text(".3f") if estimate.lo is not None else f"{estimate.value:.3f}",
                "–" if estimate.se is None else f"{estimate.se:.3f}",
                str(estimate.n),
                str(estimate.nulls),
            ]
            lines.append(cells)
    short = [
        f"{row.name}: {row.text.left_out} answers blank or too short"
        for row in rows
        if row.text.left_out
    ]
    summary = statistics.part("text", TextSummary)
    yield Table(
        rows=lines,
        text=("model", "setting", "metric"),
        numbers=("value", "standard error", "items", "without a value"),
        title="every metric, 95 % intervals",
        notes=(*short, *(f"unavailable: {reason}" for reason in summary.unavailable.values())),
    )
