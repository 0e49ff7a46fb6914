"""Studies, their entries, and who is to review what."""

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.clock import now
from medassay.errors import GateError, InputError
from medassay.review.form import FORMS, clean
from medassay.review.sampling import assign, draw_key
from medassay.review.store.accounts import roles_of
from medassay.review.store.schema import Account, Assignment, Entry, Right, Study
from medassay.review.store.trail import note

_NAME = re.compile("[a-z0-9][a-z0-9-]{0,59}")
MOST_OVERLAP = 99


class StudySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator may choose of a study.

    `flagged_below` is of a mean score: 3, which is a total of 9 in three aspects. `least_all` is
    the share of entries that all reviewers must find right for the set to be accepted.
    `again_months` is after how long an item is due for review again.
    """

    due: str = ""
    protocol: str = ""
    least_all: float = 0.7
    again_months: int = 12
    source: Mapping[str, Any] = msgspec.field(default_factory=dict)


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as it comes from a bank, a run or a workshop."""

    item: str
    content: Mapping[str, Any]
    hidden: Mapping[str, Any] = msgspec.field(default_factory=dict)
    category: str = ""
    iteration: str = ""
    training: bool = False


def create_study(  # noqa: PLR0913 -- each is a property of the study
    db: Session,
    name: str,
    form: str,
    *,
    who: str,
    title: str = "",
    seed: str = "0",
    overlap: int = 3,
    settings: StudySettings | None = None,
) -> Study:
    """Return a new study without entries.

    Raises
    ------
    InputError
        When the name is taken or no name, the form is not known, or the overlap is out of range.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"study '{name[:60]}': expected a name of a-z, 0-9 and '-', up to 60 characters; it"
            " stands in addresses"
        )
    if db.get(Study, name) is not None:
        raise InputError(f"study '{name}': is there already; choose another name")
    if form not in FORMS:
        raise InputError(f"form '{form[:40]}': expected {', '.join(sorted(FORMS))}")
    if not 1 <= overlap <= MOST_OVERLAP:
        raise InputError(f"{overlap} reviewers an entry; expected 1 to {MOST_OVERLAP}")
    chosen = settings or StudySettings()
    study = Study(
        id=name,
        title=one_line(title)[:200] or name,
        form=form,
        seed=one_line(seed)[:60],
        overlap=overlap,
        settings=msgspec.structs.asdict(chosen) | {"source": dict(chosen.source)},
        made_at=now(),
    )
    db.add(study)
    note(db, "study made", who=who, study=name, form=form, overlap=overlap, seed=seed)
    db.flush()
    return study


def checked_day(text: str) -> str:
    """Return a day, empty for none.

    Raises
    ------
    InputError
        When it is none.
    """
    if text:
        try:
            dt.date.fromisoformat(text)
        except ValueError:
            raise InputError(f"due '{text[:20]}': expected a day such as 2027-01-31") from None
    return text


def one_line(text: str) -> str:
    """Return a text as one line without what no database takes."""
    return " ".join(clean(text).split())


def add_entries(db: Session, study: Study, entries: Iterable[NewEntry], *, who: str) -> int:
    """Add entries behind those there are, and return how many.

    Reviewers see those of training first.

    Raises
    ------
    GateError
        When the study is closed.
    InputError
        When there is none.
    """
    hold(db, study)
    query = select(Entry.item, Entry.sha256, Entry.iteration).where(Entry.study_id == study.id)
    there = {tuple(row) for row in db.execute(query)}
    last = db.scalar(select(func.max(Entry.number)).where(Entry.study_id == study.id)) or 0
    entries_made = []
    for number, entry in enumerate(entries, last + 1):
        if not (entry.item + entry.category + entry.iteration).isprintable():
            raise InputError(
                f"item {entry.item[:40]!r}: its id or category has characters that cannot be shown"
            )
        content, hidden = dict(entry.content), dict(entry.hidden)
        sha256 = sha256_hex(canonical({"content": content, "hidden": hidden}))
        if (entry.item, sha256, entry.iteration) in there:
            raise InputError(
                f"study '{study.id}': has '{entry.item}' already; nothing was added (another round"
                " is another --iteration)"
            )
        there.add((entry.item, sha256, entry.iteration))
        entries_made.append(
            Entry(
                study_id=study.id,
                number=number,
                item=entry.item,
                category=entry.category,
                iteration=entry.iteration,
                training=entry.training,
                content=content,
                hidden=hidden,
                sha256=sha256,
            )
        )
    if not entries_made:
        raise InputError(f"study '{study.id}': nothing to add; no entry was found")
    db.add_all(entries_made)
    db.flush()
    entries_hash = sha256_hex(canonical([entry.sha256 for entry in entries_made]))
    note(
        db,
        "entries added",
        who=who,
        study=study.id,
        entries=len(entries_made),
        sha256=entries_hash,
    )
    return len(entries_made)


def held(db: Session, name: str) -> Study:
    """Return a study that nobody closes before this transaction ends.

    Whoever closes it waits, or was before.
    """
    return db.get_one(Study, name, with_for_update={"read": True}, populate_existing=True)


def hold(db: Session, study: Study) -> None:
    """Keep a study for this transaction alone: what changes who reviews what, or which entries
    there are.

    Raises
    ------
    GateError
        When it was closed, also a moment ago.
    """
    db.refresh(study, with_for_update=True)
    refuse_closed(study)


def refuse_closed(study: Study) -> None:
    """Refuse to change what was closed.

    Raises
    ------
    GateError
        When the study is closed.
    """
    if study.closed_at is not None:
        raise GateError("the study was closed; nothing changes in it any more")


def reviewers_of(db: Session, study: str) -> list[Account]:
    """Return who reviews in a study, in the order in which they came."""
    query = (
        select(Account)
        .join(Right, Right.account_id == Account.id)
        .where(Right.study_id == study, Right.role == "reviewer", ~Account.disabled)
        .order_by(Right.alias)
    )
    return [*db.scalars(query)]


def assign_all(db: Session, study: Study, *, who: str) -> int:
    """Give every entry the reviewers that it lacks, and every reviewer the training items; return
    how many were given.

    Raises
    ------
    GateError
        When the study is closed.
    """
    hold(db, study)
    reviewers = [account.id for account in reviewers_of(db, study.id)]
    entries = [
        *db.scalars(
            select(Entry)
            .where(Entry.study_id == study.id, Entry.withdrawn.is_(None))
            .order_by(Entry.number)
        )
    ]
    rows = db.execute(
        select(Assignment.entry_id, Assignment.account_id, Assignment.revision).where(
            Assignment.study_id == study.id
        )
    )
    # What somebody has left undone who reviews no more is for others to do.
    active = set(reviewers)
    pairs = [(entry, who) for entry, who, revision in rows if revision or who in active]
    have = set(pairs)
    training = [entry.id for entry in entries if entry.training]
    ids_asked = [entry.id for entry in entries if not entry.training]
    counted = set(ids_asked)
    missing = [(e, r) for r in reviewers for e in training if (e, r) not in have]
    missing += assign(
        ids_asked,
        reviewers,
        study.overlap,
        study.seed,
        assigned=[pair for pair in pairs if pair[0] in counted],
    )
    give(db, study, missing)
    if missing:
        note(db, "assigned", who=who, study=study.id, assignments=len(missing))
    return len(missing)


def give(db: Session, study: Study, pairs: Sequence[tuple[int, int]]) -> None:
    """Assign (entry, reviewer) pairs, each reviewer's in an order of their own behind what they
    have.
    """
    of: dict[int, list[int]] = {}
    for entry, reviewer in pairs:
        of.setdefault(reviewer, []).append(entry)
    training = set(db.scalars(select(Entry.id).where(Entry.study_id == study.id, Entry.training)))
    for reviewer, entries in of.items():
        mine = (Assignment.study_id == study.id, Assignment.account_id == reviewer)
        number = db.scalar(select(func.max(Assignment.number)).where(*mine)) or 0
        turn = db.scalar(select(func.max(Assignment.turn)).where(*mine)) or 0

        def place(entry: int, reviewer: int = reviewer) -> tuple[bool, str]:
            return entry not in training, draw_key(study.seed, "order", reviewer, entry)

        for at, entry in enumerate(sorted(entries, key=place), 1):
            db.add(
                Assignment(
                    study_id=study.id,
                    entry_id=entry,
                    account_id=reviewer,
                    number=number + at,
                    turn=turn + at,
                )
            )
    db.flush()


def more_reviewers(db: Session, study: Study, entry: Entry, count: int) -> int:
    """Give one entry to more reviewers, specialists first and those with the least to do, and
    return to how many.
    """
    hold(db, study)
    have = set(db.scalars(select(Assignment.account_id).where(Assignment.entry_id == entry.id)))
    order = {"specialist": 0, "physician": 1}
    free = [reviewer for reviewer in reviewers_of(db, study.id) if reviewer.id not in have]
    load: dict[int, int] = {
        account: n
        for account, n in db.execute(
            select(Assignment.account_id, func.count())
            .where(Assignment.study_id == study.id)
            .group_by(Assignment.account_id)
        )
    }
    free.sort(
        key=lambda reviewer: (
            order.get(reviewer.qualification, 2),
            load.get(reviewer.id, 0),
            draw_key(study.seed, "more", entry.id, reviewer.id),
        )
    )
    give(db, study, [(entry.id, reviewer.id) for reviewer in free[:count]])
    return len(free[:count])


def withdraw(db: Session, study: Study, number: int, why: str, *, who: str) -> None:
    """Take an entry out of a study; reviews of it stay, and are no longer counted.

    Raises
    ------
    InputError
        When there is no such entry, or no reason.
    """
    hold(db, study)
    entry = entry_at(db, study.id, number)
    if not why.strip():
        raise InputError("withdraw: a reason is needed; the reviewers read it")
    entry.withdrawn = one_line(why)[:500]
    note(db, "withdrawn", who=who, study=study.id, entry=number, why=entry.withdrawn)


def entry_at(db: Session, study: str, number: int) -> Entry:
    """Return an entry of a study by its number.

    Raises
    ------
    InputError
        When there is none.
    """
    row = db.scalar(select(Entry).where(Entry.study_id == study, Entry.number == number))
    if row is None:
        raise InputError(f"study '{study}': has no entry {number}")
    return row


def studies_of(db: Session, account: Account) -> list[tuple[Study, frozenset[str]]]:
    """Return the studies in which somebody has a role, newest first."""
    query = (
        select(Study)
        .where(Study.id.in_(select(Right.study_id).where(Right.account_id == account.id)))
        .order_by(Study.made_at.desc(), Study.id)
    )
    return [(study, roles_of(db, account.id, study.id)) for study in db.scalars(query)]
