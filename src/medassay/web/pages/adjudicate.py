"""Settling feedback: disagreements for adjudicators, the final check for a second person."""

import msgspec
from fastapi.responses import Response
from sqlalchemy.orm import Session

from medassay.errors import GateError, InputError
from medassay.review.agreement import differing
from medassay.review.form import FORMS
from medassay.review.sampling import draw_key
from medassay.review.store import reading, studies, tickets
from medassay.review.store.schema import Entry, Study
from medassay.web.pages.reviewer import picture_of
from medassay.web.request_context import Forbidden, Here, Number, RequestContext, ShownEntry

_CHECKS = ("confirm", "return")  # what a second person may do


def tickets_page(context: Here) -> Response:
    """List the tickets of a study: what waits, and what became of the others."""
    _refuse_early_maintainer(context)
    with context.database.read() as db:
        rows = reading.tickets_of(db, context.study.id)
        entries = reading.entries_of(db, context.study.id)
    order = ("open", "experts", "decided", "checked", "declined", "released")
    ranked = sorted(rows, key=lambda row: (order.index(row[0].state), row[1].number))
    return context.page("tickets.html", rows=ranked, entries=entries)


def _refuse_early_maintainer(context: RequestContext) -> None:
    """Refuse maintainers while a study is open: they read no reviews before."""
    if "adjudicator" not in context.roles and context.study.closed_at is None:
        raise Forbidden("The study is open: maintainers read its reviews after closing.")


def ticket_page(context: Here, n: Number) -> Response:
    """Show one item with its reviews under letters, and what can be decided."""
    _refuse_early_maintainer(context)
    return _show(context, n)


def _show(context: RequestContext, n: int, status: int = 200, *, says: str = "") -> Response:
    with context.database.read() as db:
        study = db.get_one(Study, context.study.id)
        entry = studies.entry_at(db, study.id, n)
        latest = tickets.latest_of(db, entry)
        ticket = tickets.ticket_at(db, entry)
        steps = [] if ticket is None else tickets.steps_of(db, ticket)
        decision = None if ticket is None else tickets.last_decision(db, ticket)
    form = FORMS[study.form]
    # Letters in an order of their own for every item: nobody learns to know who is A.
    latest.sort(key=lambda show: draw_key(study.seed, "letter", entry.id, show.reviewer))
    return context.page(
        "ticket.html",
        status,
        study=study,
        entry=entry,
        content=entry.content,
        shown=ShownEntry(form, entry.content),
        form=form,
        aspects=form.aspects(entry.content),
        given=[(letter_of(at), review) for at, review in enumerate(latest)],
        differ=differing(form.all_aspects(entry.content), latest),
        state="" if ticket is None else ticket.state,
        steps=steps,
        decision=decision,
        says=says,
        posted=context.posted,
        verdicts=tickets.VERDICTS.get(study.form, ()),
        settled=ticket is not None and ticket.state in ("checked", "released"),
        decides="adjudicator" in context.roles,
        own=decision is not None and decision.account_id == context.who.id,
        most=tickets.MOST_EXPERTS,
    )


def letter_of(place: int) -> str:
    """Return what a reviewer is called on one page.

    Examples
    --------
    >>> letter_of(0), letter_of(25), letter_of(26)
    ('A', 'Z', 'AA')
    """
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    first, last = divmod(place, len(alphabet))
    return (alphabet[first - 1] if first else "") + alphabet[last]


class _SettleForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the page asks for: `do` names it; `decision` is the number of the one that is checked,
    `experts` how many more reviewers are asked.
    """

    do: str = ""
    reason: str = ""
    decision: str = ""
    experts: str = ""


def settle(context: Here, n: Number) -> Response:
    """Decline, ask more reviewers, decide, or check: what the page asks for."""
    _refuse_early_maintainer(context)
    if not context.plays("adjudicator") and context.form(_SettleForm).do not in _CHECKS:
        raise Forbidden("Adjudicators decide; maintainers only check what was decided.")
    try:
        with context.database.write() as db:
            study = db.get_one(Study, context.study.id)
            entry = studies.entry_at(db, study.id, n)
            _act(context, db, study, entry)
    except (InputError, GateError) as error:
        return _show(context, n, 422, says=str(error))
    return context.to(f"/s/{context.study.id}/adjudicate/{n}")


def _act(context: RequestContext, db: Session, study: Study, entry: Entry) -> None:
    form, by = context.form(_SettleForm), context.who
    do = form.do
    if do in _CHECKS:
        read = form.decision
        tickets.check(
            db,
            study,
            entry,
            by,
            decision=int(read) if read.isascii() and read.isdigit() and len(read) < 10 else 0,
            confirmed=do == "confirm",
            reason=form.reason,
        )
    elif do == "decline":
        tickets.decline(db, study, entry, form.reason, by)
    elif do == "experts":
        if form.experts not in map(str, range(1, tickets.MOST_EXPERTS + 1)):
            raise InputError(f"ask 1 to {tickets.MOST_EXPERTS} more reviewers")
        more_reviewers = studies.more_reviewers(db, study, entry, int(form.experts))
        tickets.ask_experts(db, study, entry, more_reviewers, by)
    elif do == "decide":
        tickets.decide(db, study, entry, context.posted, by)
    else:
        raise InputError("nothing was asked for")


def entry_picture(context: Here, n: Number) -> Response:
    """Return the decision graph of an entry as a picture, for those who settle or read."""
    with context.database.read() as db:
        return picture_of(studies.entry_at(db, context.study.id, n).content)
