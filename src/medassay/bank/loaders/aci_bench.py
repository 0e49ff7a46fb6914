"""ACI-Bench: whole visits as dialogues, with the clinical note. Verified on data."""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, read_csv, rows_of
from medassay.core.records.item import Bank
from medassay.errors import InputError


class _Visit(msgspec.Struct):
    dataset: str
    encounter_id: str
    dialogue: str
    note: str


def load(root: Path) -> Bank:
    """Return the three test sets; train and validation become the dev split.

    From a file, that file as test.
    """
    draft = BankBuilder(
        "aci_bench",
        licence="CC-BY-4.0",
        source="ACI-Bench (Yim et al. 2023)",
        title="ACI-Bench",
        limits=(
            "Visits were acted. Some transcripts have swapped speakers, on purpose. Dialogues are"
            " long: check the context of your models."
        ),
    )
    paths = [root] if root.is_file() else sorted(root.glob("*.csv"))
    paths = [path for path in paths if not path.stem.endswith("_metadata")]
    if not paths:
        raise InputError(f"{root}: holds no .csv of ACI-Bench")
    for path in paths:
        dev = not root.is_file() and "test" not in path.stem.lower()
        for visit in rows_of(path, read_csv(path), _Visit):
            draft.text(
                f"aci-{visit.encounter_id}",
                visit.dialogue,
                visit.note,
                category=visit.dataset,
                split="dev" if dev else "test",
            )
    return draft.bank()
