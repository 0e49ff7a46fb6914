"""Sessions, passwords, and the slowing of sign-ins that fail."""

import datetime as dt
import hashlib
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from medassay.core.clock import now
from medassay.review.store.database import is_of_wrong_clock, later
from medassay.review.store.schema import Account, Failure, SignIn

if TYPE_CHECKING:
    from argon2 import PasswordHasher

IDLE_HOURS = 12
MOST_PASSWORD = 200
_FREE_FAILURES = 5
_FORGET_MINUTES = 15
_MOST_WAIT = {"account": 60, "address": 900}  # seconds
_SEEN_EVERY = 300  # seconds: the time of last use is kept so exactly, not at every request


@lru_cache(maxsize=1)
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher()


@lru_cache(maxsize=1)
def _nobody() -> str:
    """Return the hash that is checked for accounts that are not there: they take as long as
    others.
    """
    return _hasher().hash(secrets.token_hex())


def hashed(password: str) -> str:
    """Return a password as the database keeps it."""
    return _hasher().hash(password)


def digest(token: str) -> str:
    """Return what the database keeps of a link or a cookie."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def begin_try(db: Session, email: str, address: str) -> tuple[int, list[int]]:
    """Return how many seconds must pass before a try to sign in, and the tries noted now where none
    must.

    A try is noted as failed before the password is looked at, and taken back when it was right:
    many at once are slowed like one after the other.
    """
    at = now()
    # One after the other; SQLite's writers are so anyway.
    if db.get_bind().dialect.name == "postgresql":
        key = int(_failure_keys(email, "")["account"][:15], 16)
        db.execute(select(func.pg_advisory_xact_lock(key)))
    wait = wait_of(db, email, address)
    if wait > 0:
        return wait, []
    # Those of a clock that ran ahead are forgotten, too: they would lock an account until that time
    # comes.
    over = or_(Failure.at < later(at, minutes=-_FORGET_MINUTES), Failure.at > later(at, minutes=5))
    db.execute(delete(Failure).where(over))
    noted = [Failure(key=key, at=at) for key in _failure_keys(email, address).values()]
    db.add_all(noted)
    db.flush()
    return 0, [failure.id for failure in noted]


def is_password(account: Account | None, password: str) -> bool:
    """Return whether a password is that of an account that may sign in.

    Of none it takes as long.
    """
    password_hash = _nobody() if account is None else account.password
    right = _is_right(password_hash, password[:MOST_PASSWORD])
    return right and account is not None and not account.disabled


def end_try(db: Session, account: Account, tries: Sequence[int], email: str) -> str:
    """Return the token of a new session after a right password.

    The account's failures are forgotten, the address keeps others'.
    """
    account_key = _failure_keys(email, "")["account"]
    db.execute(delete(Failure).where(or_(Failure.key == account_key, Failure.id.in_(tries))))
    return open_session(db, account)


def _is_right(password_hash: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def open_session(db: Session, account: Account) -> str:
    """Return the token of a session for somebody who has just proved who they are."""
    token, at = secrets.token_urlsafe(32), now()
    db.execute(delete(SignIn).where(SignIn.seen_at < later(at, hours=-IDLE_HOURS)))
    db.add(SignIn(token=digest(token), account_id=account.id, made_at=at, seen_at=at))
    return token


def wait_of(db: Session, email: str, address: str) -> int:
    """Return how many seconds must pass before the next try to sign in, 0 for none.

    After five failures each further one doubles the wait: of an account up to a minute, of an
    address up to a quarter of an hour.
    """
    time = now()
    since = later(time, minutes=-_FORGET_MINUTES)
    waits = [0]
    for kind, key in _failure_keys(email, address).items():
        query = select(func.count(), func.max(Failure.at)).where(
            Failure.key == key, Failure.at >= since, Failure.at <= later(time, minutes=5)
        )
        count, last = db.execute(query).one()
        # Whole departments share an address: it is slowed later than an account.
        free = _FREE_FAILURES if kind == "account" else 4 * _FREE_FAILURES
        if count >= free:
            wait = min(2 ** (count - free + 1), _MOST_WAIT[kind])
            passed = dt.datetime.fromisoformat(time) - dt.datetime.fromisoformat(last)
            waits.append(min(wait, wait - int(passed.total_seconds())))
    return max(waits)


def _failure_keys(email: str, address: str) -> dict[str, str]:
    return {
        "account": digest(f"account {email.strip().lower()}"),
        "address": digest(f"address {address}"),
    }


def session_of(db: Session, token: str) -> Account | None:
    """Return who is signed in under a cookie's value, None when the session has ended."""
    row = db.get(SignIn, digest(token))
    if row is None or row.seen_at < later(now(), hours=-IDLE_HOURS):
        return None
    if is_of_wrong_clock(row.seen_at):  # it would be open for as long as that clock was ahead
        return None
    account = db.get(Account, row.account_id)
    return None if account is None or account.disabled else account


def touch(db: Session, token: str) -> None:
    """Note that a session is in use, at most every five minutes."""
    row, at = db.get(SignIn, digest(token)), now()
    if row is not None and row.seen_at < later(at, seconds=-_SEEN_EVERY):
        row.seen_at = at


def sign_out(db: Session, token: str) -> None:
    """End one session."""
    db.execute(delete(SignIn).where(SignIn.token == digest(token)))


def end_sessions(db: Session, account: int) -> None:
    """End every session of an account."""
    db.execute(delete(SignIn).where(SignIn.account_id == account))
