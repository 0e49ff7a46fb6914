"""What coordinators do: make a study, bring in items, invite, assign, look at progress, close."""

import msgspec
from fastapi.responses import Response
from sqlalchemy.orm import Session

from medassay.errors import GateError, InputError, StatisticError
from medassay.review import summary
from medassay.review.form import FORMS
from medassay.review.sampling import sample_size
from medassay.review.store import accounts, frozen, links, reading, studies
from medassay.review.store.schema import Study
from medassay.review.store.trail import accesses, line_record, trail_of
from medassay.review.training import training_entries
from medassay.statistic.agreement.votes import margin_of_error
from medassay.web.pages.results import MOST_SHOWN, last_reviews_of_study
from medassay.web.request_context import Here, RequestContext
from medassay.web.uploaded import read_upload


def new_study_page(context: Here) -> Response:
    """Show the form of a new study, and how many items a margin of error needs."""
    return context.page(
        "new.html",
        forms=FORMS,
        given=context.request.query_params,
        wrong="",
        size=_size(context.query(_SizeForm)),
    )


class _SizeForm(msgspec.Struct, frozen=True, kw_only=True):
    margin: str = ""
    population: str = ""


def _size(form: _SizeForm) -> dict[str, int | float | None] | None:
    """Return how many items a wished margin of error needs; None where nothing was asked."""
    if not form.margin or not form.population:
        return None
    try:
        margin, population = float(form.margin) / 100, int(form.population)
        n = sample_size(margin, population)
    except (ValueError, StatisticError, OverflowError):
        return {"n": None, "margin": 0.0}
    return {"n": n, "margin": 100 * margin_of_error(n, population)}


class _StudyForm(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    form: str = ""
    title: str = ""
    seed: str = ""
    overlap: str = ""
    due: str = ""
    protocol: str = ""


class _CoordinatorForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the coordinator's page asks for: `do` names it, the others belong to one of them.

    Attributes
    ----------
    number, why : the item that is withdrawn
    email : who is invited
    n, iteration : how many items are sampled, and for which round
    confirm : the study's name, typed before it is closed
    """

    do: str = ""
    number: str = ""
    why: str = ""
    email: str = ""
    n: str = ""
    iteration: str = ""
    confirm: str = ""


def make_study(context: Here) -> Response:
    """Make a study, with who makes it as its coordinator."""
    posted, form = context.posted, context.form(_StudyForm)
    try:
        with context.database.write() as db:
            study = studies.create_study(
                db,
                form.name,
                form.form,
                who=context.who.name,
                title=form.title,
                seed=form.seed[:40] or "0",
                overlap=_whole(form.overlap, "reviewers an item"),
                settings=studies.StudySettings(
                    due=studies.checked_day(form.due), protocol=form.protocol[:20_000]
                ),
            )
            studies.add_entries(db, study, training_entries(study.form), who=context.who.name)
            accounts.grant(db, context.who, study.id, "coordinator", who=context.who.name)
            name = study.id
    except InputError as error:
        return context.page("new.html", 422, forms=FORMS, given=posted, wrong=str(error), size=None)
    return context.to(f"/s/{name}/progress")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise InputError(f"{what}: '{text[:20]}'; expected a whole number")
    return int(text)


def progress_page(context: Here) -> Response:
    """Show how far everybody is, with what a coordinator can do."""
    return _progress(context)


def _progress(
    context: RequestContext, status: int = 200, *, says: str = "", link: str = ""
) -> Response:
    with context.database.read() as db:
        rows = reading.progress_of(db, context.study.id)
        entries = reading.entries_of(db, context.study.id)
        counts = reading.ticket_counts(db, context.study)
        study = db.get_one(Study, context.study.id)
    entry_summaries = summary.standings(last_reviews_of_study(context))
    return context.page(
        "progress.html",
        status,
        study=study,
        rows=rows,
        entries=len(entries),
        complete=sum(entry_summary.reviews >= study.overlap for entry_summary in entry_summaries),
        counts=summary.counts(entry_summaries),
        tickets=counts,
        says=says,
        link=link,
        coordinates="coordinator" in context.roles,
        brings="maintainer" in context.roles,
    )


def act(context: Here) -> Response:
    """Invite, assign, withdraw: whatever the coordinator's page asks for."""
    form, who = context.form(_CoordinatorForm), context.who.name
    do = form.do
    try:
        with context.database.write() as db:
            study = db.get_one(Study, context.study.id)
            if do == "invite":
                studies.refuse_closed(study)
                return_link, says = _invite(context, db, study.id)
            elif do == "assign":
                n_assigned = studies.assign_all(db, study, who=who)
                return_link, says = "", context.say("{n} assignments were made.", n=n_assigned)
            elif do == "withdraw":
                number = _whole(form.number, "item")
                studies.withdraw(db, study, number, form.why, who=who)
                return_link, says = "", context.say("Item {n} was withdrawn.", n=number)
            else:
                raise InputError("nothing was asked for")
    except (InputError, GateError) as error:
        return _progress(context, 409, says=str(error))
    return _progress(context, says=context.say(says), link=return_link)


def _invite(context: RequestContext, db: Session, study: str) -> tuple[str, str]:
    """Return the link for somebody who has no account yet, and what to do.

    Who has one is given the role at once.
    """
    email, who = accounts.checked_email(context.form(_CoordinatorForm).email), context.who.name
    account = accounts.account_of(db, email)
    if account is not None:
        accounts.grant(db, account, study, "reviewer", who=who)
        return "", "The role was given."
    token = links.invite(db, email, who=who, study=study, role="reviewer")
    says = "Send this link to the reviewer. It works once, for seven days, and is shown only now."
    return context.link(f"/invite/{token}"), says


def bring_in(context: Here) -> Response:
    """Take in an uploaded file of items, or a sample of it."""
    upload, form = context.files.get("items"), context.form(_CoordinatorForm)
    try:
        if upload is None:
            raise InputError("choose a file of items first")
        entries = read_upload(
            upload.file.read(),
            form=context.study.form,
            n=form.n,
            seed=context.study.seed,
            iteration=form.iteration,
        )
        with context.database.write() as db:
            study = db.get_one(Study, context.study.id)
            counts = studies.add_entries(db, study, entries, who=context.who.name)
    except (InputError, GateError) as error:
        return _progress(context, 422, says=str(error))
    return _progress(context, says=context.say("{n} items were added.", n=counts))


def close_page(context: Here) -> Response:
    """Ask before a study is closed."""
    return _closing(context)


def _closing(context: RequestContext, status: int = 200) -> Response:
    with context.database.read() as db:
        rows = reading.progress_of(db, context.study.id)
        counts = reading.ticket_counts(db, context.study)
    n_left = sum(row.total - row.done for row in rows)
    return context.page(
        "close.html", status, left=n_left, waiting=counts.get("open", 0), wrong=status != 200
    )


def close_study(context: Here) -> Response:
    """Close a study for good, once its name was typed."""
    if context.form(_CoordinatorForm).confirm.strip() != context.study.id:
        return _closing(context, 422)
    with context.database.write() as db:
        frozen.close(db, db.get_one(Study, context.study.id), who=context.who.name)
    return context.to(f"/s/{context.study.id}/progress")


def log_page(context: Here) -> Response:
    """Show who opened what in a study, and the trail of what was done."""
    with context.database.read() as db:
        access_rows = accesses(db, studies=[context.study.id], most=MOST_SHOWN)
        lines = trail_of(db, [context.study.id], most=MOST_SHOWN)
        names = accounts.names_of(db, {access.account_id for access in access_rows})
    return context.page(
        "log.html", seen=access_rows, lines=[line_record(line) for line in lines], names=names
    )
