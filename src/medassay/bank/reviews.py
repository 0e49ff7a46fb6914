"""What people said of a bank, in numbers: `REVIEWS.json` beside its items, one entry a closed
study.

It is no part of a version, as `CHANGES.md` is none: items stay what they are when somebody looks at
them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import canonical
from medassay.core.files import write_whole
from medassay.core.json import parse_json
from medassay.errors import InputError

REVIEWS = "REVIEWS.json"


class ReviewerGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Reviewers of one qualification, or all: means of their scores from 1 to 5 and of the total of
    15, how many they are, how many ratings they gave.
    """

    qualification: str
    question: float
    answer: float
    path: float
    total: float
    reviewers: int
    reviews: int


class ReviewedBank(msgspec.Struct, frozen=True, kw_only=True):
    """What one closed study found: under which version, hash and date, of how many items, and by
    whom.
    """

    study: str
    version: str
    closed_at: str
    sha256: str
    items: int
    any_low: int
    below_nine: int
    flagged: int
    harm: int
    groups: tuple[ReviewerGroup, ...]


class _ReviewsFile(msgspec.Struct):
    """What the file holds; older ones are the list alone."""

    reviews: tuple[ReviewedBank, ...]
    schema_version: int = 1


def read_reviews(folder: Path) -> tuple[ReviewedBank, ...]:
    """Return what is noted of a bank's reviews, nothing where there is no such file.

    Raises
    ------
    InputError
        When the file is not as `note_reviews` writes it.
    """
    path = folder / REVIEWS
    if not path.exists():
        return ()
    document = parse_json(path.read_bytes(), f"{folder.name}/{REVIEWS}")
    try:
        file = msgspec.convert(document, _ReviewsFile | tuple[ReviewedBank, ...])
    except msgspec.ValidationError:
        raise InputError(
            f"{folder.name}/{REVIEWS}: expected what `medassay review export --bank` writes"
        ) from None
    return file.reviews if isinstance(file, _ReviewsFile) else file


def note_reviews(folder: Path, reviewed_bank: ReviewedBank) -> None:
    """Note what a study found, whole or not at all.

    The same study again takes the place of what it said.
    """
    others = [entry for entry in read_reviews(folder) if entry.study != reviewed_bank.study]
    _write(folder / REVIEWS, [*others, reviewed_bank])


def as_records(entries: Sequence[ReviewedBank]) -> list[dict[str, Any]]:
    """Return entries as plain JSON values."""
    return [_plain(entry) for entry in entries]


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    """Return a record with lists for tuples; numbers that JSON lacks stay, and are refused."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def _write(path: Path, entries: Sequence[ReviewedBank]) -> None:
    line = canonical(_plain(_ReviewsFile(tuple(entries)))) + b"\n"
    write_whole(path, line)
