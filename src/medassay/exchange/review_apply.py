"""From checked decisions to a bank: items approved, corrected, rewritten or removed, under one new
version.
"""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from medassay.bank.card import read_card
from medassay.bank.check import check_record
from medassay.bank.folder import bank_records, load_bank
from medassay.core.json import record_as
from medassay.core.records.item_line import item_line
from medassay.core.records.item_object import ApprovalObject, ItemObject
from medassay.core.wording import counted
from medassay.errors import GateError, InputError
from medassay.exchange.review_entries import item_content
from medassay.review.agreement import LastReview, is_right
from medassay.review.form import FORMS
from medassay.review.store import tickets
from medassay.review.store.reading import entries_of, last_reviews, tickets_of
from medassay.review.store.schema import Account, Entry, Study
from medassay.review.store.trail import note
from medassay.review.summary import standing_of
from medassay.synthesis.release import revise_bank, twins

Records = dict[str, ItemObject]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about an item: what is to be done, by whom, and the revision that it is about.

    `agreed` is not an adjudicator's decision, but that all reviewers found the item right.
    """

    item: str
    entry: Entry
    verdict: str
    change: ItemObject
    by: str
    at: str
    revision: int
    again: bool  # whether this study has changed the item before
    agreed: bool = False


class _DecisionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about an item."""

    verdict: str
    change: dict[str, Any]


class _ReleaseDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The revision that an item got when a decision about it was released."""

    revision: int | None


def decisions_of(db: Session, study: Study) -> list[Decision]:
    """Return the decisions of a study that were checked and are in no bank yet.

    Raises
    ------
    InputError
        When the study is not of items of a bank.
    """
    if study.form not in tickets.VERDICTS:
        raise InputError(
            f"study '{study.id}' has the form '{study.form}'; decisions about items come from item"
            " reviews and pair checks"
        )
    decisions = []
    for ticket, entry in tickets_of(db, study.id, ("checked",)):
        step = tickets.last_decision(db, ticket)
        if step is None or entry.withdrawn:
            continue
        by = db.scalar(select(Account.name).where(Account.id == step.account_id)) or "somebody"
        detail = record_as(step.detail, _DecisionDetail, f"decision about '{entry.item}'")
        before = [
            record_as(ticket_step.detail, _ReleaseDetail, f"release of '{entry.item}'")
            for ticket_step in tickets.steps_of(db, ticket)
            if ticket_step.verb == "release"
        ]
        reviewed = entry.hidden_part.revision
        decisions.append(
            Decision(
                item=entry.item,
                entry=entry,
                verdict=detail.verdict,
                change=cast(ItemObject, detail.change),
                by=by,
                at=step.at[:10],
                revision=(before[-1].revision or reviewed) if before else reviewed,
                again=bool(before),
            )
        )
    return decisions


def agreed_of(db: Session, study: Study) -> list[Decision]:
    """Return an approval of each item that all its reviewers found right, as many as the study
    wants or more; nothing of it may be open.

    Right is an item without a score below 3 and without harm seen; nobody flagged it, no ticket
    about it waits, and no decision stands.

    Raises
    ------
    InputError
        When the study is not of items of a bank.
    """
    if study.form != "item":
        raise InputError(
            f"study '{study.id}' has the form '{study.form}'; only reviews of items can approve"
            " them"
        )
    form = FORMS[study.form]
    states = {
        entry.id: ticket.state
        for ticket, entry in tickets_of(db, study.id, get_args(tickets.State))
    }
    reviews_of: dict[int, list[LastReview]] = defaultdict(list)
    for review in last_reviews(db, study.id):
        reviews_of[review.entry].append(review)
    agreed = []
    for entry in entries_of(db, study.id):
        reviews = reviews_of[entry.id]
        right = len(reviews) >= study.overlap and all(is_right(form, review) for review in reviews)
        flagged = bool(reviews) and standing_of(entry.id, reviews).flagged
        if right and not flagged and states.get(entry.id, "declined") == "declined":
            agreed.append(
                Decision(
                    item=entry.item,
                    entry=entry,
                    verdict="approve",
                    change={},
                    by=f"{len(reviews)} of {len(reviews)} reviewers of '{study.id}'",
                    at=max(review.submitted_at for review in reviews)[:10],
                    revision=entry.hidden_part.revision,
                    again=False,
                    agreed=True,
                )
            )
    return agreed


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

    Every changed item gets its next revision and the name of who approved it; the version's entry
    in CHANGES.md names them. With `approve_right` the items that all reviewers found right are
    approved, too.

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
    decisions = decisions_of(db, study)
    agreed = agreed_of(db, study) if approve_right else []
    if not decisions and not agreed:
        raise GateError(
            f"study '{study.id}': no decision is checked and waits for a bank; a second person"
            " checks what was decided"
            + ("; no item was found right by all its reviewers" if approve_right else "")
        )
    if not who.strip() or not reason.strip():
        raise InputError("say who releases with --by, and why with --reason")
    _check_bank(study, bank)
    records = {
        item.id: record for item, record in bank_records(load_bank(bank, lock=None, check=False))
    }
    decisions += [
        agreement
        for agreement in agreed
        if not _is_approved(records.get(agreement.item, {}), agreement)
    ]
    if not decisions:
        raise GateError(
            f"study '{study.id}': what all reviewers found right is approved in {bank} by now;"
            " nothing to do"
        )
    changed: Records = {}
    removed: dict[str, str] = {}
    decided = Counter(decision.item for decision in decisions)
    for decision in decisions:
        if decided[decision.item] > 1:
            raise InputError(
                f"study '{study.id}': {decided[decision.item]} decisions about item"
                f" '{decision.item}'; send all but one back"
            )
        _take(decision, bank, records, (changed, removed), decided)
    counts = Counter(decision.verdict for decision in decisions)
    why = (
        f"{' '.join(reason.split())} Review '{study.id}', released by {' '.join(who.split())}:"
        f" {_verdicts_text(decisions)}."
    )
    if changed or removed:
        version, content = revise_bank(bank, changed, removed, why, lock, today)
    else:
        here = load_bank(bank, lock=lock, check=False)
        version, content = here.version, here.content_hash
    revisions = {
        item.id: item.revision for item, _ in bank_records(load_bank(bank, lock=None, check=False))
    }
    for decision in decisions:
        if decision.agreed:
            continue
        tickets.release(
            db,
            study,
            decision.entry,
            who=who,
            version=version,
            revision=revisions.get(decision.item),
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


def _verdicts_text(decisions: Sequence[Decision]) -> str:
    """Return what was decided, item by item; of what all reviewers found right the number alone."""
    disputed = ", ".join(f"{d.item} {_WORDS[d.verdict]}" for d in decisions if not d.agreed)
    n_agreed = sum(decision.agreed for decision in decisions)
    if not n_agreed:
        return disputed
    several = f"{counted(n_agreed, 'item')} approved that all reviewers found right"
    return f"{disputed}; {several}" if disputed else several


_WORDS = {
    "approve": "approved",
    "correct": "corrected",
    "rewrite": "rewritten",
    "remove": "removed",
}


def _check_bank(study: Study, folder: Path) -> None:
    """Refuse another bank than the one that was reviewed."""
    name, reviewed = read_card(folder).name, study.chosen.source.bank
    if reviewed and name != reviewed:
        raise InputError(f"{folder}: is the bank '{name}'; reviewed was '{reviewed}'")


def _take(
    decision: Decision,
    bank: Path,
    records: Records,
    into: tuple[Records, dict[str, str]],
    decided: Mapping[str, int],
) -> None:
    """Put what a decision changes into `into`: changed records, and who removed which.

    Other forms of the item's question with it.
    """
    changed, removed = into
    record = records.get(decision.item)
    if record is None:
        if decision.verdict == "remove" and f"{decision.item} removed" in _history(bank):
            return  # done by a call that was interrupted
        raise InputError(
            f"{bank}: has no item '{decision.item}'; is it the bank that was reviewed?"
        )
    reviewed = decision.revision
    revision = item_line(record).revision
    if revision == reviewed + 1 and _is_made(record, decision):
        return
    if revision != reviewed:
        raise InputError(
            f"{bank}: item '{decision.item}' has revision {revision}; reviewed was"
            f" {reviewed}: review it again"
        )
    if not decision.again and _content_of(decision.entry) != item_content(record):
        raise InputError(
            f"{bank}: item '{decision.item}' is not what was reviewed, under the same revision:"
            " release the bank, review it again"
        )
    reviewed_too = decision.entry.hidden_part.forms
    others = [
        name
        for name in reviewed_too or twins(records, decision.item)
        if name != decision.item and name in records and not decided[name]
    ]
    for name in others:
        here = item_line(records[name]).revision
        if here != reviewed_too.get(name, here) and not decision.again:
            raise InputError(
                f"{bank}: item '{name}', another form of '{decision.item}', has revision {here};"
                f" reviewed was {reviewed_too[name]}: review it again"
            )
    if decision.verdict == "remove":
        removed |= dict.fromkeys([decision.item, *others], decision.by)
        return
    changed[decision.item] = revised_record = _revised(record, decision)
    for name in others:
        other = _as_twin(records[name], record, revised_record)
        if other is None and name in reviewed_too and not decision.change:
            other = records[name]  # people saw both forms and approved them as they are
        if other is not None:
            other = {**other, "approval": _approval(decision)}
            changed[name] = other
            domain = item_line(other).domain
            check_record(other, f"item '{name}' with '{decision.item}'", {domain})


def _history(bank: Path) -> str:
    path = bank / "CHANGES.md"
    return path.read_text("utf-8") if path.exists() else ""


def _content_of(entry: Entry) -> dict[str, Any]:
    """Return what reviewers saw of the item itself, without what stood beside it."""
    beside = ("graph", "source_text", "other_forms")
    return {k: v for k, v in entry.content.items() if k not in beside}


def _as_twin(other: ItemObject, before: ItemObject, after: ItemObject) -> ItemObject | None:
    """Return another form of the same question after the same change.

    None where it says nothing of what changed.

    Raises
    ------
    InputError
        When another answer is right now, and the form has a reference answer in words of its own.
    """
    twin = other.copy()
    for key in ("question", "path", "leaf", "options", "expected", "reference"):
        if key in other and other.get(key) == before.get(key) and key in after:
            twin.update(cast(ItemObject, {key: after.get(key)}))
    line = item_line(other)
    right, now_right = item_line(before).right_text, item_line(after).right_text
    if right and now_right and line.reference and right != now_right:
        if _said(line.reference) not in (_said(right), _said(now_right)):
            raise InputError(
                f"item '{line.id}', another form of '{item_line(before).id}', has a reference"
                f" answer in its own words, '{line.reference:.60}', that contradicts the new key;"
                " write the new answer there, release the bank, and review the question again"
            )
        if _said(line.reference) == _said(right):
            ends_more = line.reference.endswith(".") and not right.endswith(".")
            twin |= {"reference": f"{now_right.removesuffix('.')}." if ends_more else now_right}
    if twin == other:
        return None
    twin.pop("rationale", None)
    return {**twin, "revision": line.revision + 1}


def _said(answer: str) -> str:
    """Return an answer without what does not change what it says."""
    return " ".join(answer.casefold().split()).rstrip(" .")


def _is_approved(record: ItemObject, decision: Decision) -> bool:
    """Return whether an approval of all reviewers, or a later decision of a person, stands in an
    item already.
    """
    line = item_line(record)
    return line.approval.who == decision.by or line.revision != decision.revision


def _is_made(record: ItemObject, decision: Decision) -> bool:
    """Return whether a decision stands in an item already: a call before was interrupted behind the
    bank's release.
    """
    return item_line(record).approval.who == decision.by and all(
        record.get(key) == value for key, value in decision.change.items()
    )


def _revised(record: ItemObject, decision: Decision) -> ItemObject:
    """Return an item after a decision, with who approved it.

    A new revision where something changed.
    """
    revised = record.copy()
    revised.update(decision.change)
    line = item_line(revised)
    if "path" in decision.change and "leaf" in revised:
        revised |= {"leaf": (line.path or "").rpartition("->")[2].strip()}
    if "expected" in decision.change or "options" in decision.change:
        revised.pop("rationale", None)  # it explained another key
    if decision.change:
        revised |= {"revision": line.revision + 1}
    revised |= {"approval": _approval(decision)}
    check_record(revised, f"item '{decision.item}' as decided", {line.domain})
    return revised


def _approval(decision: Decision) -> ApprovalObject:
    """Return who approved an item, and when, as its object has it."""
    return {"who": decision.by, "when": decision.at}
