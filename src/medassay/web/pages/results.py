"""What a study has found: agreement, items that need a look, trends, single reviews for those who
may read them, exports.
"""

from functools import lru_cache
from typing import Any

import msgspec
from fastapi.responses import Response

from medassay.core.canonical import canonical
from medassay.errors import InputError
from medassay.report.plot.figure import drawable
from medassay.report.plot.reviews import MonthPoint, review_trend
from medassay.review import summary
from medassay.review.agreement import LastReview, ReviewerAgreement, Votes, agreements, votes_of
from medassay.review.exported import FrozenPart
from medassay.review.form import FORMS
from medassay.review.store import frozen, reading, studies, tickets
from medassay.review.store.database import Database
from medassay.review.store.schema import Study
from medassay.statistic.draws import seed_of
from medassay.web.pages.reviewer import table
from medassay.web.request_context import Forbidden, Here, Number, RequestContext, ShownEntry

# Before closing coordinators see counts and agreement: no mean that is one person's score.
_LEAST_TOGETHER = 2
MOST_SHOWN = 500  # rows of one table; what is left out is said


def _state(context: RequestContext) -> reading.StudyState:
    with context.database.read() as db:
        return reading.state_of(db, context.study.id)


def last_reviews_of_study(context: RequestContext) -> tuple[LastReview, ...]:
    """Return the last reviews of the study.

    Outside of any transaction, since it opens one if need be.
    """
    return _cached_last_reviews(context.database, context.study.id, _state(context))


@lru_cache(maxsize=16)
def _cached_last_reviews(
    database: Database, study: str, state: reading.StudyState
) -> tuple[LastReview, ...]:
    """Return the last reviews of a study.

    Read again only when one was added, withdrawn or the like.
    """
    with database.read() as db:
        return tuple(reading.last_reviews(db, study))


@lru_cache(maxsize=16)
def _cached_agreement(
    database: Database, study: str, state: reading.StudyState
) -> tuple[list[ReviewerAgreement], list[Votes]]:
    """Return agreement and votes: resampled once, not for every reader."""
    with database.read() as db:
        form = FORMS[db.get_one(Study, study).form]
        overlap = db.get_one(Study, study).overlap
        entries = {entry.id: entry for entry in reading.entries_of(db, study)}
    reviews = [
        review for review in _cached_last_reviews(database, study, state) if review.entry in entries
    ]
    seed = seed_of(study, form.name, "agreement", "review")
    contents = {number: entry.content for number, entry in entries.items()}
    places = {number: (entry.category, entry.iteration) for number, entry in entries.items()}
    return agreements(form, contents, reviews, seed=seed), votes_of(form, places, reviews, overlap)


def cached_agreement(context: RequestContext) -> list[ReviewerAgreement]:
    """Return the agreement on each aspect of a study."""
    return _cached_agreement(context.database, context.study.id, _state(context))[0]


def agreement_page(context: Here) -> Response:
    """Show agreement by aspect and qualification, and how many found each item right."""
    reviews = last_reviews_of_study(context)
    agreement_rows, votes = _cached_agreement(context.database, context.study.id, _state(context))
    return context.page(
        "agreement.html",
        found=agreement_rows,
        votes=votes,
        groups=[
            group
            for group in summary.by_qualification(reviews)
            if _may_read(context) or group.reviewers >= _LEAST_TOGETHER
        ],
        least_all=context.study.chosen.least_all,
        reviews=len(reviews),
    )


def items_page(context: Here) -> Response:
    """List the items that were rated low.

    Reviews unfold for those who may read them, without names.
    """
    reviews = last_reviews_of_study(context)
    with context.database.read() as db:
        entries = {entry.id: entry for entry in reading.entries_of(db, context.study.id)}
        states = {
            entry.id: ticket.state for ticket, entry in reading.tickets_of(db, context.study.id)
        }
    entry_summaries = summary.standings(reviews)
    every = context.query(_ShownQuery).show == "all"
    listed = [
        entry_summary
        for entry_summary in entry_summaries
        if every or entry_summary.any_low or entry_summary.flagged or entry_summary.harm
    ]
    listed.sort(
        key=lambda entry_summary: (
            not entry_summary.flagged,
            entry_summary.total or 15.0,
            entry_summary.lowest or 5,
        )
    )
    again = context.study.chosen.again_months
    summaries_shown = [entry_summary for entry_summary in listed if entry_summary.entry in entries][
        :MOST_SHOWN
    ]
    of: dict[int, list[Any]] = {entry_summary.entry: [] for entry_summary in summaries_shown}
    last: dict[int, str] = {}
    for review in reviews:
        last[review.entry] = max(last.get(review.entry, ""), review.submitted_at)
        if review.entry in of and _may_read(context):
            of[review.entry].append(review)
    return context.page(
        "items.html",
        rows=[
            {
                "standing": entry_summary,
                "entry": entries[entry_summary.entry],
                "shown": ShownEntry(
                    FORMS[context.study.form], entries[entry_summary.entry].content
                ),
                "state": states.get(entry_summary.entry, ""),
                "given": of[entry_summary.entry],
                "due": reading.due_after(last[entry_summary.entry], again),
            }
            for entry_summary in summaries_shown
        ],
        counts=summary.counts(entry_summaries),
        more=len(listed) - len(summaries_shown),
        every=every,
        reads=_may_read(context),
        least=1 if _may_read(context) else _LEAST_TOGETHER,
    )


def _may_read(context: RequestContext) -> bool:
    """Return whether somebody may read others' reviews: auditors always, coordinators and
    maintainers once the study is closed.
    """
    if "auditor" in context.roles:
        return True
    return context.study.closed_at is not None and bool(
        context.roles & {"coordinator", "maintainer"}
    )


def reviews_page(context: Here, n: Number) -> Response:
    """Show all reviews of one item, every revision, without names."""
    if not _may_read(context):
        raise Forbidden("The study is open: nobody but auditors reads reviews before it is closed.")
    with context.database.read() as db:
        entry = studies.entry_at(db, context.study.id, n)
        reviews_given = tickets.latest_of(db, entry)
        ticket = tickets.ticket_at(db, entry)
        steps = [] if ticket is None else tickets.steps_of(db, ticket)
        names = frozen.pseudonyms(db, context.study.id)
    return context.page(
        "reviews.html",
        entry=entry,
        content=entry.content,
        shown=ShownEntry(FORMS[context.study.form], entry.content),
        given=reviews_given,
        names=names,
        steps=steps,
        form=FORMS[context.study.form],
    )


def trends_page(context: Here) -> Response:
    """Show mean scores over time, by category and qualification."""
    points, by, aspect, aspects = _trend(context)
    return context.page(
        "trends.html",
        points=points[:MOST_SHOWN],
        by=by,
        aspect=aspect,
        aspects=aspects,
        drawn=bool(points) and drawable(),
    )


class _ShownQuery(msgspec.Struct, frozen=True, kw_only=True):
    show: str = ""
    by: str = ""
    aspect: str = ""
    dark: str = ""


def _trend(
    context: RequestContext,
) -> tuple[list[summary.TrendPoint], summary.By, str, list[str]]:
    """Return the points that the address asks for, by what, of which aspect, and all aspects."""
    query = context.query(_ShownQuery)
    state = _state(context)
    aspects = summary.scored_aspects(
        _cached_last_reviews(context.database, context.study.id, state)
    )
    choices: tuple[summary.By, ...] = ("all", "category", "qualification")
    by = next((choice for choice in choices if choice == query.by), choices[0])
    aspect = next((name for name in aspects if name == query.aspect), "")
    aspect = aspect or (aspects[0] if aspects else "")
    points = _cached_trend(context.database, context.study.id, state, by, aspect)
    least = 1 if _may_read(context) else _LEAST_TOGETHER
    return [point for point in points if point.reviewers >= least], by, aspect, aspects


@lru_cache(maxsize=64)
def _cached_trend(
    database: Database, study: str, state: reading.StudyState, by: summary.By, aspect: str
) -> list[summary.TrendPoint]:
    reviews = _cached_last_reviews(database, study, state)
    return summary.trend(reviews, aspect, by, seed=seed_of(study, "trends", "time", "review"))


def trend_picture(context: Here) -> Response:
    """Return the figure of mean scores over time."""
    points, _, aspect, _ = _trend(context)
    rows = [
        MonthPoint(
            place=point.month,
            row=point.name or "–",
            score=point.mean.value,
            lo=point.mean.lo,
            hi=point.mean.hi,
            reviews=point.reviews,
        )
        for point in points
    ]
    if not rows or not drawable():
        raise InputError("nothing to draw")
    figure = review_trend(rows, aspect=aspect)
    dark = context.query(_ShownQuery).dark == "1"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    headers = {"content-security-policy": policy}
    return Response(figure.svg(dark=dark), media_type="image/svg+xml", headers=headers)


def export_json(context: Here) -> Response:
    """Return a closed study as JSON."""
    return Response(
        canonical(exported(context)),
        media_type="application/json",
        headers={"content-disposition": f'attachment; filename="{context.study.id}.json"'},
    )


def export_csv(context: Here) -> Response:
    """Return the last reviews of a closed study as a table, a line for every score; without those
    for training and of withdrawn entries.
    """
    frozen_part = msgspec.convert(exported(context)["frozen"], FrozenPart)
    entries = frozen_part.counted_entries
    qualifications = {person.reviewer: person.qualification for person in frozen_part.reviewers}
    rows = [
        [
            review.entry,
            entries[review.entry].item,
            entries[review.entry].category,
            entries[review.entry].iteration,
            review.reviewer,
            qualifications.get(review.reviewer, ""),
            review.submitted_at,
            aspect,
            score,
            " / ".join(review_record.comments),
            (review_record.harm or {}).get("severity", ""),
            " / ".join(review_record.said.correction.values()),
            review_record.said.source,
        ]
        for review in frozen_part.reviews
        if review.latest and review.entry in entries
        for review_record in [
            LastReview(entry=0, reviewer=0, qualification="", content=review.review)
        ]
        for aspect, score in review_record.scores.items()
    ]
    header = [
        *("entry", "item", "category", "iteration", "reviewer", "qualification"),
        *("submitted_at", "aspect", "score", "comment", "harm", "correction", "source"),
    ]
    return table(context, "reviews.csv", header, rows)


def exported(context: RequestContext) -> frozen.StudyExport:
    """Return a closed study as it is exported; refuse an open one."""
    if context.study.closed_at is None:
        raise Forbidden("The study is open: its reviews are exported after closing.")
    with context.database.write() as db:
        study = db.get_one(Study, context.study.id)
        return frozen.export_document(db, study, who=context.who.name)
