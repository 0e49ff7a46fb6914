"""Steps of first aid to be put into order; written for a test."""

from pathlib import Path

from medassay.bank.builder import BankBuilder
from medassay.core.records.item import Bank


def load(root: Path) -> Bank:
    """Return twenty questions."""
    draft = BankBuilder(
        "first_aid", licence="CC0-1.0", source="written for a test", title="First aid"
    )
    for number in range(20):
        draft.add(
            {
                "id": f"s{number:02}",
                "domain": draft.name,
                "question": f"Case {number}: order A (call), B (compress) and C (look).",
                "order": ["A", "B", "C"] if number % 2 else ["C", "A", "B"],
                "kind": "synthetic" if number % 5 == 0 else "public",
            }
        )
    return draft.bank()
