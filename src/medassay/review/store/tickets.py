"""Feedback is a ticket: opened by reviews, settled by an adjudicator, checked by a second person,
released with a bank.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from medassay.core.clock import now
from medassay.core.records.item_object import ItemObject
from medassay.errors import GateError, InputError
from medassay.review.agreement import LastReview, differing
from medassay.review.form import FORMS, clean, read_review
from medassay.review.form.form import content_of, form_texts
from medassay.review.store.schema import (
    Account,
    Assignment,
    Entry,
    Review,
    Study,
    Ticket,
    TicketStep,
)
from medassay.review.store.trail import note

State = Literal["open", "experts", "declined", "decided", "checked", "released"]
VERDICTS = {  # of items of a bank, by form
    "item": ("approve", "correct", "rewrite", "remove"),
    "pair": ("approve", "remove"),
}
SETTLE = "settle"  # the final value, where no item is at stake
_CHANGED = ("question", "options", "path", "reference")
MOST_EXPERTS = 5


def open_ticket(db: Session, study: Study, entry: Entry, review: Review) -> None:
    """Open the ticket of an entry, or again, if a new review has feedback, or differs where the
    others did not.
    """
    form = FORMS[study.form]
    reviews = latest_of(db, entry)
    [mine] = [review_row for review_row in reviews if review_row.review == review.id]
    why = [
        name
        for name, there in (
            ("comment", mine.comments),
            ("correction", mine.said.correction),
            ("harm", mine.harm),
        )
        if there
    ]
    aspects = form.all_aspects(entry.content)
    others = [review_row for review_row in reviews if review_row is not mine]
    if set(differing(aspects, reviews)) - set(differing(aspects, others)):
        why.append("disagreement")
    if why:
        ticket = ticket_of(db, study, entry)
        ticket.state = "open"
        _step(db, ticket, None, "feedback", {"review": review.id, "why": why})


def latest_of(db: Session, entry: Entry) -> list[LastReview]:
    """Return the last complete reviews of an entry, in the order of reviewers' numbers."""
    db.flush()
    query = (
        select(Review, Assignment.account_id, Account.qualification)
        .join(Assignment, Assignment.id == Review.assignment_id)
        .join(Account, Account.id == Assignment.account_id)
        .where(Assignment.entry_id == entry.id, Review.revision == Assignment.revision)
        .order_by(Assignment.account_id)
    )
    return [
        LastReview(
            entry=entry.id,
            reviewer=account,
            qualification=qualification,
            review=review.id,
            content=review.content,
            submitted_at=review.submitted_at,
            category=entry.category,
            iteration=entry.iteration,
        )
        for review, account, qualification in db.execute(query)
    ]


def ticket_of(db: Session, study: Study, entry: Entry) -> Ticket:
    """Return the ticket of an entry, made where there is none.

    It is held until the transaction ends.
    """
    query = select(Ticket).where(Ticket.entry_id == entry.id).with_for_update()
    row = db.scalar(query)
    if row is None:
        db.get(Entry, entry.id, with_for_update=True)  # of two at once, one makes it
        row = db.scalar(query)
    if row is None:
        row = Ticket(study_id=study.id, entry_id=entry.id, state="open", opened_at=now())
        db.add(row)
        db.flush()
    return row


def ticket_at(db: Session, entry: Entry) -> Ticket | None:
    """Return the ticket of an entry, None where it has none."""
    return db.scalar(select(Ticket).where(Ticket.entry_id == entry.id))


def steps_of(db: Session, ticket: Ticket) -> list[TicketStep]:
    """Return what happened to a ticket, oldest first."""
    query = select(TicketStep).where(TicketStep.ticket_id == ticket.id).order_by(TicketStep.id)
    return [*db.scalars(query)]


def last_decision(db: Session, ticket: Ticket) -> TicketStep | None:
    """Return the decision that stands, None where none was made since feedback came."""
    decisions = [step for step in steps_of(db, ticket) if step.verb == "decide"]
    return (
        decisions[-1] if decisions and ticket.state in ("decided", "checked", "released") else None
    )


def decline(db: Session, study: Study, entry: Entry, reason: str, by: Account) -> None:
    """Leave an entry as it is, with the reason that its reviewers read.

    Raises
    ------
    InputError
        When no reason is given.
    """
    ticket = _unsettled(db, study, entry)
    _step(db, ticket, by, "decline", {"reason": _needed(reason)})
    ticket.state = "declined"
    _tell(db, study, entry, by, "declined")


def ask_experts(db: Session, study: Study, entry: Entry, given_to: int, by: Account) -> None:
    """Note that more reviewers were asked.

    Raises
    ------
    GateError
        When nobody else could be asked.
    """
    if not given_to:
        raise GateError("nobody else reviews in this study: invite more reviewers first")
    ticket = _unsettled(db, study, entry)
    _step(db, ticket, by, "experts", {"asked": given_to})
    ticket.state = "experts"
    _tell(db, study, entry, by, "more experts asked")


def decide(db: Session, study: Study, entry: Entry, fields: Mapping[str, str], by: Account) -> None:
    """Note what an adjudicator decides; it takes effect once a second person has checked it.

    Parameters
    ----------
    fields : `verdict` and `reason`, and what the verdict needs: `option` to correct the key, any of
        `question`, `options` (one a line), `path`, `reference` to rewrite; for answers, preferences
        and judges the aspects of the form

    Raises
    ------
    InputError
        Saying what is missing.
    """
    texts = form_texts(fields)
    reason = _needed(texts.reason)
    if study.form in VERDICTS:
        verdict = texts.verdict
        detail = {"verdict": verdict, "change": _change(study, entry, fields)}
    else:
        content = entry.content
        form = FORMS[study.form]
        aspects = {aspect.name for aspect in form.aspects(content)}
        reading = read_review(
            form, content, {k: v for k, v in fields.items() if k in aspects} | {"comment": "-"}
        )
        if reading.problems:
            raise InputError("give every aspect its final value")
        detail = {"verdict": SETTLE, "scores": reading.review["scores"]}
    ticket = _unsettled(db, study, entry)
    _step(db, ticket, by, "decide", {**detail, "reason": reason})
    ticket.state = "decided"
    _tell(db, study, entry, by, "decided", **detail)


def _change(study: Study, entry: Entry, fields: Mapping[str, str]) -> ItemObject:
    """Return what a decision changes in an item."""
    content, asked = entry.content, content_of(entry.content)
    texts = form_texts(fields)
    verdict, option = texts.verdict, texts.option
    if verdict not in VERDICTS[study.form]:
        raise InputError(f"choose what is to be done: {', '.join(VERDICTS[study.form])}")
    if verdict in ("approve", "remove"):
        return {}
    letters = asked.letters
    if verdict == "correct":
        if option not in letters or option == asked.expected:
            raise InputError("correct the key: choose the option that is right instead")
        return {"expected": option}
    change: ItemObject = {}
    for name in _CHANGED:
        text = clean(fields.get(name, ""))
        if name == "options" and text:
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            if lines != [each.text for each in asked.options]:
                change["options"] = lines
        elif text and text != content.get(name, ""):
            change.update(cast(ItemObject, {name: text}))
    if option and option != asked.expected:
        change["expected"] = option
    n_options = len(change.get("options", letters))
    if letters and (n_options != len(letters) or option not in letters):
        raise InputError(
            f"rewrite: expected {len(letters)} options, one a line, and the right one of them"
        )
    if not change:
        raise InputError("rewrite: nothing differs from the item; change something, or approve it")
    return change


def check(
    db: Session,
    study: Study,
    entry: Entry,
    by: Account,
    *,
    decision: int,
    confirmed: bool,
    reason: str = "",
) -> None:
    """Note the final check of a decision by a second person: it stands, or goes back.

    Parameters
    ----------
    decision : the number of the step that this person has read

    Raises
    ------
    GateError
        When nothing waits for a check, or the same person decided.
    InputError
        When it goes back without a reason.
    """
    ticket = _ticket_of(db, study, entry)
    last = last_decision(db, ticket)
    if last is None or ticket.state != "decided":
        raise GateError("nothing here waits for a final check")
    if last.id != decision:
        raise GateError("another decision was made meanwhile: read it, then check it")
    if last.account_id == by.id:
        raise GateError("the final check is by a second person, not by who decided")
    detail = {} if confirmed and not reason.strip() else {"reason": _needed(reason)}
    _step(db, ticket, by, "check" if confirmed else "return", detail)
    ticket.state = "checked" if confirmed else "open"
    _tell(db, study, entry, by, "checked" if confirmed else "returned")


def release(
    db: Session, study: Study, entry: Entry, *, who: str, version: str, revision: int | None
) -> None:
    """Note that a checked decision is in a bank."""
    ticket = _ticket_of(db, study, entry)
    _step(db, ticket, None, "release", {"who": who, "version": version, "revision": revision})
    ticket.state = "released"


def _ticket_of(db: Session, study: Study, entry: Entry) -> Ticket:
    if entry.training:
        raise InputError("training items are not decided about")
    return ticket_of(db, study, entry)


def _unsettled(db: Session, study: Study, entry: Entry) -> Ticket:
    ticket = _ticket_of(db, study, entry)
    if ticket.state in ("checked", "released"):
        raise GateError("this is settled and checked; new feedback opens it again")
    return ticket


def _needed(reason: str) -> str:
    if not (text := clean(reason)):
        raise InputError("a reason is needed; the reviewers read it")
    return text


def _step(
    db: Session, ticket: Ticket, by: Account | None, verb: str, detail: Mapping[str, Any]
) -> None:
    account = None if by is None else by.id
    db.add(
        TicketStep(
            ticket_id=ticket.id, account_id=account, verb=verb, detail=dict(detail), at=now()
        )
    )
    db.flush()


def _tell(db: Session, study: Study, entry: Entry, by: Account, what: str, **detail: Any) -> None:
    note(db, f"ticket {what}", who=by.name, study=study.id, entry=entry.number, **detail)
