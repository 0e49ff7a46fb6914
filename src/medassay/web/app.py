"""`build_app`: the routes, the guard in front of them, and what errors look like."""

import sys
import traceback
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError,
)
from starlette.exceptions import HTTPException

from medassay import errors
from medassay.errors import GateError, InputError, MedassayError, UnavailableError
from medassay.report.pages.html import asset
from medassay.review.store.database import Database
from medassay.review.store.reviews import ChangedElsewhere, Incomplete
from medassay.web.api import Refusal
from medassay.web.guard import Guard
from medassay.web.pages.sign_in import sent_again, show_sign_in
from medassay.web.request_context import (
    ExpiredToken,
    Forbidden,
    RequestContext,
    SignInNeeded,
    mark_refused,
    read_visit,
)
from medassay.web.routes import ROUTES
from medassay.web.settings import TITLE, AppSettings

_STATUS: dict[type[MedassayError], int] = {
    ExpiredToken: 403,
    Forbidden: 403,
    GateError: 409,
    ChangedElsewhere: 409,
    Incomplete: 422,
    InputError: 404,
    errors.IntegrityError: 500,
    UnavailableError: 500,
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": says, "model": Refusal}
    for code, says in (
        (401, "Nobody is signed in."),
        (403, "The role is missing, or the token of the page."),
        (404, "There is no such study or item."),
        (409, "Changed elsewhere, or closed meanwhile."),
        (422, "Something is missing or not as described here."),
        (503, "Nothing can be stored now; try again."),
    )
}


def guarded_app(database: Database, settings: AppSettings) -> Guard:
    """Return the review app behind its guard: what is served."""
    app = build_app(database, settings)
    return Guard(app, settings.origin, settings.root_path)


def build_app(database: Database, settings: AppSettings | None = None) -> FastAPI:
    """Return the review app on a database, without the guard that stands in front of it."""
    chosen = settings or AppSettings()
    app = FastAPI(
        title=TITLE,
        version="1",
        redirect_slashes=False,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.database, app.state.settings = database, chosen
    app.state.rules = {route.name: route for route in ROUTES}
    for route in ROUTES:
        is_json = route.path.startswith("/api/") or route.path == "/healthz"
        app.add_api_route(
            route.path,
            route.answer,
            methods=[route.method],
            name=route.name,
            status_code=route.status,
            include_in_schema=is_json,
            response_model=route.answer.__annotations__["return"] if is_json else None,
            responses=_REFUSALS if is_json else None,
        )
    app.add_route("/static/base.css", _base_style)
    static = StaticFiles(directory=str(files("medassay.web") / "static"))
    app.mount("/static", static, name="static")
    app.add_exception_handler(MedassayError, _error_response)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _not_found)
    app.add_exception_handler(IntegrityError, _at_once)
    for kind in (OperationalError, InterfaceError, TimeoutError):
        app.add_exception_handler(kind, _not_stored)
    app.add_exception_handler(Exception, _broken)
    return app


def _base_style(_: Request) -> Response:
    """Return what the style of the app shares with boards and viewer."""
    return Response(asset("base.css"), media_type="text/css")


def _is_json(request: Request) -> bool:
    return _path(request).startswith("/api/")


def _path(request: Request) -> str:
    """Return the path below where a proxy has put the app."""
    path: str = request.scope.get("path", "")
    return path.removeprefix(request.scope.get("root_path", ""))


def _error_response(request: Request, error: Exception) -> Response:
    """Return what was wrong as a page or as JSON, under the status that fits."""
    if isinstance(error, SignInNeeded):
        return _to_sign_in(request, error.context)
    if isinstance(error, Forbidden | ExpiredToken):
        mark_refused(request)
    if isinstance(error, ExpiredToken) and not _is_json(request):
        return error.context.page(
            "resend.html", 403, says=str(error), sent=sent_again(error.context.posted)
        )
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    if status == 404 and request.method not in ("GET", "HEAD"):
        status = 422 if _is_json(request) else 404
    if not _is_json(request):
        return _page(request, status, str(error), getattr(error, "needed", ()))
    document: dict[str, Any] = {"message": str(error)}
    if isinstance(error, Incomplete):
        document["problems"] = [
            {"field": problem.field, "says": problem.says.format(**problem.values)}
            for problem in error.problems
        ]
    if isinstance(error, ChangedElsewhere):
        document |= {"theirs": error.theirs, "version": error.version}
    return JSONResponse({"error": document}, status_code=status)


def _to_sign_in(request: Request, context: RequestContext) -> Response:
    if _is_json(request):
        says = "The session has ended: sign in again."
        return JSONResponse({"error": {"message": says}}, status_code=401)
    path = _path(request)
    if request.method == "GET":
        return context.to(f"/login?next={path}")
    says = context.say("Your session has ended. Sign in: what you wrote is kept.")
    return show_sign_in(context, 401, says=says, next_page=path, draft=context.posted)


def _page(request: Request, status: int, says: str, needed: Any = ()) -> Response:
    with request.app.state.database.read() as db:
        context = read_visit(request, db)
    return context.page("error.html", status, code=status, says=says, needed=sorted(needed))


def _not_valid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        return _broken(request, error)
    if not _is_json(request):
        return _page(request, 404, "There is no such page.")
    problems = [
        {"field": ".".join(map(str, error_entry["loc"])), "says": error_entry["msg"]}
        for error_entry in error.errors()
    ]
    message = "the request is not as the OpenAPI document describes it"
    return JSONResponse({"error": {"message": message, "problems": problems}}, status_code=422)


def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if _is_json(request):
        says = {404: "no such endpoint", 405: "not by this method"}.get(status, "refused")
        return JSONResponse({"error": {"message": says}}, status_code=status, headers=headers)
    says = {404: "There is no such page.", 405: "Not by this method."}.get(status, "Refused.")
    response = _page(request, status, says)
    response.headers.update(headers)
    return response


def _at_once(request: Request, error: Exception) -> Response:
    """Say that two did the same at the very same moment; one of them has it."""
    says = "Somebody did the same at the same moment: go back, look, and try again."
    if _is_json(request):
        return JSONResponse({"error": {"message": says}}, status_code=409)
    return _page(request, 409, says)


def _not_stored(request: Request, error: Exception) -> Response:
    """Say that the database takes nothing now: a full disk, a server that restarts.

    Scripts on the page try again by themselves.
    """
    sys.stderr.write(f"database: {' '.join(str(error).split())[:300]}\n")
    if _is_json(request):
        says = "the server cannot store anything now; try again"
        return JSONResponse({"error": {"message": says}}, status_code=503)
    says = (
        "The server cannot store anything now, nothing was changed: go back, your text is in the"
        " form, and send it again."
    )
    try:
        return _page(request, 503, says)
    except SQLAlchemyError:  # not even who it is can be read
        return PlainTextResponse(says, 503)


def _broken(request: Request, error: Exception) -> Response:
    """Say that something of ours broke; the trace goes to the server's log, not to the page."""
    sys.stderr.write("".join(traceback.format_exception(error)))
    if _is_json(request):
        says = "something broke on the server; nothing of yours was lost"
        return JSONResponse({"error": {"message": says}}, status_code=500)
    says = "Something broke on the server. Go back and try again."
    try:
        return _page(request, 500, says)
    except SQLAlchemyError:
        return PlainTextResponse(says, 500)
