"""MedDialog: what patients ask online, a doctor's first reply, and short forms of the question.

From documentation.

Replies are of unknown doctors in public forums: what they advised was checked by nobody.
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, find_file, read_records, rows_of
from medassay.core.records.item import Bank

_TRAIN = "Tests are of the published train split: a model may have learned them."


class _Turns(msgspec.Struct):
    utterance: list[Cell] | None = None


class _PatientDialogue(msgspec.Struct):
    description: Cell
    utterances: _Turns | list[Cell] | None


class _SummarisedQuestion(msgspec.Struct):
    src: Cell
    tgt: Cell
    id: Cell = None


def load_raw(root: Path) -> Bank:
    """Return descriptions with the second utterance of each dialogue, the doctor's, as
    reference.
    """
    draft = BankBuilder(
        "meddialog_raw",
        licence="unstated",
        source="MedDialog, English (Zeng et al. 2020)",
        title="MedDialog, first reply of the doctor",
        limits=_TRAIN,
    )
    path = find_file(root, "*train*.json*", "*.json*")
    for number, dialogue in enumerate(rows_of(path, read_records(path), _PatientDialogue)):
        turns = dialogue.utterances
        if isinstance(turns, _Turns):
            turns = turns.utterance
        if turns is None or len(turns) < 2:
            draft.drop("no reply of a doctor")
            continue
        draft.text(f"meddialog-{number}", dialogue.description, turns[1])
    return draft.bank()


def load_qsumm(root: Path) -> Bank:
    """Return the questions of icliniq with their one-line summaries."""
    draft = BankBuilder(
        "meddialog_qsumm",
        licence="unstated",
        source="MedDialog, icliniq (Zeng et al. 2020)",
        title="MedDialog, summary of the question",
    )
    path = find_file(root, "*icliniq*test*.json*", "*test*.json*", "*.json*")
    for number, row in enumerate(rows_of(path, read_records(path), _SummarisedQuestion)):
        draft.text(f"qsumm-{row.id or number}", row.src, row.tgt)
    return draft.bank()
