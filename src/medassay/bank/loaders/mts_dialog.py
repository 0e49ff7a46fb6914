"""MTS-Dialog: short dialogues between doctor and patient, each with a section of the note.

Verified on data.
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, find_file, read_csv, rows_of
from medassay.core.records.item import Bank

LEAST = 5  # characters of a reference, and of an answer


class _SectionDialogue(msgspec.Struct):
    id: str = msgspec.field(name="ID")
    section_header: str
    section_text: str
    dialogue: str


def load(root: Path) -> Bank:
    """Return the train split, which the published suite evaluates on; from a file, that file."""
    draft = BankBuilder(
        "mts_dialog",
        licence="CC-BY-4.0",
        source="MTS-Dialog (Ben Abacha et al. 2023)",
        title="MTS-Dialog",
        limits="Tests are of the published train split: a model may have learned them.",
    )
    path = find_file(root, "*TrainingSet*.csv", "*train*.csv", "*.csv")
    for row in rows_of(path, read_csv(path), _SectionDialogue):
        draft.text(
            f"mts-{row.id}",
            row.dialogue,
            row.section_text,
            least=LEAST,
            category=row.section_header,
        )
    return draft.bank()
