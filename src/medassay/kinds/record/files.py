"""Health records as a file for spreadsheets."""

from collections.abc import Iterator

from medassay.core.records.estimate import Estimate
from medassay.core.records.health_record import DRUG_DETAILS, GOING_ON, LEAVES, NUMBERS
from medassay.core.table import Cell
from medassay.kinds.record.row import RecordColumns, RecordRow
from medassay.report.board import Board
from medassay.report.tables import csv_text, estimate_cells, named_row

_OF_RECORDS = [
    *("domain", "mode", "model", "setting", "number", "estimate", "lo", "hi"),
    *("second_method", "second_lo", "second_hi", "n", "gold", "silver", "flags"),
]


def records_csv(board: Board) -> str:
    """Return every estimate on health records as one table: a row for each number, section and
    branch of a graph.
    """

    def rows() -> Iterator[dict[str, Cell]]:
        for domain in board.statistics.domains:
            for row in board.statistics.rows_as(RecordRow, domain):
                for number, estimate in _record_estimates(row.record):
                    yield {
                        **named_row(domain, row),
                        **estimate_cells(estimate),
                        "number": number,
                        "gold": row.record.references.gold,
                        "silver": row.record.references.silver,
                        "flags": " ".join(row.flags),
                    }

    return csv_text(_OF_RECORDS, rows())


def _record_estimates(record: RecordColumns) -> Iterator[tuple[str, Estimate]]:
    """Yield (number, estimate) of what is known of a row's records."""
    numbers = {name: record.estimate(name) for name in NUMBERS}
    numbers |= {f"similarity of {name}": estimate for name, estimate in record.sections.items()}
    numbers |= {f"similarity of field {name}": estimate for name, estimate in record.fields.items()}
    numbers |= {name: record.estimate(name) for name in LEAVES}
    if (drugs := record.drugs) is not None:
        details = (*DRUG_DETAILS, GOING_ON)
        numbers |= {f"{name} of drugs": drugs.estimate(name) for name in details}
    for graph, estimates in record.graphs.items():
        numbers[graph] = estimates.score
        numbers |= {f"{graph}/{root}": branch for root, branch in estimates.branches.items()}
    yield from ((name, estimate) for name, estimate in numbers.items() if estimate is not None)
