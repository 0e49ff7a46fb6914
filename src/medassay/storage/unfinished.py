"""The records of a run that is not finished, read from its journal while others may write to it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from medassay.core.records.trial import TrialLine, TrialPlace
from medassay.errors import IntegrityError

_OPEN_FILES = 100


class JournalRecord(NamedTuple):
    """A journalled record with its score and timing, each as JSON; `null` where there is none."""

    record: bytes
    score: bytes
    timing: bytes


_Place = tuple[TrialPlace, str]  # of the trial, and who judged it


class _Named(TrialLine, frozen=True, kw_only=True):
    """What tells which record a line holds, and which of two attempts counts."""

    outcome: str
    judge: str = ""
    attempt: int = 0


class _JournalHead(msgspec.Struct):
    record: _Named


class _Parts(msgspec.Struct):
    record: msgspec.Raw
    score: msgspec.Raw = msgspec.Raw(b"null")
    timing: msgspec.Raw = msgspec.Raw(b"null")


_named = msgspec.json.Decoder(_JournalHead).decode
_parts = msgspec.json.Decoder(_Parts).decode


def read_journal(folder: Path) -> Iterator[JournalRecord]:
    """Yield the records in a journal, sorted as a sealed run sorts them.

    Of a record that was asked more than once the last attempt counts, and a failure only where
    nothing else is there. A line that is just being written is left out.

    Raises
    ------
    IntegrityError
        Naming the segment and the byte at which there is no such line.
    """
    places = _places(folder)
    with ExitStack() as stack:
        files: dict[Path, BinaryIO] = {}
        for place in sorted(places):
            _, _, path, offset, length = places[place]
            if path not in files:
                if len(files) == _OPEN_FILES:  # a run that was often started has many segments
                    stack.close()
                    files.clear()
                files[path] = stack.enter_context(path.open("rb"))
            files[path].seek(offset)
            parts = _parts(files[path].read(length))
            yield JournalRecord(bytes(parts.record), bytes(parts.score), bytes(parts.timing))


def _places(folder: Path) -> dict[_Place, tuple[str, int, Path, int, int]]:
    """Return the outcome and attempt of each record, and where its line lies."""
    places: dict[_Place, tuple[str, int, Path, int, int]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        offset = 0
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                named = _decoded(line, path, offset)
                place = named.place, named.judge
                before = places.get(place)
                if before is None or _rank(*before[:2]) <= _rank(named.outcome, named.attempt):
                    places[place] = (named.outcome, named.attempt, path, offset, len(line))
                offset += len(line)
    return places


def _rank(outcome: str, attempt: int) -> tuple[bool, int]:
    """Return what decides between two lines of one record."""
    return outcome != "failed", attempt


def _decoded(line: bytes, path: Path, offset: int) -> _Named:
    try:
        return _named(line).record
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise IntegrityError(
            f"{path.name} at byte {offset}: not a journal line; restore the file"
        ) from None


def journal_outcomes(folder: Path) -> Counter[str]:
    """Return how many records a journal holds of each outcome, each counted once; see
    `read_journal`.
    """
    return Counter(outcome for outcome, *_ in _places(folder).values())
