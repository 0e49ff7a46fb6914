"""From a workshop to a version of a bank: the items that people accepted, or the corrections that
they decided.

An interrupted release is finished by the same call: what is on the disk is compared with what
shall be there, step by step, and the journal's line comes last.
"""

import datetime as dt
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from medassay.bank.card import card_text, next_version, read_card, read_card_document
from medassay.bank.folder import (
    bank_records,
    load_bank,
    write_bank,
)
from medassay.bank.lock import register, registered_hash
from medassay.bank.release import release
from medassay.core.canonical import canonical
from medassay.core.files import write_whole
from medassay.core.records.card_object import CardObject
from medassay.core.records.item_line import item_line
from medassay.core.records.item_object import ItemObject
from medassay.core.wording import counted
from medassay.errors import GateError, InputError
from medassay.synthesis.card import card_of, plan_of
from medassay.synthesis.decide import decide
from medassay.synthesis.items import accepted, not_yet_items, present_items, undecided
from medassay.synthesis.project import JOURNAL, Event, Workshop, basis_of, open_workshop
from medassay.synthesis.records import ItemRevision, ReleaseNote
from medassay.synthesis.reviewing import CorrectedItem, corrected, is_correction
from medassay.synthesis.steps import handle_of

BANK = "bank"  # the folder in a workshop
Released = tuple[Path, str, str]  # folder, version, content hash
Records = dict[str, ItemObject]


def release_items(workshop: Workshop, *, reason: str, lock: Path, today: dt.date) -> Released:
    """Write the accepted items of a workshop as a bank and bind them to a version.

    A new one where there was one.

    An item that changed since a version gets its next revision. A workshop of corrections changes
    the bank that these are of.

    Returns
    -------
    (folder of the bank, version, content hash)

    Raises
    ------
    InputError
        When no item was accepted, or the bank was changed by something else.
    GateError
        When nothing changed since the last version, or something was accepted from the queue and is
        no item yet.
    """
    if not reason.strip():
        raise InputError("release: a reason is needed; it is written into CHANGES.md")
    registered_hash(lock, "")  # a lock that cannot be read stops here, before anything is written
    if is_correction(workshop):
        return _release_corrections(workshop, reason, lock, today)
    if waiting := not_yet_items(workshop):
        raise GateError(
            f"{workshop.folder}: {counted(len(waiting), 'entry', 'entries')} of the queue, first"
            f" '{handle_of(waiting[0].place)}', {'was' if len(waiting) == 1 else 'were'} accepted"
            f" and {'is no item' if len(waiting) == 1 else 'are no items'} yet: `medassay bank"
            " synthesize` makes the items, `medassay bank decide` accepts them, then release"
        )
    accepted_items = accepted(workshop)
    if not accepted_items:
        n_left = len(present_items(workshop))
        raise InputError(
            f"{workshop.folder}: no item is accepted, {n_left} wait; `medassay bank queue` lists"
            " them, `medassay bank decide` notes what a person decides"
        )
    folder = workshop.folder / BANK
    records = _revised(workshop, accepted_items)
    basis = basis_of(sorted(canonical(record).decode() for record in records.values()))
    latest = next(reversed(_releases(workshop)), None)
    if latest is not None and latest.line.basis == basis:
        raise GateError(
            f"{folder}: the accepted items equal those of {latest.line.subject}; nothing to release"
        )
    _refuse_changed(folder, latest, records)
    gone = _gone(workshop, latest, records)
    why = f"{' '.join(reason.split())}{f' No longer made: {gone}.' if gone else ''}"
    before = read_card_document(folder) if folder.exists() else {}
    card = card_of(workshop, accepted_items, before, today)
    version, content = _bind(folder, card, records, why, lock, today)
    _note_release(workshop, version, content, basis, records, why)
    return folder, version, content


def _gone(workshop: Workshop, latest: Event | None, records: Records) -> str:
    """Return the released items that the plan makes no more.

    Refuse to lose some that only wait for a decision.

    Raises
    ------
    GateError
        Naming released items that were made anew, so that they wait.
    """
    released = [] if latest is None else latest.result_as(ReleaseNote).items
    before = [name for name in released if name not in records]
    waiting = {event.place[1] for event in undecided(workshop)}
    if again := [name for name in before if name in waiting]:
        raise GateError(
            f"{len(again)} released items were made anew and wait for a decision, first"
            f" '{again[0]}'; decide about them (remove takes them out), then release"
        )
    present = {event.place[1] for event in present_items(workshop)}
    return ", ".join(name for name in before if name not in present)


def _releases(workshop: Workshop) -> list[Event]:
    return [event for event in workshop.events if event.line.step == "release"]


def _refuse_changed(folder: Path, latest: Event | None, records: Records) -> None:
    """Refuse to write over a bank that is neither what was last released nor what an interrupted
    release was to write.
    """
    if not folder.exists() or _records_of(folder) == records:
        return
    content = load_bank(folder, lock=None, check=False).content_hash
    if latest is None or content != latest.result_as(ReleaseNote).content_sha256:
        raise InputError(
            f"{folder}: was changed by something else than this workshop; bring the change in by"
            " `medassay bank decide`, or move the folder away"
        )


def _records_of(folder: Path) -> Records:
    bank = load_bank(folder, lock=None, check=False)
    return {item.id: record for item, record in bank_records(bank)}


def _revised(workshop: Workshop, records_found: Sequence[ItemObject]) -> Records:
    """Return records by id with their revisions: one more than any before where an item differs
    from its last one.
    """
    before: dict[str, ItemRevision] = {}
    for event in _releases(workshop):
        before |= event.result_as(ReleaseNote).revisions
    revised_records: Records = {}
    for record in records_found:
        name, content = record["id"], basis_of(_content(record))
        old = before.get(name)
        revision = 1 if old is None else old.revision + (old.content != content)
        revised_records[name] = {**record, "revision": revision}
    return revised_records


def _content(record: ItemObject) -> ItemObject:
    content = record.copy()
    content.pop("revision", None)
    content.pop("approval", None)
    return content


def _bind(
    folder: Path,
    card: CardObject,
    records: Records,
    reason: str,
    lock: Path,
    today: dt.date,
) -> tuple[str, str]:
    """Bring records into a bank folder and bind them to a version.

    Each step is left out where it was done before.
    """
    if not folder.exists():
        version = str(card.get("question_bank_version", ""))
        while registered_hash(lock, version) is not None:
            version = next_version(version, today.year)
        named: CardObject = {**card, "question_bank_version": version}
        content = write_bank(folder, named, records.values())
        changes = folder / "CHANGES.md"
        changes.write_text(
            f"{changes.read_text('utf-8')}{' '.join(reason.split())}\n", encoding="utf-8"
        )
    elif _records_of(folder) != records:
        _rewrite(folder, card, records)
    here = read_card(folder)
    version = here.question_bank_version
    content = load_bank(folder, lock=None, check=False).content_hash
    if here.content_sha256 != content:
        return release(folder, reason=reason, lock=lock, today=today)
    register(lock, version, content)
    return version, content


def _rewrite(folder: Path, card: CardObject, records: Records) -> None:
    """Put new items and limits into a bank folder; its version stays until the release."""
    # What is no valid bank replaces none.
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        write_bank(Path(temporary) / "bank", card, records.values())
    lines = b"".join(canonical(records[name]) + b"\n" for name in sorted(records))
    # The card first: it may name domains that the new items need; those of old items stay until
    # then.
    domains = sorted({*card["domains"], *read_card(folder).domains})
    wide = card_text({**card, "domains": domains}).encode()
    for name, data in (
        ("bank.toml", wide),
        ("items.jsonl", lines),
        ("bank.toml", card_text(card).encode()),
    ):
        write_whole(folder / name, data)


def _note_release(
    workshop: Workshop, version: str, content: str, basis: str, records: Records, reason: str
) -> None:
    revisions = {
        name: ItemRevision(revision=item_line(record).revision, content=basis_of(_content(record)))
        for name, record in records.items()
    }
    workshop.note(
        "release",
        version,
        "made",
        basis=basis,
        result=ReleaseNote(
            version=version, content_sha256=content, items=[*records], revisions=revisions
        ),
        note=" ".join(reason.split()),
    )


def _release_corrections(workshop: Workshop, reason: str, lock: Path, today: dt.date) -> Released:
    """Bring the decided corrections into the bank that they are of: same ids, next revisions, a new
    version.

    A bank that another workshop made gets them through that one, as decisions: else its next
    release would undo them.
    """
    folder = Path(plan_of(workshop).bank)
    records = _records_of(folder)
    changed: Records = {}
    removed: dict[str, str] = {}  # item → who decided
    for correction in corrected(workshop):
        if _is_made(records, correction):
            continue
        for name in twins(records, correction.item):
            corrected_record = _apply(records[name], correction)
            if corrected_record is None:
                removed[name] = correction.decision.line.by.name
            elif corrected_record != records[name]:
                changed[name] = corrected_record
    if not changed and not removed and not _is_cut_off(folder):
        raise GateError(
            f"{workshop.folder}: no decided correction changes {folder}; nothing to release"
        )
    lines = [*(f"{name} changed" for name in changed), *(f"{name} removed" for name in removed)]
    changes_text = ", ".join(lines) or "as written before"
    why = f"{' '.join(reason.split())} Corrections: {changes_text}."
    version, content = revise_bank(folder, changed, removed, why, lock, today)
    basis = basis_of(content, changes_text)
    touched = changed | {name: records[name] for name in removed}
    _note_release(workshop, version, content, basis, touched, why)
    return folder, version, content


def revise_bank(
    folder: Path,
    changed: Records,
    removed: Mapping[str, str],
    why: str,
    lock: Path,
    today: dt.date,
) -> tuple[str, str]:
    """Put changed items into a bank, take others out, and bind it to its next version.

    A bank that a workshop made gets them through that one, as decisions: else its next release
    would undo them.

    Parameters
    ----------
    changed : whole records, with their new revisions and approvals
    removed : item → who decided

    Returns
    -------
    (version, content hash)

    Raises
    ------
    InputError
        When no item would be left.
    """
    records = _records_of(folder)
    if len(removed) == len(records):
        raise InputError(f"{folder}: every item would be removed; a bank needs one at least")
    if (folder.parent / JOURNAL).is_file():
        return _through_maker(folder, changed, removed, why, lock, today)
    remaining = {
        name: record for name, record in {**records, **changed}.items() if name not in removed
    }
    card = read_card_document(folder)
    domains = sorted({item_line(record).domain for record in remaining.values()})
    return _bind(folder, {**card, "domains": domains}, remaining, why, lock, today)


def _is_cut_off(folder: Path) -> bool:
    """Return whether a bank was written and not yet bound to a version."""
    content = load_bank(folder, lock=None, check=False).content_hash
    return read_card(folder).content_sha256 not in (None, content)


def _is_made(records: Records, correction: CorrectedItem) -> bool:
    """Return whether a correction is in the bank by now, so that nothing is left to do.

    Raises
    ------
    InputError
        When the item is neither what was reviewed nor what it was to become.
    """
    record = records.get(correction.item)
    if record is None:
        return True
    before, after = msgspec.to_builtins(correction.before), msgspec.to_builtins(correction.after)
    here = {key: record.get(key) for key in before}
    if after is not None and here == {key: after.get(key) for key in before}:
        return True
    if here != before:
        raise InputError(
            f"item '{correction.item}' is no longer what was reviewed; its correction was not made,"
            " nothing was written"
        )
    return False


def _through_maker(
    folder: Path,
    changed: Records,
    removed: Mapping[str, str],
    why: str,
    lock: Path,
    today: dt.date,
) -> tuple[str, str]:
    """Note corrections as decisions of the workshop that made a bank, and release from there."""
    with open_workshop(folder.parent) as maker:
        contents = {event.place[1]: _content(event.result) for event in present_items(maker)}
        as_made: dict[str, list[str]] = {}  # who approved → items; thousands are one step
        for name, record in changed.items():
            fields, who = _content(record), str(item_line(record).approval.who)
            if fields == contents.get(name):
                as_made.setdefault(who, []).append(name)
            else:
                decide(maker, "change", [name], who=who, reason=why, change=fields)
        for who, names in as_made.items():
            decide(maker, "accept", names, who=who, reason=why)
        for name, who in removed.items():
            decide(maker, "remove", [name], who=who, reason=why)
        _, version, content = release_items(maker, reason=why, lock=lock, today=today)
    return version, content


def twins(records: Records, name: str) -> list[str]:
    """Return an item and the other forms of its question, quiz and open: a correction is of all of
    them.
    """
    if name not in records:
        return []
    lines = {other: item_line(record) for other, record in records.items()}
    question = lines[name].meta.question
    base = name.removesuffix("-quiz")
    return [
        other
        for other, line in lines.items()
        if other == name
        or (question and line.meta.question == question)
        or (
            not question
            and other == f"{base}-open" != f"{name}-open"
            and line.question == lines[name].question
        )
    ]


def _apply(record: ItemObject, correction: CorrectedItem) -> ItemObject | None:
    """Return a record after a correction of it or of another form of its question; None where it is
    removed.
    """
    if correction.after is None:
        return None
    corrected_record = record.copy()
    before, after, line = correction.before, correction.after, item_line(record)
    if line.question == before.question:
        corrected_record |= {"question": after.question}
    if after.path and after.path != line.path:
        leaf = after.path.rpartition("->")[2].strip()
        corrected_record.update({"path": after.path, "leaf": leaf})
    if "options" in record:
        corrected_record.update({"options": after.options, "expected": after.expected})
    if after.right != before.right:
        corrected_record.pop("rationale", None)  # it explained another key
        if "reference" in record:
            corrected_record |= {"reference": after.right}
    if corrected_record == record:
        return record
    decision = correction.decision.line
    corrected_record |= {"revision": line.revision + 1}
    corrected_record |= {"approval": {"who": decision.by.person, "when": decision.at[:10]}}
    return corrected_record
