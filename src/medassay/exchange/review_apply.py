"""From checked decisions to a bank: items approved, corrected, rewritten or removed, under one new version."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from medassay.bank.check import check_record
from medassay.bank.folder import bank_records, load_bank, read_card
from medassay.core.records.item import LETTERS
from medassay.core.wording import counted
from medassay.errors import GateError, InputError
from medassay.exchange.review_entries import item_content
from medassay.review.agreement import LastReview, is_right
from medassay.review.form import FORMS
from medassay.review.store import tickets
from medassay.review.store.reading import entries_of, given_of, tickets_of
from medassay.review.store.schema import Account, Entry, Study
from medassay.review.store.trail import note
from medassay.review.summary import standing_of
from medassay.synthesis.release import revise_bank, twins

Records = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision about an item: what is to be done, by whom, and the revision that it is about.

    `agreed` is not an adjudicator's decision, but that all reviewers found the item right.
    """

    item: str
    entry: Entry
    verdict: str
    change: Mapping[str, Any]
    by: str
    at: str
    revision: int
    again: bool  # whether this study has changed the item before
    agreed: bool = False


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


def agreed_of(db: Session, study: Study) -> list[Decision]:
    """Return an approval of each item that all its reviewers found right, as many as the study wants or more; nothing of it may be open.

    Right is an item without a score below 3 and without harm seen; nobody flagged it, no ticket about it waits, and no decision stands.

    Raises
    ------
    InputError
        When the study is not of items of a bank.
    """
    if study.form != "item":
        raise InputError(
            f"study '{study.id}' has the form '{study.form}'; only reviews of items can approve them"
        )
    form = FORMS[study.form]
    states = {
        entry.id: ticket.state
        for ticket, entry in tickets_of(db, study.id, get_args(tickets.State))
    }
    given: dict[int, list[LastReview]] = defaultdict(list)
    for one in given_of(db, study.id):
        given[one.entry].append(one)
    found = []
    for entry in entries_of(db, study.id):
        reviews = given[entry.id]
        right = len(reviews) >= study.overlap and all(is_right(form, one) for one in reviews)
        flagged = bool(reviews) and standing_of(entry.id, reviews).flagged
        if right and not flagged and states.get(entry.id, "declined") == "declined":
            found.append(
                Decision(
                    item=entry.item,
                    entry=entry,
                    verdict="approve",
                    change={},
                    by=f"{len(reviews)} of {len(reviews)} reviewers of '{study.id}'",
                    at=max(one.submitted_at for one in reviews)[:10],
                    revision=entry.hidden.get("revision", 1),
                    again=False,
                    agreed=True,
                )
            )
    return found


def apply_decisions(  # noqa: PLR0913 -- who, why and when of a release are facts of their own
    db: Session,
    study: Study,
    bank: Path,
    *,
    who: str,
    reason: str,
    lock: Path,
    today: dt.date,
    approve_right: bool = False,
) -> tuple[str, str, dict[str, int]]:
    """Bring the checked decisions of a study into a bank folder, and tell the tickets.

    Every changed item gets its next revision and the name of who approved it; the version's entry in CHANGES.md names them. With
    `approve_right` the items that all reviewers found right are approved, too.

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
    agreed = agreed_of(db, study) if approve_right else []
    if not found and not agreed:
        raise GateError(
            f"study '{study.id}': no decision is checked and waits for a bank; a second person checks what was decided"
            + ("; no item was found right by all its reviewers" if approve_right else "")
        )
    if not who.strip() or not reason.strip():
        raise InputError("say who releases with --by, and why with --reason")
    _check_bank(study, bank)
    records = {
        item.id: record
        for item, record in bank_records(load_bank(bank, lock=None, check=False))
    }
    agreed = [one for one in agreed if not _is_approved(records.get(one.item, {}), one)]
    if not found and not agreed:
        raise GateError(
            f"study '{study.id}': what all reviewers found right is approved in {bank} by now; nothing to do"
        )
    changed: Records = {}
    removed: dict[str, str] = {}
    found += agreed
    decided = Counter(one.item for one in found)
    for one in found:
        if decided[one.item] > 1:
            raise InputError(
                f"study '{study.id}': {decided[one.item]} decisions about item '{one.item}'; send all but one back"
            )
        _take(one, bank, records, (changed, removed), decided)
    counts = Counter(one.verdict for one in found)
    told = ", ".join(f"{one.item} {_WORDS[one.verdict]}" for one in found if not one.agreed)
    if agreed:
        several = f"{counted(len(agreed), 'item')} approved that all reviewers found right"
        told = "; ".join(filter(None, [told, several]))
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
        if one.agreed:
            continue
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
    reviewed_too = one.entry.hidden.get("forms", {})
    others = [
        name
        for name in (reviewed_too or twins(records, one.item))
        if name != one.item and name in records and not decided[name]
    ]
    for name in others:
        here = records[name].get("revision", 1)
        if here != reviewed_too.get(name, here) and not one.again:
            raise InputError(
                f"{bank}: item '{name}', another form of '{one.item}', has revision {here}; reviewed was {reviewed_too[name]}: review it again"
            )
    if one.verdict == "remove":
        removed |= dict.fromkeys([one.item, *others], one.by)
        return
    changed[one.item] = made = _revised(record, one)
    for name in others:
        other = _as_twin(records[name], record, made)
        if other is None and name in reviewed_too and not one.change:
            other = dict(records[name])  # people saw both forms and approved them as they are
        if other is not None:
            other["approval"] = made["approval"]
            check_record(other, f"item '{name}' with '{one.item}'", {other["domain"]})
            changed[name] = other


def _history(bank: Path) -> str:
    path = bank / "CHANGES.md"
    return path.read_text("utf-8") if path.exists() else ""


def _content_of(entry: Entry) -> dict[str, Any]:
    """Return what reviewers saw of the item itself, without what stood beside it."""
    beside = ("graph", "source_text", "other_forms")
    return {k: v for k, v in entry.content.items() if k not in beside}


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


def _is_approved(record: Mapping[str, Any], one: Decision) -> bool:
    """Return whether an approval of all reviewers, or a later decision of a person, stands in an item already."""
    return record.get("approval", {}).get("who") == one.by or bool(
        record.get("revision", 1) != one.revision
    )


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
