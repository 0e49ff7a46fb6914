"""What is read about a whole study: its last reviews, progress by reviewer, tickets."""

import calendar
from typing import TypedDict

import msgspec
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from medassay.core.json import record_as
from medassay.review.agreement import LastReview
from medassay.review.store.schema import (
    Account,
    Assignment,
    Draft,
    Entry,
    Review,
    Right,
    Study,
    Ticket,
    TicketStep,
)
from medassay.review.store.tickets import State, steps_of

StudyState = tuple[int | str | None, ...]  # of a study: what its results follow from


class FeedbackOutcome(TypedDict):
    """What became of the feedback of a reviewer: number of the item, state and steps of the
    ticket.
    """

    number: int
    state: str
    steps: list[TicketStep]


def last_reviews(db: Session, study: str) -> list[LastReview]:
    """Return the last complete reviews of a study, of training and withdrawn entries none.

    Reviewers are named by their numbers there.

    Of a closed study people are what they were when it was closed.
    """
    reviewers = db.get_one(Study, study).chosen.reviewers
    frozen = {reviewer.reviewer: reviewer.qualification for reviewer in reviewers}
    query = (
        select(
            Assignment.entry_id,
            Right.alias,
            Right.pseudonym,
            Account.qualification,
            Review.content,
            Review.submitted_at,
            Entry.category,
            Entry.iteration,
        )
        .join(Review, Review.assignment_id == Assignment.id)
        .join(Entry, Entry.id == Assignment.entry_id)
        .join(Account, Account.id == Assignment.account_id)
        .join(Right, Right.account_id == Account.id)
        .where(
            Assignment.study_id == study,
            Review.revision == Assignment.revision,
            Right.study_id == study,
            Right.role == "reviewer",
            ~Entry.training,
            Entry.withdrawn.is_(None),
        )
        .order_by(Entry.number, Right.alias)
    )
    return [
        LastReview(
            entry=entry,
            reviewer=alias,
            qualification=frozen.get(pseudonym, qualification),
            content=content,
            submitted_at=at,
            category=category,
            iteration=iteration,
            pseudonym=pseudonym,
        )
        for entry, alias, pseudonym, qualification, content, at, category, iteration in db.execute(
            query
        )
    ]


def state_of(db: Session, study: str) -> StudyState:
    """Return what changes whenever a review of a study, an entry or a reviewer does: cheap to ask,
    good to keep results by.
    """
    entries = (Entry.study_id == study,)
    queries = (
        # Numbers are given before they are kept: a lower one may come after a higher one. So both.
        select(func.max(Review.id)).join(Assignment).where(Assignment.study_id == study),
        select(func.count(Review.id)).join(Assignment).where(Assignment.study_id == study),
        select(Study.closed_at).where(Study.id == study),
        select(func.max(Entry.id)).where(*entries),
        select(func.count()).where(*entries, Entry.withdrawn.is_not(None)),
        select(func.count()).where(Right.study_id == study),
        # Who says something else of themselves agrees anew.
        select(func.max(Account.agreed_at)).join(Right).where(Right.study_id == study),
    )
    return tuple(db.scalar(query) for query in queries)


def entries_of(db: Session, study: str) -> list[Entry]:
    """Return the entries of a study that count: no training, none withdrawn."""
    query = (
        select(Entry)
        .where(Entry.study_id == study, ~Entry.training, Entry.withdrawn.is_(None))
        .order_by(Entry.number)
    )
    return [*db.scalars(query)]


class ReviewerProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far one reviewer is; `last` is when the last review came."""

    alias: int
    pseudonym: str
    name: str
    qualification: str
    specialty: str
    years: int | None
    done: int
    total: int
    trained: bool
    last: str


def progress_of(db: Session, study: str) -> list[ReviewerProgress]:
    """Return how far every reviewer of a study is, by number."""
    done = func.sum(case((Assignment.revision > 0, 1), else_=0))
    counts = (
        select(Assignment.account_id, func.count().label("total"), done.label("done"))
        .join(Entry, Entry.id == Assignment.entry_id)
        .where(Assignment.study_id == study, Entry.withdrawn.is_(None), ~Entry.training)
        .group_by(Assignment.account_id)
        .subquery()
    )
    last = (
        select(Assignment.account_id, func.max(Review.submitted_at).label("last"))
        .join(Review, Review.assignment_id == Assignment.id)
        .where(Assignment.study_id == study)
        .group_by(Assignment.account_id)
        .subquery()
    )
    query = (
        select(Account, Right, counts.c.total, counts.c.done, last.c.last)
        .join(Right, Right.account_id == Account.id)
        .outerjoin(counts, counts.c.account_id == Account.id)
        .outerjoin(last, last.c.account_id == Account.id)
        .where(Right.study_id == study, Right.role == "reviewer")
        .order_by(Right.alias)
    )
    return [
        ReviewerProgress(
            alias=right.alias,
            pseudonym=right.pseudonym,
            name=account.name,
            qualification=account.qualification,
            specialty=account.specialty,
            years=account.years,
            done=int(n_done or 0),
            total=int(total or 0),
            trained=right.trained_at is not None,
            last=at or "",
        )
        for account, right, total, n_done, at in db.execute(query)
    ]


def tickets_of(
    db: Session, study: str, states: tuple[State, ...] = ()
) -> list[tuple[Ticket, Entry]]:
    """Return the tickets of a study with their entries, in the order of entries."""
    query = (
        select(Ticket, Entry)
        .join(Entry, Entry.id == Ticket.entry_id)
        .where(Ticket.study_id == study)
        .order_by(Entry.number)
    )
    if states:
        query = query.where(Ticket.state.in_(states))
    return [(ticket, entry) for ticket, entry in db.execute(query)]


def outcomes_of(db: Session, study: str, account: int) -> list[FeedbackOutcome]:
    """Return what became of the feedback of one reviewer: number of the item, state of the ticket,
    its steps without names.
    """
    query = (
        select(Ticket, Assignment.number)
        .join(Assignment, Assignment.entry_id == Ticket.entry_id)
        .where(Ticket.study_id == study, Assignment.account_id == account, Assignment.revision > 0)
        .order_by(Assignment.number)
    )
    own_entries = set(
        db.scalars(
            select(Review.id)
            .join(Assignment, Assignment.id == Review.assignment_id)
            .where(Assignment.study_id == study, Assignment.account_id == account)
        )
    )
    outcomes: list[FeedbackOutcome] = []
    for ticket, number in db.execute(query):
        steps = steps_of(db, ticket)
        # That others disagree is not theirs to know: only what they wrote themselves comes back.
        if any(
            step.verb == "feedback"
            and (feedback := record_as(step.detail, _Feedback, "feedback")).review in own_entries
            and set(feedback.why) != {"disagreement"}
            for step in steps
        ):
            steps_told = [step for step in steps if step.verb != "feedback"]
            outcomes.append({"number": number, "state": ticket.state, "steps": steps_told})
    return outcomes


class Mine(msgspec.Struct, frozen=True, kw_only=True):
    """One of somebody's own items: `open`, `draft`, `done` or `withdrawn`."""

    number: int
    training: bool
    state: str


def items_of(db: Session, study: str, account: int) -> list[Mine]:
    """Return somebody's own items with their states, by number."""
    query = (
        select(Assignment, Entry.withdrawn, Entry.training, Draft.version)
        .join(Entry, Entry.id == Assignment.entry_id)
        .outerjoin(Draft, Draft.assignment_id == Assignment.id)
        .where(Assignment.study_id == study, Assignment.account_id == account)
        .order_by(Assignment.number)
    )

    def state(assignment: Assignment, withdrawn: str | None, draft: int | None) -> str:
        if withdrawn is not None:
            return "withdrawn"
        return "done" if assignment.revision else "draft" if draft else "open"

    return [
        Mine(
            number=assignment.number,
            training=training,
            state=state(assignment, withdrawn, draft),
        )
        for assignment, withdrawn, training, draft in db.execute(query)
    ]


class _Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a ticket that a review opened: which one, and for what."""

    review: int
    why: list[str]


class DueItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a bank, the day on which it is due for review again, and its last study."""

    due: str
    study: str
    bank: str
    item: str


def due_of(db: Session) -> list[DueItem]:
    """Return when each item of a bank is due for review again: so many months after its last
    review, by date.
    """
    query = (
        select(Study, Entry.item, func.max(Review.submitted_at))
        .join(Entry, Entry.study_id == Study.id)
        .join(Assignment, Assignment.entry_id == Entry.id)
        .join(Review, Review.assignment_id == Assignment.id)
        .where(Study.form == "item", ~Entry.training, Entry.withdrawn.is_(None), Review.complete)
        .group_by(Study.id, Entry.item)
    )
    last: dict[tuple[str, str], tuple[str, str]] = {}
    for study, item, at in db.execute(query):
        chosen = study.chosen
        key = (chosen.source.bank, item)
        due = due_after(at, chosen.again_months)
        last[key] = max(last.get(key, ("", "")), (due, study.id))
    rows = (
        DueItem(due=due, study=study, bank=bank, item=item)
        for (bank, item), (due, study) in last.items()
    )
    return sorted(rows, key=lambda row: (row.due, row.bank, row.item))


def due_after(at: str, months: int) -> str:
    """Return the day so many months after a time.

    Examples
    --------
    >>> due_after("2026-01-31T10:00:00Z", 13)
    '2027-02-28'
    """
    year, month = divmod(int(at[:4]) * 12 + int(at[5:7]) - 1 + months, 12)
    day = min(int(at[8:10]), calendar.monthrange(year, month + 1)[1])
    return f"{year:04}-{month + 1:02}-{day:02}"


def ticket_counts(db: Session, study: Study) -> dict[str, int]:
    """Return state → number of tickets."""
    query = (
        select(Ticket.state, func.count()).where(Ticket.study_id == study.id).group_by(Ticket.state)
    )
    return {state: n for state, n in db.execute(query)}
