"""The records of a run that is not finished, read from its journal while others may write to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from medassay.errors import IntegrityError


class JournalRecord(NamedTuple):
    """A journalled record with its score and timing, each as JSON; `null` where there is none."""

    record: bytes
    score: bytes
    timing: bytes


_Place = tuple[str, str, str, str, str, int, str]


class _Named(msgspec.Struct):
    """What tells which record a line holds, and which of two attempts counts."""

    domain: str
    model: str
    setting: str
    mode: str
    item: str
    repeat: int
    outcome: str
    judge: str = ""
    attempt: int = 0

    @property
    def place(self) -> _Place:
        """Return what makes the record unique."""
        cell = (self.domain, self.model, self.setting, self.mode)
        return (*cell, self.item, self.repeat, self.judge)


class _Line(msgspec.Struct):
    record: _Named


class _Parts(msgspec.Struct):
    record: msgspec.Raw
    score: msgspec.Raw = msgspec.Raw(b"null")
    timing: msgspec.Raw = msgspec.Raw(b"null")


_named = msgspec.json.Decoder(_Line).decode
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
    places: dict[_Place, tuple[bool, int, Path, int, int]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        offset = 0
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                named = _decoded(line, path, offset)
                place = named.place
                rank = (named.outcome != "failed", named.attempt)
                if place not in places or places[place][:2] <= rank:
                    places[place] = (*rank, path, offset, len(line))
                offset += len(line)
    for place in sorted(places):
        *_, path, offset, length = places[place]
        with path.open("rb") as file:
            file.seek(offset)
            parts = _parts(file.read(length))
        yield JournalRecord(bytes(parts.record), bytes(parts.score), bytes(parts.timing))


def _decoded(line: bytes, path: Path, offset: int) -> _Named:
    try:
        return _named(line).record
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise IntegrityError(
            f"{path.name} at byte {offset}: not a journal line; restore the file"
        ) from None
