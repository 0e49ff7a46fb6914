"""From checked decisions to a bank: items approved, corrected, rewritten or removed, under one new version."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from medassay.bank.check import check_record
from medassay.bank.folder import bank_records, load_bank, read_card
from medassay.core.item import LETTERS
from medassay.errors import GateError, InputError
from medassay.exchange.review_entries import item_content
from medassay.review.store import tickets
from medassay.review.store.reading import tickets_of
from medassay.review.store.schema import Account, Entry, Study
from medassay.review.store.trail import note
from medassay.synthesis.release import revise_bank, twins

Records = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A checked decision about an item: what is to be done, by whom, and the revision that it is about."""

    item: str
    entry: Entry
    verdict: str
    change: Mapping[str, Any]
    by: str
    at: str
    revision: int
    again: bool  # whether this study has changed the item before


def decisions_of(db: Session, study: Study) -> list[Decision]:
    """Return the decisions of a study that were checked and are in no bank yet.

    Raises
    ------
    InputError
        When the study is not of items of a bank.
    """
    if study.form not in tickets.VERDICTS:
        raise InputError(
            f"study '{study.id}' has the form '{study.form}'; decisions about items come from item reviews and pair checks"
        )
    found = []
    for ticket, entry in tickets_of(db, study.id, ("checked",)):
        step = tickets.last_decision(db, ticket)
        if step is None:
            continue
        by = db.scalar(select(Account.name).where(Account.id == step.account_id)) or "somebody"
        before = [one.detail for one in tickets.steps_of(db, ticket) if one.verb == "release"]
        reviewed = entry.hidden.get("revision", 1)
        found.append(
            Decision(
                item=entry.item,
                entry=entry,
                verdict=step.detail["verdict"],
                change=step.detail["change"],
                by=by,
                at=step.at[:10],
                revision=(before[-1]["revision"] or reviewed) if before else reviewed,
                again=bool(before),
            )
        )
    return found


def apply_decisions(
    db: Session,
    study: Study,
    bank: Path,
    *,
    who: str,
    reason: str,
    lock: Path,
    today: dt.date,
) -> tuple[str, str, dict[str, int]]:
    """Bring the checked decisions of a study into a bank folder, and tell the tickets.

    Every changed item gets its next revision and the name of who approved it; the version's entry in CHANGES.md names them.

    Returns
    -------
    (version, content hash, verdict → number of items)

    Raises
    ------
    GateError
        When nothing is decided and checked.
    InputError
        When an item is no longer what was reviewed, or would be no item; nothing is written then.
    """
    found = decisions_of(db, study)
    if not found:
        raise GateError(
            f"study '{study.id}': no decision is checked and waits for a bank; a second person checks what was decided"
        )
    if not who.strip() or not reason.strip():
        raise InputError("say who releases with --by, and why with --reason")
    _check_bank(study, bank)
    records = {
        item.id: record
        for item, record in bank_records(load_bank(bank, lock=None, check=False))
    }
    changed: Records = {}
    removed: dict[str, str] = {}
    decided = Counter(one.item for one in found)
    for one in found:
        if decided[one.item] > 1:
            raise InputError(
                f"study '{study.id}': {decided[one.item]} decisions about item '{one.item}'; send all but one back"
            )
        _take(one, bank, records, (changed, removed), decided)
    counts = Counter(one.verdict for one in found)
    told = ", ".join(f"{one.item} {_WORDS[one.verdict]}" for one in found)
    why = f"{' '.join(reason.split())} Review '{study.id}', released by {' '.join(who.split())}: {told}."
    if changed or removed:
        version, content = revise_bank(bank, changed, removed, why, lock, today)
    else:
        here = load_bank(bank, lock=lock, check=False)
        version, content = here.version, here.content_hash
    revisions = {
        item.id: record.get("revision", 1)
        for item, record in bank_records(load_bank(bank, lock=None, check=False))
    }
    for one in found:
        tickets.release(
            db,
            study,
            one.entry,
            who=who,
            version=version,
            revision=revisions.get(one.item),
        )
    note(
        db,
        "bank revised",
        who=who,
        study=study.id,
        version=version,
        content_sha256=content,
        decisions=dict(counts),
    )
    return version, content, dict(counts)


_WORDS = {
    "approve": "approved",
    "correct": "corrected",
    "rewrite": "rewritten",
    "remove": "removed",
}


def _check_bank(study: Study, folder: Path) -> None:
    """Refuse another bank than the one that was reviewed."""
    name, reviewed = read_card(folder)["name"], study.settings["source"].get("bank")
    if reviewed and name != reviewed:
        raise InputError(f"{folder}: is the bank '{name}'; reviewed was '{reviewed}'")


def _take(
    one: Decision,
    bank: Path,
    records: Records,
    into: tuple[Records, dict[str, str]],
    decided: Mapping[str, int],
) -> None:
    """Put what a decision changes into `into`: changed records, and who removed which; other forms of the item's question with it."""
    changed, removed = into
    record = records.get(one.item)
    if record is None:
        if one.verdict == "remove" and f"{one.item} removed" in _history(bank):
            return  # done by a call that was cut off
        raise InputError(f"{bank}: has no item '{one.item}'; is it the bank that was reviewed?")
    reviewed = one.revision
    if record.get("revision", 1) == reviewed + 1 and _is_made(record, one):
        return
    if record.get("revision", 1) != reviewed:
        raise InputError(
            f"{bank}: item '{one.item}' has revision {record.get('revision', 1)}; reviewed was {reviewed}: review it again"
        )
    if not one.again and _content_of(one.entry) != item_content(record):
        raise InputError(
            f"{bank}: item '{one.item}' is not what was reviewed, under the same revision: release the bank, review it again"
        )
    others = [
        name for name in twins(records, one.item) if name != one.item and not decided[name]
    ]
    if one.verdict == "remove":
        removed |= dict.fromkeys([one.item, *others], one.by)
        return
    changed[one.item] = made = _revised(record, one)
    for name in others:
        other = _as_twin(records[name], record, made)
        if other is not None:
            other["approval"] = made["approval"]
            check_record(other, f"item '{name}' with '{one.item}'", {other["domain"]})
            changed[name] = other


def _history(bank: Path) -> str:
    path = bank / "CHANGES.md"
    return path.read_text("utf-8") if path.exists() else ""


def _content_of(entry: Entry) -> dict[str, Any]:
    """Return what reviewers saw of the item itself, without what stood beside it."""
    return {k: v for k, v in entry.content.items() if k not in ("graph", "source_text")}


def _as_twin(
    other: dict[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return another form of the same question after the same change; None where it says nothing of what changed."""
    made = dict(other)
    for key in ("question", "path", "leaf", "options", "expected", "reference"):
        if key in other and other[key] == before.get(key) and key in after:
            made[key] = after[key]
    right, now_right = _right(before), _right(after)
    if right and now_right and other.get("reference") == right:
        made["reference"] = now_right
    if made == other:
        return None
    made.pop("rationale", None)
    return {**made, "revision": other.get("revision", 1) + 1}


def _right(record: Mapping[str, Any]) -> str:
    """Return the text of the right option, or the reference answer."""
    at = LETTERS.find(str(record.get("expected", "")) or " ")
    options = record.get("options", ())
    return str(options[at]) if 0 <= at < len(options) else str(record.get("reference", ""))


def _is_made(record: Mapping[str, Any], one: Decision) -> bool:
    """Return whether a decision stands in an item already: a call before was cut off behind the bank's release."""
    return record.get("approval", {}).get("who") == one.by and all(
        record.get(key) == value for key, value in one.change.items()
    )


def _revised(record: dict[str, Any], one: Decision) -> dict[str, Any]:
    """Return an item after a decision, with who approved it; a new revision where something changed."""
    made = {**record, **one.change}
    if "path" in one.change and "leaf" in made:
        made["leaf"] = one.change["path"].rpartition("->")[2].strip()
    if "expected" in one.change or "options" in one.change:
        made.pop("rationale", None)  # it explained another key
    if one.change:
        made["revision"] = record.get("revision", 1) + 1
    made["approval"] = {"who": one.by, "when": one.at}
    check_record(made, f"item '{one.item}' as decided", {made["domain"]})
    return made
