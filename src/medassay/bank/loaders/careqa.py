"""CareQA in English and Spanish, and CareQA-Open: exam questions rephrased so that they need no
options. From documentation (the sets are on a hub only).
"""

from functools import partial
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


class _CareQaQuestion(msgspec.Struct, kw_only=True):
    question: Cell
    unique_id: Cell = None
    exam_id: Cell = None
    category: Cell = None
    year: Cell = None


class _ClosedQuestion(_CareQaQuestion, kw_only=True):
    op1: Cell
    op2: Cell
    op3: Cell
    op4: Cell
    cop: Cell


class _OpenQuestion(_CareQaQuestion, kw_only=True):
    answer: Cell


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
    for number, row in enumerate(rows_of(path, read_records(path), _ClosedQuestion)):
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


load_en = partial(_load, language="en")
load_es = partial(_load, language="es")


def load_open(root: Path) -> Bank:
    """Return the open set; the answer of the exam is the reference."""
    draft = BankBuilder(
        "careqa_open",
        licence="Apache-2.0",
        source="CareQA-Open, Spanish specialised health training exams 2020–2024, rephrased",
        title="CareQA-Open",
        limits="Most references are a few words long: BLEU without smoothing gives them nothing.",
    )
    path = find_file(root, "CareQA_en_open.json*", "*open*.json*", "*open*.csv")
    for number, row in enumerate(rows_of(path, read_records(path), _OpenQuestion)):
        draft.text(
            f"careqa-open-{row.unique_id or row.exam_id or number}",
            row.question,
            row.answer,
            category=str(row.category or "") or None,
            year=whole_number(row.year),
        )
    return draft.bank()
