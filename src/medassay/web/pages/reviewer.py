"""What reviewers meet: their studies, one item after another, and what became of their feedback."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from fastapi.responses import Response
from sqlalchemy.orm import Session

from medassay.core.canonical import canonical
from medassay.core.records.decision_graph import read_decision_graph
from medassay.core.table import Cell
from medassay.errors import GateError, InputError
from medassay.report.decision_graph import draw_decision_graph
from medassay.report.tables import harmless
from medassay.review.form import MARKS, SEVERITIES, Problem
from medassay.review.store import accounts, reading, reviews, studies
from medassay.review.store.schema import Study
from medassay.web.request_context import Here, Number, RequestContext

_NOT_FIELDS = ("csrf", "version", "do", "owner")


def to_study(context: Here) -> Response:
    """Lead to a study whose address lacks its last stroke."""
    return context.to(f"/s/{context.study.id}/")


def study_page(context: Here) -> Response:
    """Show a study: to reviewers what is left, to others where their work is."""
    mine: Sequence[Any] = ()
    queue, feedback = None, 0
    if "reviewer" in context.roles:
        with context.database.read() as db:
            queue = reviews.queue_of(db, context.study.id, context.who.id)
            mine = reading.items_of(db, context.study.id, context.who.id)
            feedback = len(reading.outcomes_of(db, context.study.id, context.who.id))
    return context.page("study.html", queue=queue, mine=mine, feedback=feedback)


def item_page(context: Here, n: Number) -> Response:
    """Show one item with its form."""
    with context.database.read() as db:
        work = reviews.work_at(db, context.study, context.who.id, n)
        queue = reviews.queue_of(db, context.study.id, context.who.id)
    return _first_duty(context, work, queue) or _show(context, work, work.fields, queue)


def _first_duty(
    context: RequestContext, work: reviews.Work, queue: reviews.Queue
) -> Response | None:
    """Return where somebody has to go before this item: to the agreement, or to the training."""
    if not context.who.qualification or context.who.agreement != accounts.AGREEMENT:
        return context.to(f"/me?next=/s/{context.study.id}/i/{work.assignment.number}")
    if context.study.closed_at is None and queue.training and not work.entry.training:
        return context.to(f"/s/{context.study.id}/i/{queue.next}")
    return None


def _show(  # noqa: PLR0913 -- each is one thing that the page may have to say
    context: RequestContext,
    work: reviews.Work,
    fields: Mapping[str, str],
    queue: reviews.Queue,
    *,
    status: int = 200,
    problems: Sequence[Problem] = (),
    theirs: Mapping[str, str] | None = None,
    says: str = "",
) -> Response:
    return context.page(
        "item.html",
        status,
        work=work,
        form=work.form,
        content=work.content,
        aspects=work.form.asked(work.content, second=work.second),
        fields=fields,
        problems=problems,
        labels=_labels(work),
        wrong={problem.field: problem for problem in problems},
        theirs=None if theirs is None else _other_version(work, theirs),
        says=says,
        severities=SEVERITIES,
        marks=MARKS,
        queue=queue,
        numbers=queue.last,
        closed=context.study.closed_at is not None,
        explained=work.entry.hidden_part.training if work.entry.training and work.done else None,
        history=work.reviews,
    )


def _labels(work: reviews.Work) -> dict[str, str]:
    """Return field → the words by which a list of problems calls it."""
    labels = {a.name: a.text or a.label for a in work.form.all_aspects(work.content)}
    return labels | {f"why-{name}": label for name, label in labels.items()}


def _other_version(work: reviews.Work, fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return another version of what was filled in, field by field."""
    labels = {aspect.name: aspect.label for aspect in work.form.all_aspects(work.content)}
    return [(labels.get(name, name), text) for name, text in sorted(fields.items())]


class _ItemForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the form of an item says besides the review: what to do, and of which version it is."""

    do: str = "submit"
    version: str = ""


def send_item(context: Here, n: Number) -> Response:
    """Keep a draft, skip, or submit: whatever happens, what was filled in comes back."""
    fields = _fields(context)
    if context.expired:
        says = "This page had expired, so nothing was sent. Your text is kept: send it again."
        return _again(context, n, fields, 403, says=says)
    try:
        with context.database.write() as db:
            study = studies.held(db, context.study.id)
            work = reviews.work_at(db, study, context.who.id, n, lock=True)
            queue = reviews.queue_of(db, study.id, context.who.id)
            if (duty := _first_duty(context, work, queue)) is not None:
                reviews.save_draft(work, db, fields, _whole(context.form(_ItemForm).version))
                return duty
            return _act(context, db, study, work, queue)
    except reviews.Incomplete as error:
        return _again(context, n, fields, 422, problems=error.problems)
    except reviews.ChangedElsewhere as error:
        says = (
            "This item was changed elsewhere, in another tab or on another device. Both versions"
            " are shown: send the one that you want."
        )
        return _again(context, n, fields, 409, theirs=error.theirs, says=says)
    except (GateError, InputError) as error:
        return _again(context, n, fields, 409, says=str(error))


def _act(
    context: RequestContext, db: Session, study: Study, work: reviews.Work, queue: reviews.Queue
) -> Response:
    """Do what the form asks for, and go on: to the same item, the next one, or the end."""
    form, n = context.form(_ItemForm), work.assignment.number
    do, fields, version = form.do, _fields(context), _whole(form.version)
    here = f"/s/{study.id}/i/{n}"
    if do in ("draft", "skip"):
        studies.refuse_closed(study)
    if do == "draft":
        reviews.save_draft(work, db, fields, version)
        return context.to(here)
    following = queue.after(n)
    if do == "skip":
        if fields != dict(work.fields):
            reviews.save_draft(work, db, fields, version)
        reviews.skip(db, study, work)
        following = following or n
    else:
        review = reviews.submit(db, study, work, fields, version=version)
        if not review.complete or work.entry.training:
            return context.to(here)
    return context.to(
        f"/s/{study.id}/done" if following is None else f"/s/{study.id}/i/{following}"
    )


def _fields(context: RequestContext) -> dict[str, str]:
    return {k: v for k, v in context.posted.items() if k not in _NOT_FIELDS}


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 15 else -1


def _again(
    context: RequestContext, n: int, fields: Mapping[str, str], status: int, **told: Any
) -> Response:
    """Return the page as it was filled in, with what keeps it from being sent."""
    with context.database.read() as db:
        work = reviews.work_at(db, context.study, context.who.id, n)
        queue = reviews.queue_of(db, context.study.id, context.who.id)
    return _show(context, work, fields, queue, status=status, **told)


def graph_picture(context: Here, n: Number) -> Response:
    """Return the decision graph of an item as a picture."""
    with context.database.read() as db:
        content = reviews.work_at(db, context.study, context.who.id, n).content
    return picture_of(content)


def picture_of(content: Mapping[str, Any]) -> Response:
    """Return the decision graph of an entry as SVG."""
    if "graph" not in content:
        raise InputError("this item has no decision graph")
    graph = read_decision_graph(content["graph"])
    picture = draw_decision_graph(graph, title=str(content.get("condition", "")))
    # An image loads nothing and runs nothing; a style of its own is all it needs.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    headers = {"content-security-policy": policy, "cache-control": "private, max-age=3600"}
    return Response(picture, media_type="image/svg+xml", headers=headers)


def done_page(context: Here) -> Response:
    """Thank the reviewer, and offer what they wrote."""
    with context.database.read() as db:
        queue = reviews.queue_of(db, context.study.id, context.who.id)
    return context.page("done.html", queue=queue)


def feedback_page(context: Here) -> Response:
    """Show what became of one's feedback."""
    with context.database.read() as db:
        outcomes = reading.outcomes_of(db, context.study.id, context.who.id)
    return context.page("feedback.html", outcomes=outcomes)


def own_json(context: Here) -> Response:
    """Return one's own reviews as JSON."""
    with context.database.read() as db:
        own_reviews = reviews.own_reviews(db, context.study.id, context.who)
    document = {"schema_version": 1, "study": context.study.id, "reviews": own_reviews}
    return Response(
        canonical(document),
        media_type="application/json",
        headers=_as_file(context, "my-reviews.json"),
    )


def own_csv(context: Here) -> Response:
    """Return one's own reviews as a table, a line for every score."""
    with context.database.read() as db:
        own_reviews = reviews.own_reviews(db, context.study.id, context.who)
    rows = [
        [
            review["number"],
            review["revision"],
            review["submitted_at"],
            aspect,
            score,
            review["review"]["comment"],
        ]
        for review in own_reviews
        for aspect, score in review["review"]["scores"].items()
    ]
    header = ["number", "revision", "submitted_at", "aspect", "score", "comment"]
    return table(context, "my-reviews.csv", header, rows)


def table(
    context: RequestContext, name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]
) -> Response:
    """Return a CSV in which no cell is taken for a formula by a program that opens it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(harmless, row) for row in rows)
    return Response(
        text.getvalue(), media_type="text/csv; charset=utf-8", headers=_as_file(context, name)
    )


def _as_file(context: RequestContext, name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{context.study.id}-{name}"'}
