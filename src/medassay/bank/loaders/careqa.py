"""CareQA, closed, in English and Spanish. From documentation (the set is on a hub only)."""

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


class _CareQaQuestion(msgspec.Struct):
    question: Cell
    op1: Cell
    op2: Cell
    op3: Cell
    op4: Cell
    cop: Cell
    unique_id: Cell = None
    exam_id: Cell = None
    category: Cell = None
    year: Cell = None


def load_en(root: Path) -> Bank:
    """Return the English closed set."""
    return _load(root, "en")


def load_es(root: Path) -> Bank:
    """Return the Spanish closed set."""
    return _load(root, "es")


def _load(root: Path, language: str) -> Bank:
    draft = BankBuilder(
        f"careqa_{language}",
        licence="Apache-2.0",
        source="CareQA, Spanish specialised health training exams 2020–2024",
        title=f"CareQA ({language})",
    )
    path = find_file(
        root, f"CareQA_{language}.json*", f"*CareQA_{language}*.json*", f"*_{language}*.csv"
    )
    for number, row in enumerate(rows_of(path, read_records(path), _CareQaQuestion)):
        key = whole_number(row.cop)
        draft.choice(
            f"careqa-{language}-{row.unique_id or row.exam_id or number}",
            row.question,
            [row.op1, row.op2, row.op3, row.op4],
            None if key is None else key - 1,
            domain=str(row.category or "careqa"),
            language=language,
            year=whole_number(row.year),
        )
    return draft.bank()
