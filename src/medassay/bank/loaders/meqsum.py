"""MeQSum: consumers' long health questions with short ones.

Verified on data; free stand-in for MedDialog Qsumm.
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, find_file, rows_of
from medassay.bank.spreadsheet import read_rows
from medassay.core.records.item import Bank


class _MeQSumQuestion(msgspec.Struct):
    question: Cell = msgspec.field(name="CHQ")
    summary: Cell = msgspec.field(name="Summary")
    file: Cell = msgspec.field(name="File", default=None)


def load(root: Path) -> Bank:
    """Return the questions, each with its summary as reference."""
    draft = BankBuilder(
        "meqsum",
        licence="CC-BY-4.0",
        source="MeQSum (Ben Abacha and Demner-Fushman 2019)",
        title="MeQSum",
    )
    path = find_file(root, "*MeQSum*.xlsx", "*.xlsx", "*.csv")
    cells = list(read_rows(path))
    rows = rows_of(path, (record for _, record in cells), _MeQSumQuestion)
    for (number, _), row in zip(cells, rows, strict=True):
        draft.text(f"meqsum-{row.file or number}", row.question, row.summary)
    return draft.bank()
