"""The audit trail, chained by hash, and the access log."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from medassay.core.clock import now
from medassay.errors import IntegrityError
from medassay.review.store.schema import Access, Head, TrailLine
from medassay.storage.ledger import START, chained

_TRAIL = "trail"


def note(db: Session, event: str, *, who: str, study: str | None = None, **detail: Any) -> None:
    """Add a line to the trail, in the transaction that does what it tells."""
    head = db.get(Head, _TRAIL, with_for_update=True)
    if head is None:
        head = Head(name=_TRAIL, hash=START)
        db.add(head)
    record = {"event": event, "at": now(), "who": who, "study": study, **detail}
    line = TrailLine(study_id=study, record=record, prev=head.hash, hash=chained(head.hash, record))
    db.add(line)
    head.hash = line.hash
    db.flush()


def line_record(line: TrailLine) -> dict[str, str]:
    """Return a line as pages show it: when, who, what, in which study, and the rest as JSON."""
    columns = ("event", "at", "who", "study")
    rest = {key: value for key, value in line.record.items() if key not in columns}
    return {
        **{key: line.record[key] for key in columns},
        "detail": json.dumps(rest, ensure_ascii=False)[:500],
        "hash": line.hash,
    }


def check_trail(db: Session) -> str:
    """Return the last hash of the trail, after computing every line's again.

    Raises
    ------
    IntegrityError
        Naming the first line that is not what was chained.
    """
    prev = START
    for number, line in enumerate(db.scalars(select(TrailLine).order_by(TrailLine.id)), 1):
        if line.prev != prev or chained(prev, dict(line.record)) != line.hash:
            raise IntegrityError(f"audit trail, line {number}: is not what was written there")
        prev = line.hash
    head = db.get(Head, _TRAIL)
    if (START if head is None else head.hash) != prev:
        raise IntegrityError("audit trail: its last lines are missing")
    return prev


def trail_of(
    db: Session, studies: Collection[str] | None = None, *, most: int = 500
) -> list[TrailLine]:
    """Return the last lines, of some studies or of all, newest first."""
    query = select(TrailLine).order_by(TrailLine.id.desc()).limit(most)
    if studies is not None:
        query = query.where(TrailLine.study_id.in_(studies))
    return [*db.scalars(query)]


def log_access(db: Session, facts: Mapping[str, str | int | None], *, allowed: bool) -> int:
    """Note who opened what, or was refused, and return the number of the line."""
    line = Access(at=now(), allowed=allowed, **facts)
    db.add(line)
    db.flush()
    return line.id


def mark_refused(db: Session, number: int) -> None:
    """Note that what a line tells was refused after all."""
    db.execute(update(Access).where(Access.id == number).values(allowed=False))


def accesses(
    db: Session,
    *,
    studies: Collection[str] | None = None,
    account: int | None = None,
    most: int = 500,
) -> list[Access]:
    """Return the last lines of the access log, newest first."""
    query = select(Access).order_by(Access.id.desc()).limit(most)
    if studies is not None:
        query = query.where(Access.study_id.in_(studies))
    if account is not None:
        query = query.where(Access.account_id == account)
    return [*db.scalars(query)]
