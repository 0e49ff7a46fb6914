"""Closing a study, and what is exported of it: the same bytes ever after, under a hash in the
trail.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sqlalchemy import select
from sqlalchemy.orm import Session

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.clock import now
from medassay.errors import GateError, IntegrityError
from medassay.review.store.reading import progress_of, tickets_of
from medassay.review.store.schema import Assignment, Entry, Review, Right, Study
from medassay.review.store.studies import hold
from medassay.review.store.tickets import steps_of
from medassay.review.store.trail import note


class FrozenStudy(TypedDict):
    """What closing a study freezes; `review/exported.py` reads it."""

    study: dict[str, Any]
    reviewers: list[dict[str, Any]]
    entries: list[dict[str, Any]]
    reviews: list[dict[str, Any]]


class TicketExport(TypedDict):
    """A ticket with its steps, people by their names in the study."""

    entry: int
    state: str
    steps: list[dict[str, Any]]


class StudyExport(TypedDict):
    """A closed study as it is exported; `sha256` is that of the frozen part."""

    schema_version: int
    sha256: str
    frozen: FrozenStudy
    tickets: list[TicketExport]


def close(db: Session, study: Study, *, who: str) -> str:
    """Freeze a study, write the hash of all its reviews into the trail, and return it.

    Raises
    ------
    GateError
        When it is closed already.
    """
    hold(db, study)
    study.closed_at = now()
    # Who they are is frozen with what they said: an account may change later.
    study.settings = {**study.settings, "reviewers": _reviewers(db, study)}
    frozen = frozen_document(db, study, pseudonyms(db, study.id))
    study.frozen_sha256 = sha256_hex(canonical(frozen))
    progress = progress_of(db, study.id)
    note(
        db,
        "study closed",
        who=who,
        study=study.id,
        sha256=study.frozen_sha256,
        reviews=len(frozen["reviews"]),
        not_done=sum(row.total - row.done for row in progress),
    )
    db.flush()
    return study.frozen_sha256


# Of several roles the one in which somebody speaks: they review, or they decide.
_SPEAKING = ("reviewer", "adjudicator")
# Auditors were taken for speakers once: a study of somebody who reviewed and audited was closed so.
_SPEAKING_ONCE = (*_SPEAKING, "auditor")


def pseudonyms(db: Session, study: str, speaking: Sequence[str] = _SPEAKING) -> dict[int, str]:
    """Return account → what exports call a person of a study: drawn when the role was given, and no
    name.
    """
    query = select(Right.account_id, Right.role, Right.pseudonym).where(Right.study_id == study)
    names: dict[int, str] = {}
    for account, role, pseudonym in db.execute(query.order_by(Right.role.desc(), Right.id)):
        if role in speaking or account not in names:
            names[account] = pseudonym
    return names


def _reviewers(db: Session, study: Study) -> list[dict[str, str | int | None]]:
    return [
        {
            "reviewer": row.pseudonym,
            "qualification": row.qualification,
            "specialty": row.specialty,
            "years": row.years,
            "assigned": row.total,
            "done": row.done,
        }
        for row in sorted(progress_of(db, study.id), key=lambda row: row.pseudonym)
    ]


def frozen_document(db: Session, study: Study, names: Mapping[int, str]) -> FrozenStudy:
    """Return everything that closing freezes: entries, reviewers without names, every revision of
    every review.

    `names` are account → pseudonym.
    """
    entries = [*db.scalars(select(Entry).where(Entry.study_id == study.id).order_by(Entry.number))]
    number = {entry.id: entry.number for entry in entries}
    settings = {key: value for key, value in study.settings.items() if key != "reviewers"}
    query = (
        select(Assignment, Review)
        .join(Review, Review.assignment_id == Assignment.id)
        .where(Assignment.study_id == study.id)
        .order_by(Assignment.entry_id, Review.assignment_id, Review.revision)
    )
    return {
        "study": {
            "name": study.id,
            "title": study.title,
            "form": study.form,
            "seed": study.seed,
            "overlap": study.overlap,
            "settings": settings,
            "made_at": study.made_at,
            "closed_at": study.closed_at,
        },
        "reviewers": study.settings.get("reviewers", []),
        "entries": [
            {
                "number": entry.number,
                "item": entry.item,
                "category": entry.category,
                "iteration": entry.iteration,
                "training": entry.training,
                "withdrawn": entry.withdrawn,
                "content": entry.content,
                "hidden": entry.hidden,
                "sha256": entry.sha256,
            }
            for entry in entries
        ],
        "reviews": [
            {
                "entry": number[assignment.entry_id],
                "reviewer": names[assignment.account_id],
                "revision": review.revision,
                "latest": review.revision == assignment.revision,
                "complete": review.complete,
                "submitted_at": review.submitted_at,
                "reason": review.reason.get("text", ""),
                "review": review.content,
            }
            for assignment, review in db.execute(query)
        ],
    }


def export_document(db: Session, study: Study, *, who: str) -> StudyExport:
    """Return a closed study with what became of its tickets, and note in the trail that it was
    exported.

    `sha256` is that of the frozen part, as the trail has it since closing; it is compared before
    anything is given out.

    Raises
    ------
    GateError
        When the study is open: nobody reads reviews before.
    IntegrityError
        When the reviews are not those that were frozen.
    """
    if study.closed_at is None:
        raise GateError(
            f"study '{study.id}' is open: its reviews are exported after closing, so that nobody is"
            " influenced"
        )
    for speaking in (_SPEAKING, _SPEAKING_ONCE):
        names = pseudonyms(db, study.id, speaking)
        frozen = frozen_document(db, study, names)
        document_hash = sha256_hex(canonical(frozen))
        if document_hash == study.frozen_sha256:
            break
    else:
        raise IntegrityError(
            f"study '{study.id}': its reviews have the hash {document_hash}, closed was"
            f" {study.frozen_sha256}"
        )
    document: StudyExport = {
        "schema_version": 1,
        "sha256": document_hash,
        "frozen": frozen,
        "tickets": _tickets(db, study, names),
    }
    export = sha256_hex(canonical(document))
    note(db, "exported", who=who, study=study.id, sha256=export, frozen_sha256=document_hash)
    return document


def _tickets(db: Session, study: Study, names: Mapping[int, str]) -> list[TicketExport]:
    ticket_records: list[TicketExport] = []
    for ticket, entry in tickets_of(db, study.id):
        steps = []
        for step in steps_of(db, ticket):
            detail = {key: value for key, value in step.detail.items() if key != "review"}
            by = "" if step.account_id is None else names.get(step.account_id, "")
            steps.append({"verb": step.verb, "at": step.at, "by": by, **detail})
        ticket_records.append({"entry": entry.number, "state": ticket.state, "steps": steps})
    return ticket_records
