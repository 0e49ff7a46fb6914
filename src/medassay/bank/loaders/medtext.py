"""MedText: short case descriptions with diagnosis and treatment.

From documentation (the set is on a hub only).
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, find_file, read_records, rows_of
from medassay.core.records.item import Bank


class _Case(msgspec.Struct):
    description: Cell = msgspec.field(name="Prompt")
    discussion: Cell = msgspec.field(name="Completion")


def load(root: Path) -> Bank:
    """Return the cases; the text that follows each is the reference."""
    draft = BankBuilder(
        "medtext",
        licence="CC-BY-4.0",
        source="MedText, BI55/MedText",
        title="MedText",
        limits=(
            "Tests are of the published train split: a model may have learned them. Cases were"
            " written with the help of models."
        ),
    )
    path = find_file(root, "*.csv", "*.json*")
    for number, case in enumerate(rows_of(path, read_records(path), _Case)):
        draft.text(f"medtext-{number}", case.description, case.discussion)
    return draft.bank()
