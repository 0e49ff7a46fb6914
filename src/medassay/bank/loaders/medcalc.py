"""MedCalc-Bench: clinical calculators, scored by an accepted range. Verified on data."""

from pathlib import Path

from medassay.bank.builder import BankBuilder, find_file, need_columns, read_csv
from medassay.core.records.item import Bank

_COLUMNS = {
    "Calculator Name",
    "Output Type",
    "Patient Note",
    "Question",
    "Lower Limit",
    "Upper Limit",
}


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
    for number, row in enumerate(read_csv(path)):
        need_columns(path, row, _COLUMNS)
        if row["Output Type"] == "date":
            draft.drop("answer is a date")
            continue
        try:
            lo, hi = float(row["Lower Limit"]), float(row["Upper Limit"])
        except ValueError:
            draft.drop("limits are no numbers")
            continue
        # Limits are the answer times 0.95 and 1.05, which swaps them below zero.
        draft.add(
            {
                "id": f"medcalc-{row.get('Row Number') or number}",
                "domain": "medcalc",
                "category": row.get("Category") or "",
                "condition": row["Calculator Name"],
                "context": row["Patient Note"],
                "question": row["Question"],
                "range": {"lo": min(lo, hi), "hi": max(lo, hi)},
                "cluster": row.get("Note ID") or "",
            }
        )
    return draft.bank()
