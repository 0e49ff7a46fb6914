"""The way in: sign in and out, accept an invitation, one's own studies and settings, the list of
keys.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated

import msgspec
from fastapi import Path
from fastapi.responses import Response
from msgspec.structs import replace

from medassay.errors import MedassayError
from medassay.review.store import accounts, links, reviews, sessions, studies
from medassay.review.store.schema import Account, Invitation, Study
from medassay.review.store.trail import accesses
from medassay.web.request_context import (
    LANGUAGE,
    SESSION,
    VISITOR,
    Here,
    RequestContext,
    address_of,
    drop,
    keep,
)
from medassay.web.texts import LANGUAGES

_ITEM = re.compile(r"/s/(?P<study>[a-z0-9-]{1,60})/i/(?P<number>[0-9]{1,6})")
Token = Annotated[str, Path(max_length=100)]


class _SignInForm(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is the page to go on to, `kept` what somebody had written when their session ended."""

    email: str = ""
    password: str = ""
    next: str = ""
    kept: str = ""


class _PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is the page to go on to; `saved` is 1 once settings were saved."""

    next: str = ""
    saved: str = ""


class _SettingsForm(msgspec.Struct, frozen=True, kw_only=True):
    keys: str = ""
    language: str = ""
    qualification: str = ""
    next: str = ""


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a form of an item says of itself: its version, and whose it was."""

    version: str = ""
    owner: str | None = None


def sign_in_page(context: Here) -> Response:
    """Show the sign-in."""
    next_page = context.query(_PageQuery).next
    if context.account is not None:
        return context.to(own_page(next_page))
    return show_sign_in(context, next_page=next_page)


def show_sign_in(
    context: RequestContext,
    status: int = 200,
    *,
    says: str = "",
    next_page: str = "",
    draft: Mapping[str, str] | None = None,
) -> Response:
    """Return the sign-in page; `draft` is what was posted when the session had ended."""
    held = sent_again(draft or {})
    return context.page(
        "login.html",
        status,
        says=says,
        next_page=own_page(next_page),
        email=context.form(_SignInForm).email,
        kept=json.dumps(held) if held else "",
    )


def sent_again(posted: Mapping[str, str]) -> dict[str, str]:
    """Return what was posted, to be sent again: no tokens, no passwords."""
    return {k: v for k, v in posted.items() if k not in ("csrf", "password", "kept", "next")}


def own_page(path: str) -> str:
    """Return a path of this server, `/` for anything else."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe and "\\" not in path else "/"


def sign_in(context: Here) -> Response:
    """Sign somebody in, or say that it did not work; too many failures have to wait."""
    form, address = context.form(_SignInForm), address_of(context.request)
    email, next_page = form.email, form.next
    draft = _held_fields(form.kept)

    def again(status: int, says: str) -> Response:
        return show_sign_in(context, status, says=says, next_page=next_page, draft=draft)

    if context.expired:
        says = "This page had expired. Sign in again; what you wrote is kept."
        return again(403, context.say(says))
    with context.database.write() as db:
        wait, tries = sessions.begin_try(db, email, address)
    if wait > 0:
        says = context.say("Too many tries: wait {seconds} seconds.", seconds=wait)
        response = again(429, says)
        response.headers["retry-after"] = str(wait)
        return response
    # Looking at a password takes its time on purpose: no transaction waits for it.
    with context.database.read() as db:
        account = accounts.account_of(db, email.strip().lower()) if email.isprintable() else None
    if not sessions.is_password(account, form.password) or account is None:
        return again(401, context.say("E-mail or password is wrong."))
    with context.database.write() as db:
        if context.account is not None:
            sessions.sign_out(db, context.cookie)  # somebody else at the same browser
        token = sessions.end_try(db, account, tries, email)
    if draft and msgspec.convert(draft, _Draft).owner in (None, str(account.id)):
        response = _send_again(context, account, token, own_page(next_page), draft)
        return _with_session(response, token)
    return _with_session(context.to(own_page(next_page)), token)


def _send_again(
    context: RequestContext, account: Account, token: str, path: str, draft: Mapping[str, str]
) -> Response:
    """Return a page with what somebody had written when their session ended: as a draft of an item,
    else to be sent again.
    """
    mine = replace(context, account=account, cookie=token)
    place = _ITEM.fullmatch(path)
    if place is not None and _keep_draft(account, context, place, draft):
        return context.to(path)
    says = "Your session had ended, so nothing was done. What you wrote is below: send it again."
    return mine.page("resend.html", says=says, sent=sent_again(draft), target=context.url(path))


def _with_session(response: Response, token: str) -> Response:
    keep(response, SESSION, token)
    drop(response, VISITOR)
    return response


def _held_fields(text: str) -> dict[str, str]:
    """Return what a page held while its session had ended.

    Nothing where that is no object of texts.
    """
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {str(k): v for k, v in value.items() if isinstance(v, str)}


def _keep_draft(
    account: Account, context: RequestContext, place: re.Match[str], draft: Mapping[str, str]
) -> bool:
    """Save what somebody had filled in as the draft of that item; whether that could be done."""
    version = msgspec.convert(draft, _Draft).version
    name, number = place.group("study", "number")
    try:
        with context.database.write() as db:
            if db.get(Study, name) is None:
                return False
            study = studies.held(db, name)
            studies.refuse_closed(study)
            work = reviews.work_at(db, study, account.id, int(number), lock=True)
            names = work.form.known(work.content)
            fields = {key: text for key, text in draft.items() if key in names}
            is_number = version.isascii() and version.isdigit() and len(version) < 10
            reviews.save_draft(work, db, fields, int(version) if is_number else 0)
    except MedassayError:
        # Changed elsewhere, closed, or not theirs any more: it is shown to be sent again.
        return False
    return True


def sign_out(context: Here) -> Response:
    """End the session; the page that follows clears what the browser had kept."""
    with context.database.write() as db:
        sessions.sign_out(db, context.cookie)
    response = context.to("/login?out=1")
    drop(response, SESSION)
    response.headers["clear-site-data"] = '"cache", "storage"'
    return response


def invitation_page(context: Here, token: Token) -> Response:
    """Show what an invitation asks for."""
    with context.database.read() as db:
        invitation = links.invitation(db, token)
        if invitation is None:
            return context.page("ended.html", 404)
        account = accounts.account_of(db, invitation.email)
    return _show_invitation(context, invitation, account=account)


def _show_invitation(
    context: RequestContext,
    invitation: Invitation,
    *,
    account: Account | None,
    wrong: accounts.ProfileError | None = None,
    status: int = 200,
) -> Response:
    return context.page(
        "invite.html",
        status,
        invitation=invitation,
        known=account is not None,
        mine=account is not None
        and context.account is not None
        and account.id == context.account.id,
        reviewer=invitation.role == "reviewer",
        qualifications=accounts.QUALIFICATIONS,
        agreement=accounts.AGREEMENT,
        given=context.posted,
        wrong=wrong,
    )


def accept_invitation(context: Here, token: Token) -> Response:
    """Make the account of an invitation and sign it in."""
    profile = _profile(context)
    with context.database.read() as db:
        invitation = links.invitation(db, token)
        if invitation is None:
            return context.page("ended.html", 404)
        own_account = accounts.account_of(db, invitation.email)
    try:
        if context.expired:
            raise accounts.ProfileError("", "This page had expired: send it again.")
        with context.database.write() as db:
            own_id = None if context.account is None else context.account.id
            account = links.accept(db, token, profile, signed_in=own_id)
            cookie = sessions.open_session(db, account)
    except accounts.ProfileError as error:
        return _show_invitation(context, invitation, account=own_account, wrong=error, status=422)
    path = "/" if invitation.study is None else f"/s/{invitation.study}/"
    return _with_session(context.to(path), cookie)


def _profile(context: RequestContext) -> accounts.Profile:
    posted = {"name": "", "password": "", "years": "", "agreed": "", **context.posted}
    years, agreed = posted["years"].strip(), posted["agreed"] == "yes"
    return msgspec.convert({**posted, "years": years, "agreed": agreed}, accounts.Profile)


def home(context: Here) -> Response:
    """Show the studies in which somebody has a role, with what is left to do."""
    with context.database.read() as db:
        rows = [
            {
                "study": study,
                "roles": sorted(roles),
                "queue": (
                    reviews.queue_of(db, study.id, context.who.id) if "reviewer" in roles else None
                ),
            }
            for study, roles in studies.studies_of(db, context.who)
        ]
    return context.page("home.html", rows=rows)


def settings_page(context: Here) -> Response:
    """Show one's own settings, and what the access log holds of oneself."""
    return _show_settings(context)


def _show_settings(
    context: RequestContext, *, wrong: accounts.ProfileError | None = None, status: int = 200
) -> Response:
    with context.database.read() as db:
        access_rows = accesses(db, account=context.who.id, most=50)
    return context.page(
        "settings.html",
        status,
        seen=access_rows,
        qualifications=accounts.QUALIFICATIONS,
        agreement=accounts.AGREEMENT,
        wrong=wrong,
        saved=context.query(_PageQuery).saved == "1",
    )


def save_settings(context: Here) -> Response:
    """Keep the language, the keys, and what a reviewer says of themselves."""
    form = context.form(_SettingsForm)
    with context.database.write() as db:
        account = db.get_one(Account, context.who.id)
        account.keys_on = form.keys == "on"
        account.language = form.language if form.language in LANGUAGES else ""
        db.flush()
    if form.qualification:
        profile = _profile(context)
        try:
            with context.database.write() as db:
                accounts.qualify(db, context.who.id, profile)
        except accounts.ProfileError as error:
            return _show_settings(context, wrong=error, status=422)
    response = context.to(own_page(form.next) if form.next else "/me?saved=1")
    if form.language in LANGUAGES:
        keep(response, LANGUAGE, form.language)
    return response


def speak(context: Here, language: Annotated[str, Path(max_length=5)]) -> Response:
    """Change the language of the pages, and go back to where one was."""
    response = context.to(own_page(context.query(_PageQuery).next))
    if language in LANGUAGES:
        keep(response, LANGUAGE, language)
    return response


def keys_page(context: Here) -> Response:
    """Show the keys."""
    return context.page("keys.html")
