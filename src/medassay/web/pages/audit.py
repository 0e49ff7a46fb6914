"""The auditor's pages: who opened what, the chained trail, and the window onto private items."""

from pathlib import Path
from typing import Any

from fastapi.responses import Response

from medassay.errors import InputError, IntegrityError, MedassayError
from medassay.review.store import accounts, trail
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


def _source(context: RequestContext) -> dict[str, Any]:
    source = context.study.settings.get("source", {})
    if not source.get("private_run"):
        raise InputError("this study is not of a run with private items")
    return dict(source)


def _window(context: RequestContext, status: int = 200, **more: Any) -> Response:
    from medassay.storage.jsonl import read_jsonl

    source = context.study.settings.get("source", {})
    run = source.get("private_run", "")
    names: list[str] = []
    if run and (Path(run) / "items.jsonl").is_file():
        names = [
            record["id"]
            for record in read_jsonl(Path(run) / "items.jsonl")
            if record.get("kind") == "synthetic"
        ]
    values = {"opened": [], "item": "", "says": "", "public": bool(source.get("publication"))}
    return context.page(
        "window.html", status, names=names, run=Path(run).name, **{**values, **more}
    )


def open_window(context: Here) -> Response:
    """Show a private item to an auditor: the view is in the trail before the text is on the
    page.
    """
    from medassay.publishing.opening import open_item
    from medassay.storage.run import open_run

    source = _source(context)
    item = context.posted.get("item", "")[:300]
    where = source.get("publication") or None
    with context.database.write() as db:
        trail.note(
            db, "private item viewed", who=context.who.name, study=context.study.id, item=item
        )
    try:
        opened = open_item(
            open_run(Path(source["private_run"])),
            item,
            publication=None if where is None else Path(where),
        )
    except MedassayError as error:
        return _window(context, 409, item=item, says=str(error))
    return _window(context, item=item, opened=[opened_item.to_dict() for opened_item in opened])
