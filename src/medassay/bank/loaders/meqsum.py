"""MeQSum: consumers' long health questions with short ones.

Verified on data; free stand-in for MedDialog Qsumm.
"""

from pathlib import Path

from medassay.bank.builder import BankBuilder, find_file, need_columns
from medassay.bank.spreadsheet import read_rows
from medassay.core.records.item import Bank


def load(root: Path) -> Bank:
    """Return the questions, each with its summary as reference."""
    draft = BankBuilder(
        "meqsum",
        licence="CC-BY-4.0",
        source="MeQSum (Ben Abacha and Demner-Fushman 2019)",
        title="MeQSum",
    )
    path = find_file(root, "*MeQSum*.xlsx", "*.xlsx", "*.csv")
    for row, cells in read_rows(path):
        need_columns(path, cells, {"CHQ", "Summary"})
        draft.text(f"meqsum-{cells.get('File') or row}", cells["CHQ"], cells["Summary"])
    return draft.bank()
