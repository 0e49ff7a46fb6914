"""One-use links: to a new account, to a role for one that is there, to a new password."""

import secrets

from sqlalchemy import update
from sqlalchemy.orm import Session

from medassay.core.clock import now
from medassay.errors import InputError
from medassay.review.store.accounts import (
    ADMIN,
    CREATOR,
    Profile,
    ProfileError,
    account_of,
    check_password,
    check_profile,
    checked_email,
    grant,
    has_admin,
    refuse_both,
    set_qualification,
)
from medassay.review.store.database import is_of_wrong_clock, later
from medassay.review.store.schema import ROLES, Account, Invitation, Study
from medassay.review.store.sessions import digest, end_sessions, hashed
from medassay.review.store.trail import note

LINK_DAYS = 7


def invite(db: Session, email: str, *, who: str, study: str | None = None, role: str = "") -> str:
    """Return the token of a new link; the database keeps only its hash.

    Parameters
    ----------
    role : a role in `study`, or `admin`, or `creator` (of studies); empty for a new password alone

    Raises
    ------
    InputError
        When the study or role is not known.
    """
    if study is not None and db.get(Study, study) is None:
        raise InputError(f"no study '{study}'; `medassay review study list` names them")
    if (role not in ROLES) if study is not None else role not in ("", ADMIN, CREATOR):
        roles_known = ROLES if study is not None else (ADMIN, CREATOR)
        raise InputError(f"role '{role}'; expected {', '.join(roles_known)}")
    address = checked_email(email)
    if study is not None and (known_account := account_of(db, address)):
        refuse_both(db, known_account.id, study, role)
    return _new_link(db, address, who=who, study=study, role=role)


def invite_first(db: Session) -> str:
    """Return the token of the link by which the first admin chooses an address and a password."""
    return _new_link(db, "", who="the first start", study=None, role=ADMIN)


def _new_link(db: Session, email: str, *, who: str, study: str | None, role: str) -> str:
    token, time = secrets.token_urlsafe(32), now()
    db.add(
        Invitation(
            token=digest(token),
            email=email,
            study=study,
            role=role,
            made_at=time,
            ends_at=later(time, days=LINK_DAYS),
        )
    )
    note(db, "invited", who=who, study=study, email=email, role=role)
    return token


def invitation(db: Session, token: str) -> Invitation | None:
    """Return a link that can still be used."""
    row = db.get(Invitation, digest(token))
    return None if row is None or _is_over(row) else row


def _is_over(link: Invitation) -> bool:
    return link.used_at is not None or link.ends_at < now() or is_of_wrong_clock(link.made_at)


def accept(db: Session, token: str, profile: Profile, *, signed_in: int | None = None) -> Account:
    """Return the account of an accepted invitation: a new one, or one that is there with its new
    role or password.

    A link that gives a role gives it to whoever it names and nobody else: an account that is there
    accepts it signed in. Only the link to a new password, which admins alone can make, changes a
    password.

    Parameters
    ----------
    signed_in : the account that opened the link, if any

    Raises
    ------
    ProfileError
        Saying what is missing; `field` names it.
    """
    row = db.get(Invitation, digest(token), with_for_update=True)
    if row is None or _is_over(row):
        raise ProfileError("", "This link was used or has ended; ask for a new one.")
    if not row.email and has_admin(db):
        raise ProfileError("", "This server has an admin by now; ask them for a link.")
    email = row.email or _own_email(db, profile)
    account = account_of(db, email)
    if account is None:
        account = _new_account(db, email, profile, reviewer=row.role == "reviewer")
    elif not row.role:
        check_password(profile.password)
        account.password = hashed(profile.password)
        end_sessions(db, account.id)
        _end_password_links(db, email)
    elif account.id != signed_in:
        raise ProfileError(
            "", "There is an account under this address: sign in, then open the link again."
        )
    account.admin = account.admin or row.role == ADMIN
    account.may_create = account.may_create or row.role == CREATOR
    row.used_at = now()
    if row.study is not None:
        try:
            grant(db, account, row.study, row.role, who=account.name)
        except InputError as error:
            raise ProfileError("", str(error)) from None
    note(db, "accepted", who=account.name, study=row.study, role=row.role)
    return account


def _end_password_links(db: Session, email: str) -> None:
    """End the other links to a new password: one that went astray would change it once more."""
    others = (Invitation.email == email, Invitation.role == "", Invitation.used_at.is_(None))
    db.execute(update(Invitation).where(*others).values(used_at=now()))


def _own_email(db: Session, profile: Profile) -> str:
    """Return the address that the first admin chose; an account that is there is not taken over."""
    try:
        email = checked_email(profile.email)
    except InputError:
        raise ProfileError("email", "Write your e-mail address, such as ada@example.org.") from None
    if account_of(db, email) is not None:
        raise ProfileError("email", "There is an account under this address already.")
    return email


def _new_account(db: Session, email: str, profile: Profile, *, reviewer: bool) -> Account:
    check_profile(profile, reviewer=reviewer)
    account = Account(
        email=email,
        name=" ".join(profile.name.split()),
        password=hashed(profile.password),
        made_at=now(),
    )
    if reviewer:
        set_qualification(account, profile)
    db.add(account)
    db.flush()
    return account
