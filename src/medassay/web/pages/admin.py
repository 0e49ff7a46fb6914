"""Accounts and roles: for admins."""

import msgspec
from fastapi.responses import Response
from sqlalchemy.orm import Session

from medassay.errors import InputError
from medassay.review.store import accounts, links
from medassay.review.store.schema import ROLES, Account
from medassay.web.request_context import Here, RequestContext

_ASKED_TWICE = ("revoke", "disable")  # what takes something from somebody


def users_page(context: Here) -> Response:
    """List the accounts with their roles."""
    return _show(context)


def _show(
    context: RequestContext, status: int = 200, *, says: str = "", link: str = ""
) -> Response:
    with context.database.read() as db:
        people, names = accounts.everybody(db), accounts.study_names(db)
    return context.page(
        "users.html", status, people=people, studies=names, roles=ROLES, says=says, link=link
    )


class _AccountForm(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of accounts asks for: `do` names it, for whom, and of which study."""

    do: str = ""
    email: str = ""
    confirm: str = ""
    role: str = ""
    study: str = ""


def act(context: Here) -> Response:
    """Invite, give and take roles, disable and enable, send a link for a new password."""
    form, who = context.form(_AccountForm), context.who.name
    do, email, role = form.do, form.email, form.role
    if do in _ASKED_TWICE and form.confirm != "yes":
        return context.page("take.html", do=do, email=email, role=role, of=form.study)
    study = form.study or None
    link = says = ""
    try:
        with context.database.write() as db:
            account = accounts.account_of(db, accounts.checked_email(email))
            if do == "invite" and (account is None or study is None):
                link = context.link(
                    f"/invite/{links.invite(db, email, who=who, study=study, role=role)}"
                )
                says = "Send this link. It works once, for seven days, and is shown only now."
            elif account is None:
                raise InputError(f"nobody has the address {email[:60]}; invite them")
            elif do == "invite":
                accounts.grant_to(db, account, study, role, who=who)
                says = "The role was given."
            elif do == "password":
                link = context.link(f"/invite/{links.invite(db, email, who=who)}")
                says = "Send this link. It works once, for seven days, and is shown only now."
            else:
                says = _change(context, db, account, do)
    except InputError as error:
        return _show(context, 422, says=str(error))
    return _show(context, says=context.say(says), link=link)


def _change(context: RequestContext, db: Session, account: Account, do: str) -> str:
    who, form = context.who.name, context.form(_AccountForm)
    if do == "revoke":
        accounts.revoke(db, account, form.study, form.role, who=who)
        return "The role was taken."
    if do == "disable":
        accounts.disable(db, account, who=who)
        return "The account is disabled; its sessions have ended."
    if do == "enable":
        accounts.enable(db, account, who=who)
        return "The account is enabled."
    raise InputError("nothing was asked for")
