"""Opening what is withheld: the text of a synthetic item, and the proof that it is what was
committed to.
"""

from pathlib import Path
from typing import Any, ClassVar

import msgspec

from medassay.core.keyed import KeyedRecord
from medassay.errors import InputError, IntegrityError
from medassay.publishing.redaction import item_key, trial_key
from medassay.publishing.withhold import withholding_of
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import PUBLISHED_RUN, Run


class OpenedRecord(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """A private record with its salt and commitment.

    `public` says whether the publication has it.
    """

    KEYS: ClassVar = ("what", "record", "salt", "commitment", "public")

    what: str
    record: dict[str, Any]
    salt: str
    commitment: str
    public: bool | None


def open_item(
    run: Run, name: str, *, model: str = "", publication: Path | None = None
) -> list[OpenedRecord]:
    """Return a synthetic item of a private run and the answers to it, each with its proof.

    Parameters
    ----------
    model : only the answers of this model
    publication : the public folder (`p/<id>`) that must hold the commitments

    Raises
    ------
    InputError
        When the run has no such synthetic item.
    IntegrityError
        When the publication holds another commitment, or none.
    """
    named = [r for r in read_jsonl(run.path / "items.jsonl") if r["id"] == name]
    if not named:
        raise InputError(f"run {run.id}: no item '{name}'")
    items = [record for record in named if record.get("kind") == "synthetic"]
    if not items:
        raise InputError(f"item '{name}' is public: its text stands in the publication")
    if "commitment" in items[0]:
        raise InputError(f"{run.path}: is the public copy; the text is in the private run")
    hidden = withholding_of(run)
    domains = {record["domain"] for record in items}
    commitments = None if publication is None else _commitments(publication)
    records_found: list[tuple[str, Any, tuple[str | int, ...]]] = [
        ("item", record, item_key(record)) for record in items
    ]
    records_found += [
        (f"answer of {record['model']}", record, trial_key(record))
        for record in read_jsonl(run.path / "trials.jsonl")
        if record["item"] == name and record["domain"] in domains and model in ("", record["model"])
    ]
    if model and len(records_found) == len(items):
        raise InputError(f"run {run.id}: no answer of '{model}' to item '{name}'")
    opened = []
    for what, record, key in records_found:
        commitment_made = hidden.commitment(record, *key)
        if commitments is not None and commitment_made not in commitments:
            raise IntegrityError(
                f"{what} ('{name}'): commitment {commitment_made} is not in {publication}: not what"
                " was published"
            )
        opened.append(
            OpenedRecord(
                what=what,
                record=record,
                salt=hidden.salt(*key),
                commitment=commitment_made,
                public=None if commitments is None else True,
            )
        )
    return opened


def _commitments(publication: Path) -> set[str]:
    data = publication / PUBLISHED_RUN
    if not data.is_dir():
        raise InputError(f"{publication}: no publication; expected a folder p/<id> of a site")
    return {
        record["commitment"]
        for name in ("items.jsonl", "trials.jsonl")
        for record in read_jsonl(data / name)
        if "commitment" in record
    }
