"""A journal: append-only segments, one a process; a record is done when its line is written.

The records of a run are its trials, in a second journal its verdicts. A line is
`{"score":{…},"timing":{…},"record":{…}}`, record and score in their final canonical form, so that
sealing copies bytes and writes nothing anew. A torn last line is dropped, its record is redone.

A process that only writes holds a `Segment`; a `Journal` also knows where every line lies.
"""

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import msgspec

from medassay.core.canonical import canonical
from medassay.core.private import make_folder, open_file
from medassay.core.records.sealed_object import JournalObject, TimingObject
from medassay.errors import IntegrityError
from medassay.storage.jsonl import append_line

JOURNAL = "journal"  # folder of the trials that were asked
VERDICTS = "verdicts"  # folder of the verdicts that judges gave, and name of their file
_SCORE, _TIMING, _RECORD = b'{"score":', b',"timing":', b',"record":'


class JournalLine(msgspec.Struct, frozen=True):
    """One journalled record.

    Record and score are canonical JSON, `b"null"` where there is no score.
    """

    number: int
    record: bytes
    score: bytes
    timing: bytes


class _Head(msgspec.Struct):
    """What resuming needs of a line."""

    record: Any


_head_of = msgspec.json.Decoder(_Head).decode
NumberOf = Callable[[JournalObject], int | None]


class RecordWriter(Protocol):
    """Where a stage writes its records: a journal, or a segment of one."""

    def append(self, number: int | None, record: bytes, score: bytes, timing: TimingObject) -> None:
        """Write one record; with number None it is kept but not done (a failure)."""

    def sync(self) -> None:
        """Bring everything written so far to the disk."""

    def close(self) -> None:
        """Bring everything to the disk and write no more."""


class RecordPlaces(msgspec.Struct, frozen=True):
    """Where the lines of some records lie in one segment: parallel arrays."""

    segment: str
    numbers: "array[int]"
    offsets: "array[int]"
    lengths: "array[int]"


class Segment:
    """One file of a journal that this process alone appends to; it is made with the first line.

    Parameters
    ----------
    name : of the file, without `.jsonl`; no other process may choose it
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.jsonl"
        self._file: int | None = None
        self._offset = 0

    def write(self, record: bytes, score: bytes, timing: TimingObject) -> tuple[int, int]:
        """Write one line; return its offset and its length in bytes."""
        if self._file is None:
            self._file = open_file(self.path, os.O_WRONLY | os.O_EXCL | os.O_APPEND)
        parts = (_SCORE, score, _TIMING, canonical(timing), _RECORD, record, b"}\n")
        line = b"".join(parts)
        append_line(self._file, self.path, line)
        offset = self._offset
        self._offset += len(line)
        return offset, len(line)

    @property
    def end(self) -> int:
        """Return how many bytes were written."""
        return self._offset

    def sync(self) -> None:
        """Ask the operating system to bring everything written so far to the disk."""
        if self._file is not None:
            os.fsync(self._file)

    def close(self) -> None:
        """Bring everything to the disk and close the file."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None


class Journal:
    """Appends lines and remembers where the line of each number lies."""

    def __init__(self, folder: Path, n_records: int) -> None:
        make_folder(folder)
        self.folder = folder
        self._segments = sorted(folder.glob("*.jsonl"))
        self._places = {path.name: at for at, path in enumerate(self._segments)}
        # Two machine numbers a record: a million cost 16 MB.
        self._at = array("q", [-1]) * n_records
        self._length = array("q", [0]) * n_records
        self._attempts: dict[int, int] = {}  # of records that were asked again
        self._own: Segment | None = None
        self.done = 0

    def resume(self, number_of: NumberOf) -> None:
        """Read earlier segments; `number_of` gives a record's number, None if it is not wanted."""
        for path in self._segments:
            self.read(path.name, number_of)

    def read(self, segment: str, number_of: NumberOf, *, offset: int = 0) -> None:
        """Read a segment from an offset on: what a process wrote that is no longer there to
        tell.
        """
        path, place = self.folder / segment, self._place(segment)
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if line.endswith(b"\n"):
                    self._take(place, offset, line, path, number_of)
                offset += len(line)

    def _place(self, segment: str) -> int:
        if segment not in self._places:
            self._places[segment] = len(self._segments)
            self._segments.append(self.folder / segment)
        return self._places[segment]

    def _take(self, place: int, offset: int, line: bytes, path: Path, number_of: NumberOf) -> None:
        try:
            record = _head_of(line).record
            number = number_of(record)
            failed = record["outcome"] == "failed"
        except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, ValueError):
            raise IntegrityError(
                f"{path.name} at byte {offset}: not a journal line; restore the file"
            ) from None
        if number is not None and not failed:
            # Segments come in no order: of a record that was asked again, the last attempt counts.
            attempt = record.get("attempt", 0)
            if attempt < self._attempts.get(number, 0):
                return
            if attempt:
                self._attempts[number] = attempt
            self._note(number, place, offset, len(line))

    def failures(self, number_of: NumberOf) -> dict[int, str]:
        """Return the reason of the last failure of each record that failed and was never done."""
        reasons: dict[int, str] = {}
        for path in self._segments:
            with path.open("rb") as file:
                # A torn last line is redone; most lines are no failures, and are not read.
                for line in file:
                    if b'"outcome":"failed"' not in line or not line.endswith(b"\n"):
                        continue
                    record = _head_of(line).record
                    number = number_of(record) if record["outcome"] == "failed" else None
                    if number is not None and not self.is_done(number):
                        reasons[number] = record["reason"]
        return reasons

    def _note(self, number: int, place: int, offset: int, length: int) -> None:
        if self._at[number] < 0:
            self.done += 1
        self._at[number] = (place << 44) | offset
        self._length[number] = length

    def note(self, noted: RecordPlaces) -> None:
        """Take over what another process says it wrote to a segment of this journal."""
        place = self._place(noted.segment)
        for line_place in zip(noted.numbers, noted.offsets, noted.lengths, strict=True):
            self._note(line_place[0], place, line_place[1], line_place[2])

    def forget(self, number: int) -> None:
        """Let a record be done once more.

        The line that is there stays, and counts until there is another one.
        """
        if self._at[number] >= 0:
            self._at[number] = -1
            self.done -= 1

    def is_done(self, number: int) -> bool:
        """Return whether this record is there."""
        return self._at[number] >= 0

    def append(self, number: int | None, record: bytes, score: bytes, timing: TimingObject) -> None:
        """Write one record; with number None it is kept but not done (a failure)."""
        if self._own is None:
            # Unique on every machine: what two of them wrote may meet in an object store.
            self._own = Segment(self.folder, f"d-{token_hex(6)}")
        offset, length = self._own.write(record, score, timing)
        place = self._place(self._own.path.name)
        if number is not None:
            self._note(number, place, offset, length)

    @property
    def growing(self) -> Path | None:
        """Return the segment that this process writes, None while it wrote nothing."""
        return None if self._own is None else self._own.path

    def sync(self) -> None:
        """Ask the operating system to bring everything written so far to the disk."""
        if self._own is not None:
            self._own.sync()

    def close(self) -> None:
        """Bring everything to the disk and close the segment; a later record begins another one."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def lines(self) -> Iterator[JournalLine]:
        """Yield every record that is done, by number."""
        with _Files(self._segments) as files:
            for number, at in enumerate(self._at):
                if at >= 0:
                    line = files.read(at >> 44, self._length[number], at & ((1 << 44) - 1))
                    score, timing = len(_SCORE), line.index(_TIMING)
                    record = line.index(_RECORD, timing)
                    yield JournalLine(
                        number=number,
                        score=line[score:timing],
                        timing=line[timing + len(_TIMING) : record],
                        record=line[record + len(_RECORD) : -2],
                    )


class _Files:
    """The segments of a journal, each opened when it is read.

    Never more than a process may open.
    """

    _MAX_OPEN = 200

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._open: dict[int, int] = {}

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._open.values():
            os.close(file)

    def read(self, place: int, length: int, offset: int) -> bytes:
        """Return some bytes of one segment."""
        if (file := self._open.get(place)) is None:
            if len(self._open) >= self._MAX_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            file = self._open[place] = os.open(self._paths[place], os.O_RDONLY)
        return os.pread(file, length, offset)
