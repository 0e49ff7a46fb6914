"""What changed between two banks, and a new version when anything did."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import msgspec

from medassay.bank.card import card_text, next_version, read_card
from medassay.bank.check import form_of
from medassay.bank.folder import bank_records, load_bank
from medassay.bank.lock import register, registered_hash
from medassay.bank.released import FILE, raise_revisions, read_released, write_released
from medassay.core.canonical import canonical
from medassay.core.files import write_lines
from medassay.core.records.card_object import CardObject
from medassay.core.records.item import Bank
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import Report
from medassay.errors import GateError, InputError


class BankDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of items added, removed and changed, the latter with the names of the changed fields."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: dict[str, tuple[str, ...]]

    @property
    def empty(self) -> bool:
        """Return whether both banks hold the same items."""
        return not (self.added or self.removed or self.changed)


def diff_banks(old: Bank, new: Bank) -> BankDifference:
    """Return what turns the items of `old` into those of `new`."""
    before = {item.id: record for item, record in bank_records(old)}
    after = {item.id: record for item, record in bank_records(new)}
    changed: dict[str, tuple[str, ...]] = {}
    for name in sorted(before.keys() & after.keys()):
        if canonical(before[name]) != canonical(after[name]):
            changed[name] = _changed_fields(before[name], after[name])
    return BankDifference(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed=changed,
    )


def _changed_fields(before: ItemObject, after: ItemObject) -> tuple[str, ...]:
    absent = object()
    keys = sorted(before.keys() | after.keys())
    return tuple(k for k in keys if before.get(k, absent) != after.get(k, absent))


def release(folder: Path, *, reason: str, lock: Path, today: dt.date) -> tuple[str, str]:
    """Register the bank's present items, under a new version if the present one is taken.

    An item that changed since the last release gets its next revision; CHANGES.md names it, as well
    as what came and went.

    Returns
    -------
    (version, content hash)

    Raises
    ------
    GateError
        If nothing changed since the registered version.
    """
    if not reason.strip():
        raise InputError("release: a reason is needed; it is written into CHANGES.md")
    bank = load_bank(folder, lock=lock, check=False)
    previous_hash = read_card(folder).content_sha256 or registered_hash(lock, bank.version)
    if previous_hash == bank.content_hash:
        raise GateError(
            f"bank '{bank.name}': items equal those of {bank.version}; nothing to release"
        )
    changes, bank = _revised(folder, bank, is_known=previous_hash is not None)
    version = bank.version if previous_hash is None else next_version(bank.version, today.year)
    while registered_hash(lock, version) not in (None, bank.content_hash):
        version = next_version(version, today.year)  # taken by an interrupted release
    register(lock, version, bank.content_hash)
    new_card: CardObject = {
        **bank.card,
        "question_bank_version": version,
        "content_sha256": bank.content_hash,
    }
    (folder / "bank.toml").write_text(card_text(new_card), encoding="utf-8")
    log = folder / "CHANGES.md"
    before = log.read_text(encoding="utf-8") if log.exists() else "# Changes\n"
    sentences = [" ".join(reason.split()), changes, f"Content {bank.content_hash}."]
    entry = f"\n## {version}\n\n{today.isoformat()}. {' '.join(filter(None, sentences))}\n"
    log.write_text(before + entry, encoding="utf-8")
    write_released(folder, (record for _, record in bank_records(bank)))
    return version, bank.content_hash


def _revised(folder: Path, bank: Bank, *, is_known: bool) -> tuple[str, Bank]:
    """Raise the revisions of changed items.

    Return what CHANGES.md says of them, and the bank as it is then.
    """
    released = read_released(folder)
    if released is None:
        unknown = (
            f"Which items changed since {bank.version} is not known: that version has no {FILE}."
        )
        return (unknown if is_known else ""), bank
    changes = raise_revisions(folder, released)
    return changes.text, load_bank(folder, lock=None, check=False)


def approve(
    folder: Path, names: Sequence[str], *, who: str, lock: Path, today: dt.date
) -> tuple[str, str]:
    """Note on items that a person has approved them, and release the bank with the note.

    Without names all items are, but for those that somebody has approved before and reports without
    a record.

    Returns
    -------
    (version, content hash)

    Raises
    ------
    InputError
        When nobody is named, an item is not there, was approved before, or has no record to
        approve; nothing is changed then.
    """
    if not who.strip():
        raise InputError("approve: nobody is named; say who approved the items with --by")
    records = [record for _, record in bank_records(load_bank(folder, lock=None, check=False))]
    reasons = {record["id"]: _unapprovable(record) for record in records}
    for name in names:
        if name not in reasons:
            raise InputError(f"approve: no item '{name}' in {folder}; nothing was changed")
        if reasons[name]:
            raise InputError(f"approve: item '{name}' {reasons[name]}; nothing was changed")
    ids = frozenset(names) or {name for name, why in reasons.items() if not why}
    if not ids:
        raise InputError(f"approve: {folder} holds nothing that could still be approved")
    approval = {"who": who.strip(), "when": today.isoformat()}
    before = (folder / "items.jsonl").read_bytes()
    part = folder / "items.jsonl.part"
    write_lines(part, (r | {"approval": approval} if r["id"] in ids else r for r in records))
    part.replace(folder / "items.jsonl")
    listed = f"{len(ids)} items" if len(ids) > 3 else ", ".join(sorted(ids))
    try:
        return release(
            folder, reason=f"Approved by {who.strip()}: {listed}.", lock=lock, today=today
        )
    except BaseException:  # nothing is approved that is not released
        (folder / "items.jsonl").write_bytes(before)
        raise


def _unapprovable(record: ItemObject) -> str:
    """Return why an item cannot be approved, empty if it can."""
    if "approval" in record:
        approval = record["approval"]
        return (
            f"was approved by {approval.get('who', 'somebody')} on"
            f" {approval.get('when', 'some day')}"
        )
    return "has no record to approve" if form_of(record) == Report.form else ""
