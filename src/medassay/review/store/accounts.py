"""Accounts, what people say of themselves, and their roles."""

import secrets
from collections.abc import Collection

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from medassay.core.clock import now
from medassay.errors import InputError
from medassay.review.store.schema import ROLES, Account, Assignment, Draft, Review, Right, Study
from medassay.review.store.sessions import MOST_PASSWORD, end_sessions
from medassay.review.store.trail import note

LEAST_PASSWORD = 12
QUALIFICATIONS = ("student", "physician", "specialist")
ADMIN, CREATOR = "admin", "creator"  # what a link may give besides a role in a study
AGREEMENT = "1"  # version of the confidentiality agreement


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says of themselves when they accept an invitation."""

    name: str
    password: str
    email: str = ""  # of the first admin, whose link names none
    qualification: str = ""
    specialty: str = ""
    years: str = ""
    agreed: bool = False


def checked_email(text: str) -> str:
    """Return an address in the form in which accounts are found.

    Raises
    ------
    InputError
        When it is none.
    """
    address = text.strip().lower()
    name, _, host = address.partition("@")
    if not (name and host and address.isprintable()) or " " in address or len(address) > 200:
        raise InputError(f"'{text[:60]}': expected an e-mail address, such as ada@example.org")
    return address


def qualify(db: Session, account_id: int, profile: Profile) -> None:
    """Keep what a reviewer says of themselves, and that they agreed.

    Raises
    ------
    ProfileError
        For the first field that is wrong.
    """
    check_qualification(profile)
    account = db.get_one(Account, account_id)
    profile_values = (
        profile.qualification,
        " ".join(profile.specialty.split()),
        int(profile.years),
    )
    if profile_values != (account.qualification, account.specialty, account.years) or (
        account.agreement != AGREEMENT
    ):
        set_qualification(account, profile)
        note(
            db,
            "qualified",
            who=account.name,
            qualification=profile_values[0],
            agreement=AGREEMENT,
        )


def set_qualification(account: Account, profile: Profile) -> None:
    """Put what a reviewer says of themselves, checked before, into their account."""
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
        When they would have two roles that must not meet.
    """
    db.get(Study, study, with_for_update=True)
    refuse_both(db, account.id, study, role)
    mine = (Right.study_id == study, Right.account_id == account.id, Right.role == role)
    if db.scalar(select(Right).where(*mine)) is not None:
        return
    pseudonym_taken = db.scalar(
        select(func.max(Right.alias)).where(Right.study_id == study, Right.role == role)
    )
    db.add(
        Right(
            account_id=account.id,
            study_id=study,
            role=role,
            alias=(pseudonym_taken or 0) + 1,
            pseudonym=f"{role[0]}-{secrets.token_hex(4)}",
        )
    )
    note(db, "granted", who=who, study=study, role=role, to=account.email)


def refuse_both(db: Session, account: int, study: str, role: str) -> None:
    """Refuse to give one person two roles of a study that must not meet: who reviews does not
    decide about reviews, nor read those of others while the study is open.

    Raises
    ------
    InputError
        When the other role is theirs.
    """
    is_open = db.get_one(Study, study).closed_at is None
    apart = ("adjudicator", "auditor") if is_open else ("adjudicator",)
    others = apart if role == "reviewer" else ("reviewer",) if role in apart else ()
    for other in sorted(roles_of(db, account, study).intersection(others)):
        second = role if other == "reviewer" else other
        while_open = " while it is open" if second == "auditor" else ""
        raise InputError(
            f"nobody is reviewer and {second} of one study{while_open}; this person is {other} of"
            f" '{study}'"
        )


def roles_of(db: Session, account: int, study: str) -> frozenset[str]:
    """Return the roles of an account in a study; none unless given."""
    query = select(Right.role).where(Right.account_id == account, Right.study_id == study)
    return frozenset(db.scalars(query))


def anywhere(db: Session, account: int) -> frozenset[str]:
    """Return the roles that an account has in any study."""
    return frozenset(db.scalars(select(Right.role).where(Right.account_id == account)))


def account_of(db: Session, email: str) -> Account | None:
    """Return the account under an address."""
    return db.scalar(select(Account).where(Account.email == email))


def has_admin(db: Session) -> bool:
    """Return whether anybody administers the app yet."""
    return db.scalar(select(Account.id).where(Account.admin, ~Account.disabled)) is not None


def disable(db: Session, account: Account, *, who: str) -> None:
    """Take the right to sign in from somebody, at once.

    Raises
    ------
    InputError
        When nobody would be left to administer the app.
    """
    others = select(Account.id).where(Account.admin, ~Account.disabled, Account.id != account.id)
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
    right = db.scalar(select(Right).where(*mine))
    if right is None:
        raise InputError(f"{account.email} is not {role or 'anything'} of '{study}'")
    mine_there = (Assignment.study_id == study, Assignment.account_id == account.id)
    query = select(Review.id).join(Assignment).where(*mine_there)
    if role == "reviewer" and db.scalar(query.limit(1)) is not None:
        raise InputError(
            f"{account.email} has reviewed in '{study}': disable the account instead, the reviews"
            " stay"
        )
    if role == "reviewer":
        numbers = [*db.scalars(select(Assignment.id).where(*mine_there))]
        db.execute(delete(Draft).where(Draft.assignment_id.in_(numbers)))
        db.execute(delete(Assignment).where(Assignment.id.in_(numbers)))
    db.delete(right)
    note(db, "revoked", who=who, study=study, role=role, of=account.email)


def studies_with(db: Session, account: int, role: str) -> frozenset[str]:
    """Return the names of the studies in which an account has a role."""
    query = select(Right.study_id).where(Right.account_id == account, Right.role == role)
    return frozenset(db.scalars(query))


def names_of(db: Session, accounts: Collection[int | None]) -> dict[int | None, str]:
    """Return the names of accounts."""
    query = select(Account.id, Account.name).where(
        Account.id.in_([account for account in accounts if account is not None])
    )
    return {number: name for number, name in db.execute(query)}


def everybody(db: Session) -> list[tuple[Account, list[Right]]]:
    """Return all accounts by address, each with its roles."""
    rights: dict[int, list[Right]] = {}
    for right in db.scalars(select(Right).order_by(Right.study_id, Right.role)):
        rights.setdefault(right.account_id, []).append(right)
    accounts_found = db.scalars(select(Account).order_by(Account.email))
    return [(account, rights.get(account.id, [])) for account in accounts_found]


def study_names(db: Session) -> list[str]:
    """Return the names of all studies."""
    return [*db.scalars(select(Study.id).order_by(Study.id))]
