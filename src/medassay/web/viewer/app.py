"""`guarded_viewer`: the routes of the viewer, what stands in front of them, and what errors look
like.
"""

import sqlite3
import sys
import traceback
from importlib.resources import files

import msgspec
from jinja2 import UndefinedError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from medassay.errors import InputError, IntegrityError, MedassayError, UsageError
from medassay.report.pages.html import asset
from medassay.viewer.index import index_folder
from medassay.viewer.place import ViewedPlace
from medassay.web.guard import Guard
from medassay.web.viewer import pages
from medassay.web.viewer.access import LinkGate

_STATUS: dict[type[MedassayError], int] = {UsageError: 400, InputError: 404, IntegrityError: 500}
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_STATIC = ("view.css", "view.js")

ROUTES = (
    Route("/", pages.runs, name="runs"),
    Route("/keys", pages.keys, name="keys"),
    Route("/run/{run}/", pages.run, name="run"),
    Route("/run/{run}/trials", pages.trials, name="trials"),
    Route("/run/{run}/trial", pages.trial, name="trial"),
    Route("/run/{run}/reply", pages.reply, name="reply"),
    Route("/run/{run}/record", pages.record, name="record"),
    Route("/run/{run}/proof", pages.proof, name="proof"),
    Route("/run/{run}/compare", pages.compare, name="compare"),
    Route("/run/{run}/failures", pages.failures, name="failures"),
)


def guarded_viewer(place: ViewedPlace, address: str) -> tuple[Guard, str]:
    """Return the viewer behind its guards, and the token of the link that opens it.

    Parameters
    ----------
    address : at which it is reached, without a path
    """
    gate = LinkGate(build_viewer(place), address)
    return Guard(gate, address), gate.token


def build_viewer(place: ViewedPlace) -> Starlette:
    """Return the viewer, without what stands in front of it."""
    app = Starlette(
        routes=[*ROUTES, Route("/static/{name}", _static, name="static")],
        exception_handlers={
            MedassayError: _told,
            HTTPException: _not_found,
            sqlite3.Error: _index_failed,
            OSError: _not_readable,
            **dict.fromkeys((msgspec.ValidationError, UndefinedError), _damaged),
            Exception: _broken,
        },
    )
    app.state.place = place
    return app


def _static(request: Request) -> Response:
    """Return a style sheet or script: those of boards, and the viewer's own."""
    name = request.path_params["name"]
    ending = _TYPES.get(name.rpartition(".")[2])
    if name in ("style.css", "script.js"):
        data = asset(name)
    elif name in _STATIC and ending:
        data = (files("medassay.web.viewer") / "static" / name).read_bytes()
    elif name == "icon.svg":
        data = (files("medassay.web") / "static" / name).read_bytes()
    else:
        raise HTTPException(404)
    return Response(data, media_type=ending, headers={"cache-control": "no-cache"})


def _told(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return pages.error_page(request, status, str(error))


def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return pages.error_page(request, status, "There is no such page.")


def _index_failed(request: Request, error: Exception) -> Response:
    message = f"The index in the cache cannot be used now ({error}). Reload the page."
    return pages.error_page(request, 503, message)


def _not_readable(request: Request, error: Exception) -> Response:
    """Say which file cannot be read or written, and what may be done."""
    name = getattr(error, "filename", None) or "a file"
    message = f"{name}: {getattr(error, 'strerror', None) or error}."
    if str(index_folder().parent) in str(name):
        message += " Give the cache another place: XDG_CACHE_HOME."
    return pages.error_page(request, 500, message)


def _damaged(request: Request, error: Exception) -> Response:
    message = f"A record of this run is damaged, or of another version: {error}."
    return pages.error_page(request, 500, message)


def _broken(request: Request, error: Exception) -> Response:
    """Say that something of ours broke; the trace goes to the terminal, not to the page."""
    sys.stderr.write("".join(traceback.format_exception(error)))
    return pages.error_page(request, 500, "Something broke. The terminal says what.")
