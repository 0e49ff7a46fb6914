"""CareQA-Open: exam questions rephrased so that they need no options.

From documentation (the set is on a hub only).
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import (
    BankBuilder,
    Cell,
    find_file,
    read_records,
    rows_of,
    whole_number,
)
from medassay.core.records.item import Bank


class _CareQaOpenQuestion(msgspec.Struct):
    question: Cell
    answer: Cell
    unique_id: Cell = None
    exam_id: Cell = None
    category: Cell = None
    year: Cell = None


def load(root: Path) -> Bank:
    """Return the open set; the answer of the exam is the reference."""
    draft = BankBuilder(
        "careqa_open",
        licence="Apache-2.0",
        source="CareQA-Open, Spanish specialised health training exams 2020–2024, rephrased",
        title="CareQA-Open",
        limits="Most references are a few words long: BLEU without smoothing gives them nothing.",
    )
    path = find_file(root, "CareQA_en_open.json*", "*open*.json*", "*open*.csv")
    for number, row in enumerate(rows_of(path, read_records(path), _CareQaOpenQuestion)):
        draft.text(
            f"careqa-open-{row.unique_id or row.exam_id or number}",
            row.question,
            row.answer,
            category=str(row.category or "") or None,
            year=whole_number(row.year),
        )
    return draft.bank()
