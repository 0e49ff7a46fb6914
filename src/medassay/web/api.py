"""The JSON endpoints: what the pages' script uses, and what scripts of others may."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from medassay.core.clock import now
from medassay.review.store import reading, reviews, studies
from medassay.review.store.accounts import AGREEMENT
from medassay.review.store.schema import Study
from medassay.web.pages import results
from medassay.web.request_context import Forbidden, Here, Number, RequestContext

_Text = Annotated[str, Field(max_length=100_000)]
_Version = Annotated[int, Field(ge=0, le=10**12)]


class Fields(BaseModel):
    """What is filled in, field by field, as in the form of the page."""

    model_config = ConfigDict(extra="forbid")
    fields: dict[Annotated[str, Field(max_length=200)], _Text] = Field(max_length=400)
    version: _Version = Field(description="The version that this is based on.")


class Submission(Fields):
    """A review to be submitted; `reason` says why an earlier one is revised."""

    reason: _Text = ""


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    says: str


class Told(BaseModel):
    """Why a request was refused; of what was changed elsewhere the other version."""

    message: str
    problems: list[FieldProblem] = []
    theirs: dict[str, str] = {}
    version: int | None = None


class Refusal(BaseModel):
    """A refused request."""

    error: Told


class Saved(BaseModel):
    """A saved draft."""

    version: int
    saved_at: str


class Submitted(BaseModel):
    """A submitted review, and the number of the next item, if any."""

    revision: int
    submitted_at: str
    next: int | None


class Healthy(BaseModel):
    """The app answers, and so does its database."""

    status: str
    database: str


class StudyRow(BaseModel):
    """A study in which one has a role."""

    name: str
    title: str
    form: str
    roles: list[str]
    closed: bool
    done: int | None = None
    total: int | None = None


class AspectRow(BaseModel):
    """One question of a form, with its possible values."""

    name: str
    label: str
    values: list[str]
    text: str


class ReviewItem(BaseModel):
    """One's own item: what is seen, what is asked, what is filled in."""

    number: int
    content: dict[str, Any]
    aspects: list[AspectRow]
    fields: dict[str, str]
    version: int
    done: bool
    revisions: int
    verdict: dict[str, Any] | None


class ProgressRow(BaseModel):
    """How far one reviewer is."""

    reviewer: str
    qualification: str
    done: int
    total: int


class AgreementRow(BaseModel):
    """Krippendorff's alpha of one aspect, with its 95 % interval."""

    aspect: str
    qualification: str
    level: str
    alpha: float | None
    lo: float | None
    hi: float | None
    entries: int
    reviewers: int


def healthz(context: Here) -> Healthy:
    """Say that the app and its database work."""
    with context.database.read() as db:
        db.get(Study, "-")
    return Healthy(status="ok", database=context.database.engine.dialect.name)


def my_studies(context: Here) -> list[StudyRow]:
    """Return the studies in which one has a role."""
    rows = []
    with context.database.read() as db:
        for study, roles in studies.studies_of(db, context.who):
            queue = reviews.queue_of(db, study.id, context.who.id) if "reviewer" in roles else None
            rows.append(
                StudyRow(
                    name=study.id,
                    title=study.title,
                    form=study.form,
                    roles=sorted(roles),
                    closed=study.closed_at is not None,
                    done=None if queue is None else queue.done,
                    total=None if queue is None else queue.total,
                )
            )
    return rows


def item(context: Here, n: Number) -> ReviewItem:
    """Return one of one's own items with what is filled in."""
    with context.database.read() as db:
        work = reviews.work_at(db, context.study, context.who.id, n)
        _refuse_untrained(context, work, reviews.queue_of(db, context.study.id, context.who.id))
    return ReviewItem(
        number=n,
        content=dict(work.content),
        aspects=[
            AspectRow(
                name=aspect.name,
                label=aspect.label,
                values=[str(value) for value, _ in aspect.values],
                text=aspect.text,
            )
            for aspect in work.form.asked(work.content, second=work.second)
        ],
        fields=dict(work.fields),
        version=work.version,
        done=work.done,
        revisions=work.revisions,
        verdict=None if work.verdict is None else dict(work.verdict),
    )


def _refuse_untrained(context: RequestContext, work: reviews.Work, queue: reviews.Queue) -> None:
    """Refuse items of others than training before the agreement and the training."""
    if context.who.agreement != AGREEMENT:
        raise Forbidden("Nobody can review without the agreement.")
    late = context.study.closed_at is not None or work.entry.training
    if queue.training and not late:
        raise Forbidden("The training items come first.")


def save_draft(context: Here, n: Number, fields: Fields) -> Saved:
    """Keep what is filled in so far; 409 when it was changed elsewhere meanwhile."""
    with context.database.write() as db:
        study = studies.held(db, context.study.id)
        studies.refuse_closed(study)
        work = reviews.work_at(db, study, context.who.id, n, lock=True)
        version = reviews.save_draft(work, db, fields.fields, fields.version)
    return Saved(version=version, saved_at=now())


def submit(context: Here, n: Number, submission: Submission) -> Submitted:
    """Submit a review; sent twice it is kept once."""
    with context.database.write() as db:
        study = studies.held(db, context.study.id)
        work = reviews.work_at(db, study, context.who.id, n, lock=True)
        queue = reviews.queue_of(db, study.id, context.who.id)
        _refuse_untrained(context, work, queue)
        review = reviews.submit(
            db,
            study,
            work,
            submission.fields,
            version=submission.version,
            reason=submission.reason,
        )
    return Submitted(
        revision=review.revision,
        submitted_at=review.submitted_at,
        next=queue.after(n) if review.complete else n,
    )


def progress(context: Here) -> list[ProgressRow]:
    """Return how far every reviewer is, without names."""
    with context.database.read() as db:
        rows = reading.progress_of(db, context.study.id)
    return [
        ProgressRow(
            reviewer=progress_row.pseudonym,
            qualification=progress_row.qualification,
            done=progress_row.done,
            total=progress_row.total,
        )
        for progress_row in sorted(rows, key=lambda progress_row: progress_row.pseudonym)
    ]


def agreement(
    context: Here, aspect: Annotated[str, Query(max_length=200)] = ""
) -> list[AgreementRow]:
    """Return the agreement of reviewers, of one aspect or of all."""
    agreement_rows = results.cached_agreement(context)
    return [
        AgreementRow(
            aspect=agreement_row.aspect,
            qualification=agreement_row.qualification,
            level=agreement_row.level,
            alpha=None if agreement_row.alpha is None else agreement_row.alpha.value,
            lo=None if agreement_row.alpha is None else agreement_row.alpha.lo,
            hi=None if agreement_row.alpha is None else agreement_row.alpha.hi,
            entries=agreement_row.entries,
            reviewers=agreement_row.reviewers,
        )
        for agreement_row in agreement_rows
        if aspect in ("", agreement_row.aspect)
    ]


def export(context: Here) -> dict[str, Any]:
    """Return a closed study with its reviews, its entries and what became of its tickets."""
    return {**results.exported(context)}
