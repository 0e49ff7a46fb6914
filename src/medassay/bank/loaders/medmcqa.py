"""MedMCQA (Indian entrance exams). Verified on data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from medassay.bank.builder import (
    BankBuilder,
    find_file,
    letter_index,
    need_columns,
    read_records,
    whole_number,
)
from medassay.core.records.item import Bank
from medassay.errors import InputError

_LETTERED = {"question", "options", "answer_idx"}
_ORIGINAL = {"question", "opa", "opb", "opc", "opd", "cop"}


def load(root: Path) -> Bank:
    """Return MedMCQA from its original JSON Lines (`opa`…, `cop`) or the lettered copies.

    The original counts `cop` from 1, the hub's copy from 0; the file's own values decide.
    """
    draft = BankBuilder("medmcqa", licence="MIT", source="MedMCQA, validation set", title="MedMCQA")
    path = find_file(root, "dev.json*", "validation*.json*", "test.jsonl", "*.json*")
    rows = list(read_records(path))
    if not rows:
        raise InputError(f"{path.name}: no records")
    layout = need_columns(path, rows[0], _LETTERED, _ORIGINAL)
    first = _first_option(path, rows) if layout else 0
    for number, row in enumerate(rows):
        need_columns(path, row, (_LETTERED, _ORIGINAL)[layout])
        name = f"medmcqa-{row.get('realidx', row.get('id', number))}"
        if layout == 0:
            options, key = list(row["options"].values()), letter_index(row["answer_idx"])
        elif row.get("choice_type", "single") == "multi":
            draft.drop("several options may be right")
            continue
        else:
            options = [row["opa"], row["opb"], row["opc"], row["opd"]]
            chosen = whole_number(row["cop"])
            key = None if chosen is None else chosen - first
        subject = str(row.get("subject_name") or "")
        draft.choice(name, row["question"], options, key, domain="medmcqa", category=subject)
    return draft.bank()


def _first_option(path: Path, rows: Sequence[Mapping[str, str | int]]) -> int:
    chosen = {whole_number(row.get("cop")) for row in rows}
    if 0 in chosen and 4 in chosen:
        raise InputError(f"{path.name}: column 'cop' holds both 0 and 4; expected 0–3 or 1–4")
    if 4 in chosen:
        return 1
    if 0 in chosen:
        return 0
    raise InputError(
        f"{path.name}: column 'cop' holds neither 0 nor 4, so its first option is unknown"
    )
