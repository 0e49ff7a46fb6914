"""`RequestContext`: one request by somebody, after it was found out who that is, what they may do,
and that the page was ours.

`enter` is the only way in: it reads the session, checks the token of the page and the table of
routes, and logs who opened what.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import jinja2
import msgspec
from fastapi import Depends, HTTPException, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.orm import Session
from starlette.datastructures import UploadFile

from medassay.errors import MedassayError
from medassay.report.pages.html import hardened
from medassay.review.form import Form
from medassay.review.store import accounts, sessions, trail
from medassay.review.store.database import Database
from medassay.review.store.reviews import Work
from medassay.review.store.schema import Account, Study
from medassay.web.settings import TITLE, AppSettings
from medassay.web.texts import LANGUAGES, spoken, translate

SESSION = "__Host-medassay"  # who is signed in
# Who is not: it binds the token of the sign-in page to one browser.
VISITOR = "__Host-medassay-visitor"
LANGUAGE = "__Host-medassay-language"
_STUDY = re.compile("[a-z0-9][a-z0-9-]{0,59}")
_MOST_PARTS = 1000  # fields of a form
# Besides the roles: also who is not signed in; whoever is.
ANYONE, ACCOUNT = "anyone", "account"


F = TypeVar("F")


class Forbidden(MedassayError):
    """Somebody asked for what they may not have; `needed` names the roles that may."""

    def __init__(self, says: str = "", needed: frozenset[str] = frozenset()) -> None:
        super().__init__(says or "This page needs another role.")
        self.needed = needed


class SignInNeeded(MedassayError):
    """Nobody is signed in; what was posted is in the visit, so that it is not lost."""

    def __init__(self, context: "RequestContext") -> None:
        super().__init__("The session has ended: sign in again.")
        self.context = context


class ExpiredToken(MedassayError):
    """The page's token is not of this session: the request may not be the person's own.

    What was posted is in the visit.
    """

    def __init__(self, context: "RequestContext") -> None:
        super().__init__(
            "This page had expired, so nothing was done. What you wrote is below: send it again."
        )
        self.context = context


class ShownEntry(msgspec.Struct, frozen=True):
    """An entry under its form."""

    form: Form
    content: Mapping[str, Any]


class RequestContext(msgspec.Struct, kw_only=True):
    """One request: who, in which study, with which roles, and what was filled in."""

    request: Request
    database: Database
    settings: AppSettings
    language: str
    cookie: str  # of the session, or of the visitor where nobody is signed in
    account: Account | None = None
    study_or_none: Study | None = None
    roles: frozenset[str] = frozenset()
    posted: Mapping[str, str] = msgspec.field(default_factory=dict)
    files: Mapping[str, UploadFile] = msgspec.field(default_factory=dict)
    expired: bool = False

    def form(self, kind: type[F]) -> F:
        """Return what was posted as a record whose fields are texts, "" where one is absent."""
        return msgspec.convert(self.posted, kind)

    def query(self, kind: type[F]) -> F:
        """Return what the address asks for as a record, as `form` does."""
        return msgspec.convert(dict(self.request.query_params), kind)

    @property
    def who(self) -> Account:
        """Return who is signed in."""
        if self.account is None:
            raise SignInNeeded(self)
        return self.account

    @property
    def study(self) -> Study:
        """Return the study of the address."""
        if self.study_or_none is None:
            raise Forbidden
        return self.study_or_none

    def plays(self, *roles: str) -> bool:
        """Return whether one of these roles is the visitor's, in the study of the address if there
        is one.
        """
        return not self.roles.isdisjoint(roles)

    @property
    def csrf(self) -> str:
        """Return the token that pages of this session carry."""
        return token_of(self.cookie)

    def say(self, text: str, **values: object) -> str:
        """Return a text of the app in the visitor's language."""
        return translate(self.language, text, **values)

    def url(self, path: str) -> str:
        """Return the address of a page on this server."""
        return f"{self.request.scope.get('root_path', '')}{path}"

    def link(self, path: str) -> str:
        """Return the whole address of a page, as it is sent to somebody."""
        request = self.request.url
        return f"{self.settings.origin or f'{request.scheme}://{request.netloc}'}{self.url(path)}"

    def to(self, path: str) -> RedirectResponse:
        """Send the browser to another page of this server, by GET."""
        return RedirectResponse(self.url(path), status_code=303)

    def label_of(self, entry: ShownEntry | Work, name: str) -> str:
        """Return what an aspect is called beside its value: its fact or criterion, else its
        name.
        """
        aspect = entry.form.aspect(entry.content, name)
        return self.say(name) if aspect is None or not aspect.text else aspect.text

    def words_of(self, entry: ShownEntry | Work, name: str, value: Any) -> str:
        """Return a value of an aspect in words; scores as their numbers."""
        aspect = entry.form.aspect(entry.content, name)
        if value is None:
            return self.say("cannot judge")
        if aspect is None or aspect.level == "ordinal":
            return str(value)
        return self.say(dict(aspect.values).get(value, str(value)))

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        text = (
            templates()
            .get_template(template)
            .render(
                visit=self,
                t=self.say,
                url=self.url,
                label_of=self.label_of,
                words_of=self.words_of,
                csrf=self.csrf,
                title=TITLE,
                languages=LANGUAGES,
                path=self.request.url.path,
                **values,
            )
        )
        response = HTMLResponse(text, status_code=status)
        if self.account is None:
            keep(response, VISITOR, self.cookie)
        return response


@lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    """Return the environment of the app's templates."""
    return hardened(jinja2.PackageLoader("medassay.web", "templates"))


def token_of(cookie: str) -> str:
    """Return the token of the pages that a cookie's owner sees."""
    return hmac.new(cookie.encode("utf-8", "replace"), b"page", hashlib.sha256).hexdigest()


def keep(response: Response, name: str, value: str) -> None:
    """Set a cookie that only this host sees, only over a safe connection, and no script."""
    response.set_cookie(name, value, path="/", secure=True, httponly=True, samesite="lax")


def drop(response: Response, name: str) -> None:
    """Take a cookie back."""
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")


def address_of(request: Request) -> str:
    """Return the address that a request comes from, for the slowing of failed sign-ins."""
    return request.client.host if request.client else ""


Posted = tuple[Mapping[str, str], Mapping[str, UploadFile]]


async def read_posted(request: Request) -> Posted:
    """Return the texts and the files of a posted form."""
    kind = request.headers.get("content-type", "")
    if request.method != "POST" or not kind.startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        return {}, {}
    try:
        form = await request.form(max_files=1, max_fields=_MOST_PARTS)
    except (UnicodeError, LookupError):
        raise HTTPException(400) from None
    texts = {_text(name): _text(value) for name, value in form.items() if isinstance(value, str)}
    files = {name: value for name, value in form.items() if isinstance(value, UploadFile)}
    return texts, files


def _text(value: str) -> str:
    """Return a posted text without what no database takes: NUL, and halves of characters."""
    return value.replace("\x00", "").encode("utf-8", "ignore").decode()


def enter(request: Request, posted: Annotated[Posted, Depends(read_posted)]) -> RequestContext:
    """Return the visit that a request is, or refuse it.

    What is opened or refused in a study is logged.

    Raises
    ------
    SignInNeeded
        When nobody is signed in.
    Forbidden
        When none of the visitor's roles may do this.
    Expired
        When the page's token is not of this session.
    """
    rule = request.app.state.rules[request.scope["route"].name]
    database: Database = request.app.state.database
    if ANYONE in rule.may:
        with database.read() as db:
            context = read_visit(request, db, posted)
    else:  # who it is and that they came: one transaction
        with database.write() as db:
            context = read_visit(request, db, posted)
            if context.account is not None:
                request.state.access = _log(
                    context, db, allowed=not rule.may.isdisjoint(context.roles)
                )
    if request.method not in ("GET", "HEAD"):
        token = context.posted.get("csrf") or request.headers.get("x-csrf-token", "")
        context.expired = not hmac.compare_digest(
            token.encode("utf-8", "replace"), context.csrf.encode()
        )
    if ANYONE not in rule.may:
        if context.account is None:
            raise SignInNeeded(context)
        if rule.may.isdisjoint(context.roles):
            raise Forbidden(needed=rule.may)
    if context.expired and not rule.keeps_input:
        raise ExpiredToken(context)
    return context


def read_visit(request: Request, db: Session, posted: Posted = ({}, {})) -> RequestContext:
    """Return who makes a request, in which study and in which roles."""
    cookie = request.cookies.get(SESSION, "")
    name = request.path_params.get("study", "")
    account = sessions.session_of(db, cookie) if cookie else None
    study = None
    roles: set[str] = set()
    if account is not None:
        roles = {ACCOUNT}
        roles |= {accounts.ADMIN} if account.admin else set()
        roles |= {accounts.CREATOR} if account.may_create else set()
        if _STUDY.fullmatch(name):
            study = db.get(Study, name)
            roles |= accounts.roles_of(db, account.id, name)
        elif not name:
            roles |= accounts.anywhere(db, account.id)
    else:
        cookie = request.cookies.get(VISITOR) or secrets.token_urlsafe(24)
    language = request.cookies.get(LANGUAGE, "") or (account.language if account else "")
    return RequestContext(
        request=request,
        database=request.app.state.database,
        settings=request.app.state.settings,
        language=spoken(language, request.headers.get("accept-language", "")),
        cookie=cookie,
        account=account,
        study_or_none=study,
        roles=frozenset(roles),
        posted=posted[0],
        files=posted[1],
    )


def _log(context: RequestContext, db: Session, *, allowed: bool) -> int:
    """Note that somebody came, and return the number of the line: what is refused later is marked
    there (`mark_refused`).
    """
    path = context.request.scope["path"][:300]
    facts = {
        "account_id": context.who.id,
        "study_id": None if context.study_or_none is None else context.study_or_none.id,
        "method": context.request.method,
        "path": "".join(c if c.isascii() and c.isprintable() else "?" for c in path),
    }
    sessions.touch(db, context.cookie)
    return trail.log_access(db, facts, allowed=allowed)


def mark_refused(request: Request) -> None:
    """Note in the access log that what somebody came for was refused after all."""
    line = getattr(request.state, "access", None)
    if line is not None:
        with request.app.state.database.write() as db:
            trail.mark_refused(db, line)


Here = Annotated[RequestContext, Depends(enter)]
Number = Annotated[int, Path(ge=1, le=1_000_000)]
