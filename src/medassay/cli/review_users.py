"""`medassay review user …`: accounts and roles."""

import msgspec
import typer

from medassay.cli.options import group
from medassay.cli.output import out
from medassay.cli.review_store import DATABASE, WHO, opened_database
from medassay.errors import InputError, UsageError

user = group("Accounts and roles.")


class UserLine(msgspec.Struct, frozen=True, kw_only=True):
    """An account with its roles, each `study:role`."""

    email: str
    name: str
    admin: bool
    disabled: bool
    roles: list[str]

    def __str__(self) -> str:
        roles = [*(["admin"] if self.admin else []), *self.roles]
        state = " (disabled)" if self.disabled else ""
        return f"{self.email}  {self.name}{state}  {', '.join(roles)}"


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
        out.tell({"email": email, "role": role, "study": study_name, "link": link}, link)
        out.say("send this link; it works once, for seven days, and is printed only now")


@user.command("list")
def list_users(database: str = DATABASE) -> None:
    """Print accounts and roles."""
    with opened_database(database) as opened:
        from medassay.review.store import accounts

        with opened.read() as db:
            rows = [
                UserLine(
                    email=account.email,
                    name=account.name,
                    admin=account.admin,
                    disabled=account.disabled,
                    roles=[f"{right.study_id}:{right.role}" for right in rights],
                )
                for account, rights in accounts.everybody(db)
            ]
        out.tell({"users": rows}, *map(str, rows))


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
        out.tell({"email": email, "disabled": not undo})
        out.say(f"{email}: {'enabled' if undo else 'disabled; all sessions ended'}")
