"""MedQA (USMLE, four options). Verified on data."""

from pathlib import Path

import msgspec

from medassay.bank.builder import (
    BankBuilder,
    Cell,
    LetteredRow,
    find_file,
    letter_index,
    read_records,
    rows_of,
    whole_number,
)
from medassay.core.records.item import Bank


class _LetteredMedQa(LetteredRow):
    """A question of the original, or of copies with `realidx`."""

    meta_info: Cell = None


class _HubMedQa(msgspec.Struct):
    sent1: Cell
    ending0: Cell
    ending1: Cell
    ending2: Cell
    ending3: Cell
    label: Cell
    sent2: Cell = None
    id: Cell = None
    realidx: Cell = None


def load(root: Path) -> Bank:
    """Return MedQA from JSON Lines in the original layout or the hub's `sent1`/`ending*` layout."""
    draft = BankBuilder(
        "medqa", licence="MIT", source="MedQA, USMLE, four options", title="MedQA (USMLE)"
    )
    path = find_file(root, "test.jsonl", "*test*.jsonl", "*.jsonl", "*.json")
    for number, row in enumerate(rows_of(path, read_records(path), _LetteredMedQa, _HubMedQa)):
        name = f"medqa-{next(n for n in (row.realidx, row.id, number) if n is not None)}"
        if isinstance(row, _LetteredMedQa):
            options, key = list(row.options.values()), letter_index(row.answer_idx)
            question, step = row.question, row.meta_info
        else:
            options = [row.ending0, row.ending1, row.ending2, row.ending3]
            key, step = whole_number(row.label), None
            question = f"{row.sent1} {row.sent2 or ''}".strip()
        draft.choice(name, question, options, key, domain="medqa", category=step)
    return draft.bank()
