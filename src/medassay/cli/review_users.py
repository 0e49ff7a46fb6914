"""`medassay review user …`: accounts and roles."""

from typing import Any

import typer

from medassay.cli.output import out
from medassay.cli.review_store import DATABASE, WHO, opened_database
from medassay.errors import InputError, UsageError

user = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Accounts and roles.")


@user.command("invite")
def invite(
    email: str = typer.Argument(..., help="Whom to invite."),
    role: str = typer.Option(
        ...,
        help=(
            "admin, creator (of studies), or in a study: reviewer, adjudicator, coordinator,"
            " maintainer, auditor."
        ),
    ),
    study_name: str = typer.Option("", "--study", help="The study of the role."),
    url: str = typer.Option("http://127.0.0.1:8765", help="The public address of the server."),
    database: str = DATABASE,
) -> None:
    """Print a one-use link, good for seven days."""
    with opened_database(database, make=True) as opened:
        from medassay.review.store import accounts, links

        if bool(study_name) == (role in (accounts.ADMIN, accounts.CREATOR)):
            raise UsageError("a role in a study needs --study; admin and creator are of the server")
        with opened.write() as db:
            token = links.invite(db, email, who=WHO, study=study_name or None, role=role)
        link = f"{url.rstrip('/')}/invite/{token}"
        if out.json:
            out.document({"email": email, "role": role, "study": study_name, "link": link})
        else:
            out.result(link)
            out.say("send this link; it works once, for seven days, and is printed only now")


@user.command("list")
def list_users(database: str = DATABASE) -> None:
    """Print accounts and roles."""
    with opened_database(database) as opened:
        from medassay.review.store import accounts

        with opened.read() as db:
            rows: list[dict[str, Any]] = [
                {
                    "email": account.email,
                    "name": account.name,
                    "admin": account.admin,
                    "disabled": account.disabled,
                    "roles": [f"{right.study_id}:{right.role}" for right in rights],
                }
                for account, rights in accounts.everybody(db)
            ]
        if out.json:
            out.document({"users": rows})
            return
        for row in rows:
            more = [*(["admin"] if row["admin"] else []), *row["roles"]]
            state = " (disabled)" if row["disabled"] else ""
            out.result(f"{row['email']}  {row['name']}{state}  {', '.join(more)}")


@user.command("disable")
def disable(
    email: str = typer.Argument(..., help="Who."),
    undo: bool = typer.Option(False, "--undo", help="Let them sign in again."),
    database: str = DATABASE,
) -> None:
    """Take the right to sign in from somebody, at once; what they did stays."""
    with opened_database(database) as opened:
        from medassay.review.store import accounts

        with opened.write() as db:
            account = accounts.account_of(db, accounts.checked_email(email))
            if account is None:
                raise InputError(f"nobody has the address {email}")
            (accounts.enable if undo else accounts.disable)(db, account, who=WHO)
        if out.json:
            out.document({"email": email, "disabled": not undo})
        out.say(f"{email}: {'enabled' if undo else 'disabled; all sessions ended'}")
