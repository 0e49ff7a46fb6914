"""Accounts, one-use links, sessions, and the slowing of sign-ins that fail."""

import datetime as dt
import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from medassay.errors import InputError
from medassay.review.store.database import later, now
from medassay.review.store.schema import (
    ROLES,
    Account,
    Assignment,
    Draft,
    Failure,
    Invitation,
    Review,
    Right,
    SignIn,
    Study,
)
from medassay.review.store.trail import note

if TYPE_CHECKING:
    from argon2 import PasswordHasher

LINK_DAYS = 7
IDLE_HOURS = 12
LEAST_PASSWORD = 12
MOST_PASSWORD = 200
QUALIFICATIONS = ("student", "physician", "specialist")
ADMIN, CREATOR = "admin", "creator"  # what a link may give besides a role in a study
AGREEMENT = "1"  # version of the confidentiality agreement
_FREE_FAILURES = 5
_FORGET_MINUTES = 15
_MOST_WAIT = {"account": 60, "address": 900}  # seconds
_SEEN_EVERY = 300  # seconds: the time of last use is kept so exactly, not at every request


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What somebody says of themselves when they accept an invitation."""

    name: str
    password: str
    email: str = ""  # of the first admin, whose link names none
    qualification: str = ""
    specialty: str = ""
    years: str = ""
    agreed: bool = False


@lru_cache(maxsize=1)
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher()


@lru_cache(maxsize=1)
def _nobody() -> str:
    """Return the hash that is checked for accounts that are not there: they take as long as others."""
    return _hasher().hash(secrets.token_hex())


def digest(token: str) -> str:
    """Return what the database keeps of a link or a cookie."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def checked_email(text: str) -> str:
    """Return an address in the form in which accounts are found.

    Raises
    ------
    InputError
        When it is none.
    """
    found = text.strip().lower()
    name, _, host = found.partition("@")
    if not (name and host and found.isprintable()) or " " in found or len(found) > 200:
        raise InputError(f"'{text[:60]}': expected an e-mail address, such as ada@example.org")
    return found


def invite(
    db: Session, email: str, *, who: str, study: str | None = None, role: str = ""
) -> str:
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
        known = ROLES if study is not None else (ADMIN, CREATOR)
        raise InputError(f"role '{role}'; expected {', '.join(known)}")
    address = checked_email(email)
    if study is not None and (known_account := account_of(db, address)):
        refuse_both(db, known_account.id, study, role)
    token = secrets.token_urlsafe(32)
    time = now()
    db.add(
        Invitation(
            token=digest(token),
            email=address,
            study=study,
            role=role,
            made_at=time,
            ends_at=later(time, days=LINK_DAYS),
        )
    )
    note(db, "invited", who=who, study=study, email=address, role=role)
    return token


def invite_first(db: Session) -> str:
    """Return the token of the link by which the first admin chooses an address and a password."""
    token, time = secrets.token_urlsafe(32), now()
    db.add(
        Invitation(
            token=digest(token),
            email="",
            role=ADMIN,
            made_at=time,
            ends_at=later(time, days=LINK_DAYS),
        )
    )
    note(db, "invited", who="the first start", study=None, email="", role=ADMIN)
    return token


def invitation(db: Session, token: str) -> Invitation | None:
    """Return a link that can still be used."""
    found = db.get(Invitation, digest(token))
    if found is None or found.used_at is not None or found.ends_at < now():
        return None
    return found


def accept(
    db: Session, token: str, profile: Profile, *, signed_in: int | None = None
) -> Account:
    """Return the account of an accepted invitation: a new one, or one that is there with its new role or password.

    A link that gives a role gives it to whoever it names and nobody else: an account that is there accepts it signed in. Only the link
    to a new password, which admins alone can make, changes a password.

    Parameters
    ----------
    signed_in : the account that opened the link, if any

    Raises
    ------
    ProfileError
        Saying what is missing; `field` names it.
    """
    found = db.get(Invitation, digest(token), with_for_update=True)
    if found is None or found.used_at is not None or found.ends_at < now():
        raise ProfileError("", "This link was used or has ended; ask for a new one.")
    if not found.email and has_admin(db):
        raise ProfileError("", "This server has an admin by now; ask them for a link.")
    email = found.email or _own_email(db, profile)
    account = account_of(db, email)
    if account is None:
        account = _new_account(db, email, profile, reviewer=found.role == "reviewer")
    elif not found.role:
        check_password(profile.password)
        account.password = _hasher().hash(profile.password)
        end_sessions(db, account.id)
    elif account.id != signed_in:
        raise ProfileError(
            "", "There is an account under this address: sign in, then open the link again."
        )
    account.admin = account.admin or found.role == ADMIN
    account.may_create = account.may_create or found.role == CREATOR
    found.used_at = now()
    if found.study is not None:
        try:
            grant(db, account, found.study, found.role, who=account.name)
        except InputError as error:
            raise ProfileError("", str(error)) from None
    note(db, "accepted", who=account.name, study=found.study, role=found.role)
    return account


def _new_account(db: Session, email: str, profile: Profile, *, reviewer: bool) -> Account:
    check_profile(profile, reviewer=reviewer)
    account = Account(
        email=email,
        name=" ".join(profile.name.split()),
        password=_hasher().hash(profile.password),
        made_at=now(),
    )
    if reviewer:
        _qualify(account, profile)
    db.add(account)
    db.flush()
    return account


def _own_email(db: Session, profile: Profile) -> str:
    """Return the address that the first admin chose; an account that is there is not taken over."""
    try:
        email = checked_email(profile.email)
    except InputError:
        raise ProfileError(
            "email", "Write your e-mail address, such as ada@example.org."
        ) from None
    if account_of(db, email) is not None:
        raise ProfileError("email", "There is an account under this address already.")
    return email


def qualify(db: Session, account_id: int, profile: Profile) -> None:
    """Keep what a reviewer says of themselves, and that they agreed.

    Raises
    ------
    ProfileError
        For the first field that is wrong.
    """
    check_qualification(profile)
    account = db.get_one(Account, account_id)
    told = (profile.qualification, " ".join(profile.specialty.split()), int(profile.years))
    if told != (account.qualification, account.specialty, account.years) or (
        account.agreement != AGREEMENT
    ):
        _qualify(account, profile)
        note(db, "qualified", who=account.name, qualification=told[0], agreement=AGREEMENT)


def _qualify(account: Account, profile: Profile) -> None:
    account.qualification = profile.qualification
    account.specialty = " ".join(profile.specialty.split())
    account.years = int(profile.years)
    account.agreement, account.agreed_at = AGREEMENT, now()


class ProfileError(InputError):
    """Say what is missing in what somebody tells of themselves; `field` names it."""

    def __init__(self, field: str, says: str) -> None:
        super().__init__(says)
        self.field = field


def check_profile(profile: Profile, *, reviewer: bool) -> None:
    """Refuse a profile in which something is missing.

    Raises
    ------
    ProfileError
        For the first field that is wrong.
    """
    if not profile.name.strip() or not profile.name.isprintable() or len(profile.name) > 100:
        raise ProfileError("name", "Write your name, up to 100 characters.")
    check_password(profile.password)
    if reviewer:
        check_qualification(profile)


def check_password(password: str) -> None:
    """Refuse a password that is too short, or so long that checking it takes too long.

    Raises
    ------
    ProfileError
        When it is.
    """
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise ProfileError("password", "The password needs 12 characters at least.")


def check_qualification(profile: Profile) -> None:
    """Refuse what a reviewer says of themselves where something is missing.

    Raises
    ------
    ProfileError
        For the first field that is wrong.
    """
    if profile.qualification not in QUALIFICATIONS:
        raise ProfileError("qualification", "Choose your qualification.")
    special = profile.specialty.strip()
    if profile.qualification == "specialist" and not special:
        raise ProfileError("specialty", "Name your specialty.")
    if len(special) > 100 or not special.isprintable():
        raise ProfileError("specialty", "Name your specialty, up to 100 characters.")
    if (
        not profile.years.isascii()
        or not profile.years.isdigit()
        or len(profile.years) > 2
        or int(profile.years) > 80
    ):
        raise ProfileError("years", "Write the years in your profession as a number, 0 to 80.")
    if not profile.agreed:
        raise ProfileError("agreed", "Nobody can review without the agreement.")


def grant(db: Session, account: Account, study: str, role: str, *, who: str) -> None:
    """Give somebody a role in a study; nothing happens where they have it.

    Raises
    ------
    InputError
        When they would be reviewer and adjudicator of one study.
    """
    db.get(Study, study, with_for_update=True)
    refuse_both(db, account.id, study, role)
    mine = (Right.study_id == study, Right.account_id == account.id, Right.role == role)
    if db.scalar(select(Right).where(*mine)) is not None:
        return
    taken = db.scalar(
        select(func.max(Right.alias)).where(Right.study_id == study, Right.role == role)
    )
    db.add(
        Right(
            account_id=account.id,
            study_id=study,
            role=role,
            alias=(taken or 0) + 1,
            pseudonym=f"{role[0]}-{secrets.token_hex(4)}",
        )
    )
    note(db, "granted", who=who, study=study, role=role, to=account.email)


def refuse_both(db: Session, account: int, study: str, role: str) -> None:
    """Refuse to make one person reviewer and adjudicator of the same study.

    Raises
    ------
    InputError
        When the other role is theirs.
    """
    others = {"reviewer": "adjudicator", "adjudicator": "reviewer"}
    if role in others and others[role] in roles_of(db, account, study):
        raise InputError(
            f"nobody is reviewer and adjudicator of one study; this person is {others[role]} of '{study}'"
        )


def roles_of(db: Session, account: int, study: str) -> frozenset[str]:
    """Return the roles of an account in a study; none unless given."""
    wanted = select(Right.role).where(Right.account_id == account, Right.study_id == study)
    return frozenset(db.scalars(wanted))


def anywhere(db: Session, account: int) -> frozenset[str]:
    """Return the roles that an account has in any study."""
    return frozenset(db.scalars(select(Right.role).where(Right.account_id == account)))


def account_of(db: Session, email: str) -> Account | None:
    """Return the account under an address."""
    return db.scalar(select(Account).where(Account.email == email))


def has_admin(db: Session) -> bool:
    """Return whether anybody administers the app yet."""
    return db.scalar(select(Account.id).where(Account.admin, ~Account.disabled)) is not None


def begin_try(db: Session, email: str, address: str) -> tuple[int, list[int]]:
    """Return how many seconds must pass before a try to sign in, and the tries noted now where none must.

    A try is noted as failed before the password is looked at, and taken back when it was right: many at once are slowed like one after
    the other.
    """
    at = now()
    if (
        db.get_bind().dialect.name == "postgresql"
    ):  # one after the other; SQLite's writers are so anyway
        key = int(_failure_keys(email, "")["account"][:15], 16)
        db.execute(select(func.pg_advisory_xact_lock(key)))
    wait = wait_of(db, email, address)
    if wait > 0:
        return wait, []
    db.execute(delete(Failure).where(Failure.at < later(at, minutes=-_FORGET_MINUTES)))
    noted = [Failure(key=key, at=at) for key in _failure_keys(email, address).values()]
    db.add_all(noted)
    db.flush()
    return 0, [one.id for one in noted]


def is_password(account: Account | None, password: str) -> bool:
    """Return whether a password is that of an account that may sign in; of none it takes as long."""
    kept = _nobody() if account is None else account.password
    right = _is_right(kept, password[:MOST_PASSWORD])
    return right and account is not None and not account.disabled


def end_try(db: Session, account: Account, tries: Sequence[int], email: str) -> str:
    """Return the token of a new session after a right password; the account's failures are forgotten, the address keeps others'."""
    own = _failure_keys(email, "")["account"]
    db.execute(delete(Failure).where(or_(Failure.key == own, Failure.id.in_(tries))))
    return _new_session(db, account.id)


def _is_right(kept: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(kept, password)
    except (VerificationError, InvalidHashError):
        return False


def _new_session(db: Session, account: int) -> str:
    token, at = secrets.token_urlsafe(32), now()
    db.execute(delete(SignIn).where(SignIn.seen_at < later(at, hours=-IDLE_HOURS)))
    db.add(SignIn(token=digest(token), account_id=account, made_at=at, seen_at=at))
    return token


def open_session(db: Session, account: Account) -> str:
    """Return the token of a session for somebody who has just proved who they are by a link."""
    return _new_session(db, account.id)


def wait_of(db: Session, email: str, address: str) -> int:
    """Return how many seconds must pass before the next try to sign in, 0 for none.

    After five failures each further one doubles the wait: of an account up to a minute, of an address up to a quarter of an hour.
    """
    time = now()
    since = later(time, minutes=-_FORGET_MINUTES)
    waits = [0]
    for kind, key in _failure_keys(email, address).items():
        wanted = select(func.count(), func.max(Failure.at)).where(
            Failure.key == key, Failure.at >= since
        )
        count, last = db.execute(wanted).one()
        # Whole departments share an address: it is slowed later than an account.
        free = _FREE_FAILURES if kind == "account" else 4 * _FREE_FAILURES
        if count >= free:
            wait = min(2 ** (count - free + 1), _MOST_WAIT[kind])
            waits.append(wait - _seconds(last, time))
    return max(waits)


def _seconds(start: str, end: str) -> int:
    return int(
        (dt.datetime.fromisoformat(end) - dt.datetime.fromisoformat(start)).total_seconds()
    )


def _failure_keys(email: str, address: str) -> dict[str, str]:
    return {
        "account": digest(f"account {email.strip().lower()}"),
        "address": digest(f"address {address}"),
    }


def session_of(db: Session, token: str) -> Account | None:
    """Return who is signed in under a cookie's value, None when the session has ended."""
    found = db.get(SignIn, digest(token))
    if found is None or found.seen_at < later(now(), hours=-IDLE_HOURS):
        return None
    account = db.get(Account, found.account_id)
    return None if account is None or account.disabled else account


def touch(db: Session, token: str) -> None:
    """Note that a session is in use, at most every five minutes."""
    found, at = db.get(SignIn, digest(token)), now()
    if found is not None and found.seen_at < later(at, seconds=-_SEEN_EVERY):
        found.seen_at = at


def sign_out(db: Session, token: str) -> None:
    """End one session."""
    db.execute(delete(SignIn).where(SignIn.token == digest(token)))


def end_sessions(db: Session, account: int) -> None:
    """End every session of an account."""
    db.execute(delete(SignIn).where(SignIn.account_id == account))


def disable(db: Session, account: Account, *, who: str) -> None:
    """Take the right to sign in from somebody, at once.

    Raises
    ------
    InputError
        When nobody would be left to administer the app.
    """
    others = select(Account.id).where(
        Account.admin, ~Account.disabled, Account.id != account.id
    )
    if account.admin and db.scalar(others) is None:
        raise InputError("the last admin cannot be disabled; make another one first")
    account.disabled = True
    end_sessions(db, account.id)
    note(db, "disabled", who=who, of=account.email)


def enable(db: Session, account: Account, *, who: str) -> None:
    """Give somebody the right to sign in again."""
    account.disabled = False
    note(db, "enabled", who=who, of=account.email)


def grant_to(db: Session, account: Account, study: str | None, role: str, *, who: str) -> None:
    """Give an account that is there a role in a study.

    Raises
    ------
    InputError
        When the study or the role is not known.
    """
    if study is None or db.get(Study, study) is None:
        raise InputError(f"no study '{study}'; `medassay review study list` names them")
    if role not in ROLES:
        raise InputError(f"role '{role}'; expected {', '.join(ROLES)}")
    grant(db, account, study, role, who=who)


def revoke(db: Session, account: Account, study: str, role: str, *, who: str) -> None:
    """Take a role from somebody; what they did in it stays.

    Raises
    ------
    InputError
        When they do not have it, or are a reviewer with reviews, which would lose their number.
    """
    mine = (Right.study_id == study, Right.account_id == account.id, Right.role == role)
    found = db.scalar(select(Right).where(*mine))
    if found is None:
        raise InputError(f"{account.email} is not {role or 'anything'} of '{study}'")
    mine_there = (Assignment.study_id == study, Assignment.account_id == account.id)
    given = select(Review.id).join(Assignment).where(*mine_there)
    if role == "reviewer" and db.scalar(given.limit(1)) is not None:
        raise InputError(
            f"{account.email} has reviewed in '{study}': disable the account instead, the reviews stay"
        )
    if role == "reviewer":
        numbers = [*db.scalars(select(Assignment.id).where(*mine_there))]
        db.execute(delete(Draft).where(Draft.assignment_id.in_(numbers)))
        db.execute(delete(Assignment).where(Assignment.id.in_(numbers)))
    db.delete(found)
    note(db, "revoked", who=who, study=study, role=role, of=account.email)


def studies_with(db: Session, account: int, role: str) -> frozenset[str]:
    """Return the names of the studies in which an account has a role."""
    wanted = select(Right.study_id).where(Right.account_id == account, Right.role == role)
    return frozenset(db.scalars(wanted))


def names_of(db: Session, accounts: Collection[int | None]) -> dict[int | None, str]:
    """Return the names of accounts."""
    wanted = select(Account.id, Account.name).where(
        Account.id.in_([one for one in accounts if one is not None])
    )
    return {number: name for number, name in db.execute(wanted)}


def everybody(db: Session) -> list[tuple[Account, list[Right]]]:
    """Return all accounts by address, each with its roles."""
    rights: dict[int, list[Right]] = {}
    for right in db.scalars(select(Right).order_by(Right.study_id, Right.role)):
        rights.setdefault(right.account_id, []).append(right)
    found = db.scalars(select(Account).order_by(Account.email))
    return [(account, rights.get(account.id, [])) for account in found]


def study_names(db: Session) -> list[str]:
    """Return the names of all studies."""
    return [*db.scalars(select(Study.id).order_by(Study.id))]
