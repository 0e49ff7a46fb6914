"""MedMCQA (Indian entrance exams). Verified on data."""

from collections.abc import Sequence
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
from medassay.errors import InputError


class _LetteredMedMcqa(LetteredRow):
    subject_name: Cell = None


class _OriginalMedMcqa(msgspec.Struct):
    question: Cell
    opa: Cell
    opb: Cell
    opc: Cell
    opd: Cell
    cop: Cell
    id: Cell = None
    realidx: Cell = None
    subject_name: Cell = None
    choice_type: Cell = "single"


def load(root: Path) -> Bank:
    """Return MedMCQA from its original JSON Lines (`opa`…, `cop`) or the lettered copies.

    The original counts `cop` from 1, the hub's copy from 0; the file's own values decide.
    """
    draft = BankBuilder("medmcqa", licence="MIT", source="MedMCQA, validation set", title="MedMCQA")
    path = find_file(root, "dev.json*", "validation*.json*", "test.jsonl", "*.json*")
    rows = list(rows_of(path, read_records(path), _LetteredMedMcqa, _OriginalMedMcqa))
    if not rows:
        raise InputError(f"{path.name}: no records")
    original = [row for row in rows if isinstance(row, _OriginalMedMcqa)]
    first = _first_option(path, original) if original else 0
    for number, row in enumerate(rows):
        name = f"medmcqa-{next(n for n in (row.realidx, row.id, number) if n is not None)}"
        if isinstance(row, _LetteredMedMcqa):
            options, key = list(row.options.values()), letter_index(row.answer_idx)
        elif row.choice_type == "multi":
            draft.drop("several options may be right")
            continue
        else:
            options = [row.opa, row.opb, row.opc, row.opd]
            chosen = whole_number(row.cop)
            key = None if chosen is None else chosen - first
        subject = str(row.subject_name or "")
        draft.choice(name, row.question, options, key, domain="medmcqa", category=subject)
    return draft.bank()


def _first_option(path: Path, rows: Sequence[_OriginalMedMcqa]) -> int:
    chosen = {whole_number(row.cop) for row in rows}
    if 0 in chosen and 4 in chosen:
        raise InputError(f"{path.name}: column 'cop' holds both 0 and 4; expected 0–3 or 1–4")
    if 4 in chosen:
        return 1
    if 0 in chosen:
        return 0
    raise InputError(
        f"{path.name}: column 'cop' holds neither 0 nor 4, so its first option is unknown"
    )
