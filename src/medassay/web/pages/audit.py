"""The auditor's pages: who opened what, the chained trail, and the window onto private items."""

from pathlib import Path
from typing import Any

import msgspec
from fastapi.responses import Response

from medassay.errors import InputError, IntegrityError, MedassayError
from medassay.review.store import accounts, trail
from medassay.storage.jsonl import read_as
from medassay.web.request_context import Here, RequestContext

_MAX_LINES = 500


def audit_page(context: Here) -> Response:
    """Show the trail, whether it is whole, and the access log: all of it to admins, that of their
    studies to auditors.
    """
    with context.database.read() as db:
        try:
            head, broken = trail.check_trail(db), ""
        except IntegrityError as error:
            head, broken = "", str(error)
        is_admin = accounts.ADMIN in context.roles
        mine = None if is_admin else accounts.studies_with(db, context.who.id, "auditor")
        lines = trail.trail_of(db, mine, most=_MAX_LINES)
        accesses = trail.accesses(db, studies=mine, most=_MAX_LINES)
        names = accounts.names_of(db, {access.account_id for access in accesses})
    return context.page(
        "audit.html",
        head=head,
        broken=broken,
        lines=[trail.line_record(line) for line in lines],
        seen=accesses,
        names=names,
    )


def window_page(context: Here) -> Response:
    """List the private items of the run that a study is of."""
    return _window(context)


class _WindowForm(msgspec.Struct, frozen=True, kw_only=True):
    item: str = ""


class _ItemLine(msgspec.Struct):
    id: str
    kind: str = "public"


def _window(context: RequestContext, status: int = 200, **more: Any) -> Response:
    source = context.study.chosen.source
    run = source.private_run
    names: list[str] = []
    if run and (Path(run) / "items.jsonl").is_file():
        items = read_as(Path(run) / "items.jsonl", _ItemLine)
        names = [item.id for item in items if item.kind == "synthetic"]
    values = {"opened": [], "item": "", "says": "", "public": bool(source.publication)}
    return context.page(
        "window.html", status, names=names, run=Path(run).name, **{**values, **more}
    )


def open_window(context: Here) -> Response:
    """Show a private item to an auditor: the view is in the trail before the text is on the
    page.
    """
    from medassay.publishing.opening import open_item
    from medassay.storage.run import open_run

    source = context.study.chosen.source
    if not source.private_run:
        raise InputError("this study is not of a run with private items")
    item = context.form(_WindowForm).item[:300]
    with context.database.write() as db:
        trail.note(
            db, "private item viewed", who=context.who.name, study=context.study.id, item=item
        )
    try:
        opened = open_item(
            open_run(Path(source.private_run)),
            item,
            publication=Path(source.publication) if source.publication else None,
        )
    except MedassayError as error:
        return _window(context, 409, item=item, says=str(error))
    return _window(context, item=item, opened=[opened_item.to_dict() for opened_item in opened])
