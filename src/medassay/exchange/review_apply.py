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
from medassay.bank.folder import bank_records, load_bank
from medassay.errors import GateError, InputError
from medassay.review.store import tickets
from medassay.review.store.reading import tickets_of
from medassay.review.store.schema import Account, Entry, Study
from medassay.review.store.trail import note
from medassay.synthesis.release import revise_bank

Records = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A checked decision about an item: what is to be done, by whom, and the item's revision that was reviewed."""

    item: str
    entry: Entry
    verdict: str
    change: Mapping[str, Any]
    by: str
    at: str


def decisions_of(db: Session, study: Study) -> list[Decision]:
    """Return the decisions of a study that were checked and are in no bank yet.

    Raises
    ------
    InputError
        When the study is not of items of a bank.
    """
    if study.form not in tickets.BANK_FORMS:
        raise InputError(
            f"study '{study.id}' has the form '{study.form}'; decisions about items come from item reviews and pair checks"
        )
    found = []
    for ticket, entry in tickets_of(db, study.id, ("checked",)):
        step = tickets.last_decision(db, ticket)
        if step is None:
            continue
        by = db.scalar(select(Account.name).where(Account.id == step.account_id)) or "somebody"
        found.append(
            Decision(
                item=entry.item,
                entry=entry,
                verdict=step.detail["verdict"],
                change=step.detail["change"],
                by=by,
                at=step.at[:10],
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
    records = {
        item.id: record
        for item, record in bank_records(load_bank(bank, lock=None, check=False))
    }
    changed: Records = {}
    removed: dict[str, str] = {}
    for one in found:
        record = records.get(one.item)
        if record is None and one.verdict == "remove":
            continue  # done by a call that was cut off
        if record is None:
            raise InputError(
                f"{bank}: has no item '{one.item}'; is it the bank that was reviewed?"
            )
        revision, reviewed = record.get("revision", 1), one.entry.hidden.get("revision", 1)
        if revision == reviewed + 1 and _is_made(record, one):
            continue
        if revision != reviewed:
            raise InputError(
                f"{bank}: item '{one.item}' has revision {revision}; reviewed was {reviewed}: review it again"
            )
        if one.verdict == "remove":
            removed[one.item] = one.by
        else:
            changed[one.item] = _revised(record, one)
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


def _is_made(record: Mapping[str, Any], one: Decision) -> bool:
    """Return whether a decision stands in an item already: a call before was cut off behind the bank's release."""
    approval = {"who": one.by, "when": one.at}
    return record.get("approval") == approval and all(
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
