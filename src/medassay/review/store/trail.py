"""The audit trail, chained by hash, and the access log."""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from medassay.errors import IntegrityError
from medassay.review.store.database import now
from medassay.review.store.schema import Access, Head, TrailLine
from medassay.storage.ledger import START, chained

_TRAIL = "trail"


def note(
    db: Session, event: str, *, who: str, study: str | None = None, **detail: Any
) -> TrailLine:
    """Add a line to the trail, in the transaction that does what it tells."""
    head = db.get(Head, _TRAIL, with_for_update=True)
    if head is None:
        head = Head(name=_TRAIL, hash=START)
        db.add(head)
    record = {"event": event, "at": now(), "who": who, "study": study, **detail}
    line = TrailLine(
        study_id=study, record=record, prev=head.hash, hash=chained(head.hash, record)
    )
    db.add(line)
    head.hash = line.hash
    db.flush()
    return line


def check_trail(db: Session) -> str:
    """Return the last hash of the trail, after computing every line's again.

    Raises
    ------
    IntegrityError
        Naming the first line that is not what was chained.
    """
    prev = START
    for number, line in enumerate(_lines(db), 1):
        if line.prev != prev or chained(prev, dict(line.record)) != line.hash:
            raise IntegrityError(f"audit trail, line {number}: is not what was written there")
        prev = line.hash
    head = db.get(Head, _TRAIL)
    if (START if head is None else head.hash) != prev:
        raise IntegrityError("audit trail: its last lines are missing")
    return prev


def _lines(db: Session) -> Iterator[TrailLine]:
    return iter(db.scalars(select(TrailLine).order_by(TrailLine.id)))


def trail_of(db: Session, study: str | None = None, *, most: int = 500) -> list[TrailLine]:
    """Return the last lines, of one study or of all, newest first."""
    wanted = select(TrailLine).order_by(TrailLine.id.desc()).limit(most)
    return [*db.scalars(wanted if study is None else wanted.where(TrailLine.study_id == study))]


def log_access(db: Session, seen: Mapping[str, Any], *, allowed: bool) -> None:
    """Note who opened what, or was refused."""
    db.add(Access(at=now(), allowed=allowed, **seen))


def accesses(
    db: Session, *, study: str | None = None, account: int | None = None, most: int = 500
) -> list[Access]:
    """Return the last lines of the access log, newest first."""
    wanted = select(Access).order_by(Access.id.desc()).limit(most)
    if study is not None:
        wanted = wanted.where(Access.study_id == study)
    if account is not None:
        wanted = wanted.where(Access.account_id == account)
    return [*db.scalars(wanted)]
