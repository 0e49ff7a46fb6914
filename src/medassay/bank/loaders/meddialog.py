"""MedDialog: what patients ask online, a doctor's first reply, and short forms of the question.

From documentation.

Replies are of unknown doctors in public forums: what they advised was checked by nobody.
"""

from pathlib import Path

from medassay.bank.builder import BankBuilder, find_file, need_columns, read_records
from medassay.core.records.item import Bank

_TRAIN = "Tests are of the published train split: a model may have learned them."


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
    for number, row in enumerate(read_records(path)):
        need_columns(path, row, {"description", "utterances"})
        utterances = row["utterances"]
        turns = utterances.get("utterance") if isinstance(utterances, dict) else utterances
        if not isinstance(turns, list) or len(turns) < 2:
            draft.drop("no reply of a doctor")
            continue
        draft.text(f"meddialog-{number}", row["description"], turns[1])
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
    for number, row in enumerate(read_records(path)):
        need_columns(path, row, {"src", "tgt"})
        draft.text(f"qsumm-{row.get('id') or number}", row["src"], row["tgt"])
    return draft.bank()
