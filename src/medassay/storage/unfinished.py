"""The records of a run that is not finished, read from its journal while others may write to it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from medassay.core.records.trial import TrialKey, TrialLine
from medassay.errors import IntegrityError


class JournalRecord(NamedTuple):
    """A journalled record with its score and timing, each as JSON, `null` where there is none; and
    where it stands.
    """

    record: bytes
    score: bytes
    timing: bytes
    where: str


_Place = tuple[TrialKey, str]  # of the trial, and who judged it
_T = TypeVar("_T")


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
    with ExitStack() as stack:
        # Opened at once: a segment that is removed while its run is sealed can be read on.
        files = [stack.enter_context(path.open("rb")) for path in sorted(folder.glob("*.jsonl"))]
        places = _places(files)
        for place in sorted(places):
            _, _, number, offset, length = places[place]
            files[number].seek(offset)
            where = f"{Path(files[number].name).name} at byte {offset}"
            parts = _decoded(_parts, files[number].read(length), where)
            yield JournalRecord(bytes(parts.record), bytes(parts.score), bytes(parts.timing), where)


def _places(files: Sequence[BinaryIO]) -> dict[_Place, tuple[str, int, int, int, int]]:
    """Return the outcome and attempt of each record, and where its line lies: file, offset and
    length.
    """
    places: dict[_Place, tuple[str, int, int, int, int]] = {}
    for number, file in enumerate(files):
        offset = 0
        for line in file:
            if not line.endswith(b"\n"):
                break
            named = _decoded(_named, line, f"{Path(file.name).name} at byte {offset}").record
            place = named.place, named.judge
            before = places.get(place)
            if before is None or _rank(*before[:2]) <= _rank(named.outcome, named.attempt):
                places[place] = (named.outcome, named.attempt, number, offset, len(line))
            offset += len(line)
    return places


def _rank(outcome: str, attempt: int) -> tuple[bool, int]:
    """Return what decides between two lines of one record."""
    return outcome != "failed", attempt


def _decoded(decode: Callable[[bytes], _T], line: bytes, where: str) -> _T:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise IntegrityError(f"{where}: not a journal line; restore the file") from None


def journal_outcomes(folder: Path) -> Counter[str]:
    """Return how many records a journal holds of each outcome, each counted once; see
    `read_journal`.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in sorted(folder.glob("*.jsonl"))]
        return Counter(outcome for outcome, *_ in _places(files).values())
