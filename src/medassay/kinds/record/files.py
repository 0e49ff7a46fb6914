"""Health records as a file for spreadsheets."""

from collections.abc import Iterator
from typing import Any

from medassay.core.records.health_record import DRUG_DETAILS, GOING_ON, LEAVES, NUMBERS
from medassay.report.board import Board
from medassay.report.tables import csv_text

_OF_RECORDS = [
    *("domain", "mode", "model", "setting", "number", "estimate", "lo", "hi"),
    *("second_method", "second_lo", "second_hi", "n", "gold", "silver", "flags"),
]


def records_csv(board: Board) -> str:
    """Return every estimate on health records as one table: a row for each number, section and
    branch of a graph.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for domain, rows_of_domain in board.statistics["domains"].items():
            for row in rows_of_domain:
                who = {name: row[name] for name in ("mode", "model", "setting")}
                marks = {"flags": " ".join(row["flags"])}
                marks |= {name: row["record"]["references"][name] for name in ("gold", "silver")}
                for number, estimate in _record_estimates(row["record"]):
                    second = {f"second_{k}": v for k, v in (estimate["second"] or {}).items()}
                    cells = {"domain": domain, "number": number, "estimate": estimate["score"]}
                    yield {**who, **estimate, **cells, **second, **marks}

    return csv_text(_OF_RECORDS, rows())


def _record_estimates(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (number, estimate) of what is known of a row's records."""
    numbers = {name: record[name] for name in NUMBERS}
    numbers |= {f"similarity of {name}": estimate for name, estimate in record["sections"].items()}
    numbers |= {
        f"similarity of field {name}": estimate for name, estimate in record["fields"].items()
    }
    drugs = record.get("drugs", {})
    numbers |= {name: record.get(name) for name in LEAVES}
    numbers |= {f"{name} of drugs": drugs.get(name) for name in (*DRUG_DETAILS, GOING_ON)}
    for graph, graph_record in record["graphs"].items():
        numbers[graph] = graph_record["score"]
        numbers |= {
            f"{graph}/{root}": estimate for root, estimate in graph_record["branches"].items()
        }
    yield from ((name, estimate) for name, estimate in numbers.items() if estimate is not None)
