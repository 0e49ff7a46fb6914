"""Drafts and reviews: what is saved on the way, and what is submitted for good."""

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.clock import now
from medassay.errors import InputError, MedassayError
from medassay.review.form import FORMS, Form, Problem, clean, read_review
from medassay.review.sampling import draw_key
from medassay.review.store.schema import Account, Assignment, Draft, Entry, Review, Right, Study
from medassay.review.store.studies import refuse_closed
from medassay.review.store.tickets import open_ticket

_MOST_FIELDS = 400
_MOST_CHARACTERS = 100_000  # of one field


class OwnReview(TypedDict):
    """One revision of a review as its reviewer may take it home."""

    number: int
    entry_sha256: str
    revision: int
    submitted_at: str | None
    reason: str
    review: Mapping[str, Any]


class Incomplete(MedassayError):
    """What was filled in cannot be submitted yet; `problems` say why, field by field."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.says}" for p in problems))
        self.problems = problems


class ChangedElsewhere(MedassayError):
    """Another tab or device has saved or submitted since; `theirs` is what stands there now."""

    def __init__(self, theirs: Mapping[str, str], version: int) -> None:
        super().__init__("changed elsewhere; both versions are kept, choose one")
        self.theirs = dict(theirs)
        self.version = version


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One assignment as its reviewer meets it.

    `version` counts what was saved and submitted, so that two tabs notice each other; `own` is the
    first part of a judge check once it is submitted.
    """

    assignment: Assignment
    entry: Entry
    form: Form
    content: Mapping[str, Any]
    fields: Mapping[str, str]
    version: int
    reviews: tuple[Review, ...]
    own: Mapping[str, Any] | None = None
    verdict: Mapping[str, Any] | None = None

    @property
    def revisions(self) -> int:
        """Return how many times it was submitted."""
        return len(self.reviews)

    @property
    def done(self) -> bool:
        """Return whether it has a complete review."""
        return self.assignment.revision > 0

    @property
    def second(self) -> bool:
        """Return whether the part after one's own rating is to be filled in."""
        return self.own is not None


def work_at(db: Session, study: Study, account: int, number: int, *, lock: bool = False) -> Work:
    """Return what somebody is to review under a number.

    Raises
    ------
    InputError
        When nothing is assigned under it.
    """
    query = select(Assignment).where(
        Assignment.study_id == study.id,
        Assignment.account_id == account,
        Assignment.number == number,
    )
    assignment = db.scalar(query.with_for_update() if lock else query)
    if assignment is None:
        raise InputError(f"study '{study.id}': nothing of yours is number {number}")
    entry = db.get_one(Entry, assignment.entry_id)
    form = FORMS[study.form]
    reviews = [
        *db.scalars(
            select(Review).where(Review.assignment_id == assignment.id).order_by(Review.revision)
        )
    ]
    draft = db.get(Draft, assignment.id)
    own_review = _own(form, reviews)
    latest = reviews[-1].fields if reviews and reviews[-1].complete else {}
    return Work(
        assignment=assignment,
        entry=entry,
        form=form,
        content=shown_content(study, entry, account),
        fields=latest if draft is None else draft.fields,
        version=len(reviews) * 1_000_000 + (0 if draft is None else draft.version),
        reviews=tuple(reviews),
        own=own_review,
        verdict=entry.hidden.get("verdict") if own_review is not None else None,
    )


def _own(form: Form, reviews: list[Review]) -> Mapping[str, Any] | None:
    """Return the first part of a form of two parts; it is given once and never again."""
    return reviews[0].content if form.then and reviews else None


def shown_content(study: Study, entry: Entry, account: int) -> dict[str, Any]:
    """Return what a reviewer sees of an entry: two answers on sides drawn for this reviewer."""
    swapped = (
        study.form == "preference"
        and int(draw_key(study.seed, "side", account, entry.id), 16) % 2 == 1
    )
    return {**entry.content, "swapped": swapped}


def save_draft(work: Work, db: Session, fields: Mapping[str, str], version: int) -> int:
    """Keep what is filled in so far, and return its version.

    Raises
    ------
    ChangedElsewhere
        When something else was saved or submitted since `version`.
    InputError
        When there are fields that the form does not have, or a text is too long.
    """
    fields_kept = known_fields(work, fields)
    if version != work.version:
        if dict(work.fields) == fields_kept:
            return work.version
        raise ChangedElsewhere(work.fields, work.version)
    draft = db.get(Draft, work.assignment.id)
    if draft is None:
        draft = Draft(assignment_id=work.assignment.id, fields={}, version=0, saved_at="")
        db.add(draft)
    draft.fields, draft.version, draft.saved_at = fields_kept, draft.version + 1, now()
    return work.revisions * 1_000_000 + draft.version


def known_fields(work: Work, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that the form has, as JSON on every database can hold them.

    Raises
    ------
    InputError
        Naming a field that it does not have, or that is too long.
    """
    names = work.form.known(work.content)
    strange = sorted(set(fields) - names)
    if strange or len(fields) > _MOST_FIELDS:
        raise InputError(f"no field '{(strange or ['…'])[0][:40]}' in this form")
    texts = {name: clean(text) for name, text in fields.items() if text}
    for name, text in sorted(texts.items()):
        if len(text) > _MOST_CHARACTERS:
            raise InputError(
                f"field '{name}': {len(text):,} characters; at most {_MOST_CHARACTERS:,} are kept,"
                " shorten it"
            )
    return texts


def submit(
    db: Session,
    study: Study,
    work: Work,
    fields: Mapping[str, str],
    *,
    version: int,
    reason: str = "",
) -> Review:
    """Append a review, and return it; the same one sent twice is kept once.

    Parameters
    ----------
    study, work : read in this transaction: the study by `held`, so that it is not closed meanwhile,
        the work with `lock`
    reason : why an earlier review is revised

    Raises
    ------
    GateError
        When the study was closed.
    Incomplete
        When something is missing.
    ChangedElsewhere
        When something else was saved or submitted since `version`.
    InputError
        When there are fields that the form does not have, or a text is too long.
    """
    fields_kept = known_fields(work, fields)
    why = clean(fields_kept.pop("reason", "") or reason)
    latest = work.reviews[-1] if work.reviews else None
    if (
        latest is not None
        and latest.fields == fields_kept
        and version // 1_000_000 == work.revisions - 1
    ):
        return latest  # sent again: the answer to the first time was lost
    refuse_closed(study)
    if work.entry.withdrawn is not None:
        raise InputError("this item was withdrawn; nothing more is asked about it")
    if version != work.version and _answers(work.fields) != fields_kept:
        raise ChangedElsewhere(work.fields, work.version)
    second = work.second
    reading = read_review(work.form, work.content, fields_kept, second=second)
    problems = reading.problems
    if work.done and not why:
        problems = (*problems, Problem(field="reason", says="Say why you change your review."))
    if problems:
        raise Incomplete(problems)
    complete = second or not work.form.then
    content = {**reading.review, "own": dict(work.own)} if work.own else reading.review
    review = Review(
        assignment_id=work.assignment.id,
        revision=work.revisions + 1,
        complete=complete,
        content=content,
        fields=fields_kept,
        reason={"text": why} if work.done else {},
        submitted_at=now(),
    )
    db.add(review)
    db.execute(delete(Draft).where(Draft.assignment_id == work.assignment.id))
    if complete:
        work.assignment.revision = review.revision
        if work.entry.training:
            _note_trained(db, study.id, work.assignment.account_id)
        else:
            open_ticket(db, study, work.entry, review)
    db.flush()
    return review


def _answers(fields: Mapping[str, str]) -> dict[str, str]:
    """Return fields without the reason of a revision."""
    return {name: text for name, text in fields.items() if name != "reason"}


def _note_trained(db: Session, study: str, account: int) -> None:
    """Note when the last training item is done."""
    db.flush()
    if queue_of(db, study, account).training == 0:
        right = db.scalar(
            select(Right).where(
                Right.study_id == study, Right.account_id == account, Right.role == "reviewer"
            )
        )
        if right is not None and right.trained_at is None:
            right.trained_at = now()


def skip(db: Session, study: Study, work: Work) -> None:
    """Move what is not done behind everything else; what is filled in stays."""
    refuse_closed(study)
    mine = (
        Assignment.study_id == study.id,
        Assignment.account_id == work.assignment.account_id,
    )
    last = db.scalar(select(func.max(Assignment.turn)).where(*mine)) or 0
    work.assignment.turn = last + 1


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody has to do in a study, as numbers: `order` of all, training first and then by
    turn, `open` those not done.

    `last` is the highest number, `training` how many training items are not done.
    """

    order: tuple[int, ...]
    open: tuple[int, ...]
    last: int
    training: int

    @property
    def total(self) -> int:
        """Return how many there are."""
        return len(self.order)

    @property
    def done(self) -> int:
        """Return how many are done."""
        return len(self.order) - len(self.open)

    @property
    def next(self) -> int | None:
        """Return the first that is not done."""
        return self.open[0] if self.open else None

    def after(self, number: int) -> int | None:
        """Return what comes once `number` is done: the next open one behind it, else the first;
        None when all are done.
        """
        rest = [open_number for open_number in self.open if open_number != number]
        if not rest:
            return None
        start = self.order.index(number) if number in self.order else -1
        behind = set(self.order[start + 1 :])
        return next((number for number in rest if number in behind), rest[0])


def queue_of(db: Session, study: str, account: int) -> Queue:
    """Return how far somebody is in a study; what was withdrawn does not count."""
    of_entry = (Entry.training, Entry.withdrawn)
    query = (
        select(Assignment.number, Assignment.turn, Assignment.revision, *of_entry)
        .join(Entry, Entry.id == Assignment.entry_id)
        .where(Assignment.study_id == study, Assignment.account_id == account)
    )
    every = db.execute(query).all()
    rows = [row for row in every if row.withdrawn is None]
    rows.sort(key=lambda row: (not row.training, row.turn))
    return Queue(
        order=tuple(row.number for row in rows),
        open=tuple(row.number for row in rows if row.revision == 0),
        last=max((row.number for row in every), default=0),
        training=sum(row.training and row.revision == 0 for row in rows),
    )


def own_reviews(db: Session, study: str, account: Account) -> list[OwnReview]:
    """Return everything that somebody submitted in a study, every revision, as plain values.

    The hash of an entry is of what was shown: one over what is hidden could be tried out, model by
    model, until it fits.
    """
    query = (
        select(Assignment.number, Review, Entry.content)
        .join(Review, Review.assignment_id == Assignment.id)
        .join(Entry, Entry.id == Assignment.entry_id)
        .where(Assignment.study_id == study, Assignment.account_id == account.id)
        .order_by(Assignment.number, Review.revision)
    )
    return [
        {
            "number": number,
            "entry_sha256": sha256_hex(canonical(content)),
            "revision": review.revision,
            "submitted_at": review.submitted_at,
            "reason": review.reason.get("text", ""),
            "review": review.content,
        }
        for number, review, content in db.execute(query)
    ]
