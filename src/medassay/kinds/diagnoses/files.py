"""Ranked diagnoses as a file for spreadsheets."""

from collections.abc import Iterator

from medassay.core.table import Cell
from medassay.kinds.diagnoses.row import CaseEstimate, DiagnosesRow
from medassay.report.board import Board
from medassay.report.tables import csv_text, estimate_cells, named_row

_OF_CASES = [
    *(
        "domain",
        "mode",
        "model",
        "prompt",
        "number",
        "weights",
        "k",
        "x0",
        "estimate",
        "lo",
        "hi",
    ),
    *("second_method", "second_lo", "second_hi", "scale_lo", "scale_hi", "n"),
]


def diagnoses_csv(board: Board) -> str:
    """Return every estimate on ranked diagnoses as one table: a row for each number and its
    weights.
    """

    def rows() -> Iterator[dict[str, Cell]]:
        for domain in board.statistics.domains:
            for row in board.statistics.rows_as(DiagnosesRow, domain):
                for number, weights, estimate in _estimates(row):
                    yield {
                        **named_row(domain, row),
                        **estimate_cells(estimate),
                        "prompt": row.prompt,
                        "number": number,
                        "weights": weights,
                        "k": estimate.k,
                        "x0": estimate.x0,
                        "scale_lo": estimate.scale[0],
                        "scale_hi": estimate.scale[1],
                    }

    return csv_text(_OF_CASES, rows())


def _estimates(row: DiagnosesRow) -> Iterator[tuple[str, str, CaseEstimate]]:
    """Yield (number, weights, estimate) of one model-prompt, of what is known."""
    for number, aggregates in (("semantic", row.semantic), ("severity", row.severity)):
        for weights, estimate in aggregates.items():
            if estimate is not None:
                yield f"{number}, rescaled", "none" if weights == "mean" else weights, estimate
    means = ("semantic_mean", "severity_mean", "all_places_mean", "names", "short_lists")
    for number in (*means, "top1", "top3", "top5"):
        if (estimate := getattr(row, number)) is not None:
            yield number, "none", estimate
