"""MedCalc-Bench: clinical calculators, scored by an accepted range. Verified on data."""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, find_file, read_csv, rows_of
from medassay.core.records.item import Bank


class _Calculation(msgspec.Struct):
    calculator: str = msgspec.field(name="Calculator Name")
    output_type: str = msgspec.field(name="Output Type")
    note: str = msgspec.field(name="Patient Note")
    question: str = msgspec.field(name="Question")
    lower: str = msgspec.field(name="Lower Limit")
    upper: str = msgspec.field(name="Upper Limit")
    number: str = msgspec.field(name="Row Number", default="")
    category: str = msgspec.field(name="Category", default="")
    note_id: str = msgspec.field(name="Note ID", default="")


def load(root: Path) -> Bank:
    """Return the items whose answer is a number; dates and durations are counted as dropped."""
    draft = BankBuilder(
        "medcalc",
        licence="CC-BY-SA-4.0",
        source="MedCalc-Bench; notes from published case reports",
        title="MedCalc-Bench",
        limits="An early version: the authors corrected some answers later.",
    )
    path = find_file(root, "test_data*.csv", "*.csv")
    for number, row in enumerate(rows_of(path, read_csv(path), _Calculation)):
        if row.output_type == "date":
            draft.drop("answer is a date")
            continue
        try:
            lo, hi = float(row.lower), float(row.upper)
        except ValueError:
            draft.drop("limits are no numbers")
            continue
        # Limits are the answer times 0.95 and 1.05, which swaps them below zero.
        draft.add(
            {
                "id": f"medcalc-{row.number or number}",
                "domain": "medcalc",
                "category": row.category,
                "condition": row.calculator,
                "context": row.note,
                "question": row.question,
                "range": {"lo": min(lo, hi), "hi": max(lo, hi)},
                "cluster": row.note_id,
            }
        )
    return draft.bank()
