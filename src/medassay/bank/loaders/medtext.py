"""MedText: short case descriptions with diagnosis and treatment.

From documentation (the set is on a hub only).
"""

from pathlib import Path

from medassay.bank.builder import BankBuilder, find_file, need_columns, read_records
from medassay.core.records.item import Bank


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
    for number, row in enumerate(read_records(path)):
        need_columns(path, row, {"Prompt", "Completion"})
        draft.text(f"medtext-{number}", row["Prompt"], row["Completion"])
    return draft.bank()
