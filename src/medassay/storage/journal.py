"""A journal: append-only segments, one a process; a record is done when its line is written.

The records of a run are its trials, in a second journal its verdicts. A line is
`{"score":{…},"timing":{…},"record":{…}}`, record and score in their final canonical form, so that
sealing copies bytes and writes nothing anew. A torn last line is dropped, its record is redone.
"""

import json
import os
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical
from medassay.errors import IntegrityError

_SCORE, _TIMING, _RECORD = b'{"score":', b',"timing":', b',"record":'


@dataclass(frozen=True, slots=True)
class Line:
    """One journalled record; record and score are canonical JSON, `b"null"` where there is no score."""

    number: int
    record: bytes
    score: bytes
    timing: bytes


class Journal:
    """Appends lines and remembers where the line of each number lies."""

    def __init__(self, folder: Path, n_records: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._segments = sorted(folder.glob("*.jsonl"))
        # Two machine numbers a record: a million cost 16 MB.
        self._at = array("q", [-1]) * n_records
        self._length = array("q", [0]) * n_records
        self._file: int | None = None
        self._offset = 0
        self._number = len(self._segments)
        self.done = 0

    def resume(self, number_of: Callable[[dict[str, Any]], int | None]) -> None:
        """Read earlier segments; `number_of` gives a record's number, None if it is not wanted."""
        for segment, path in enumerate(self._segments):
            offset = 0
            with path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        self._take(segment, offset, line, path, number_of)
                    offset += len(line)

    def _take(
        self,
        segment: int,
        offset: int,
        line: bytes,
        path: Path,
        number_of: Callable[[dict[str, Any]], int | None],
    ) -> None:
        try:
            record = json.loads(line)["record"]
        except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
            raise IntegrityError(
                f"{path.name} at byte {offset}: not a journal line; restore the file"
            ) from None
        number = number_of(record)
        if number is not None and record["outcome"] != "failed":
            self._note(number, segment, offset, len(line))

    def _note(self, number: int, segment: int, offset: int, length: int) -> None:
        if self._at[number] < 0:
            self.done += 1
        self._at[number] = (segment << 44) | offset
        self._length[number] = length

    def is_done(self, number: int) -> bool:
        """Return whether this record is there."""
        return self._at[number] >= 0

    def append(
        self, number: int | None, record: bytes, score: bytes, timing: dict[str, Any]
    ) -> None:
        """Write one record; with number None it is kept but not done (a failure)."""
        if self._file is None:
            path = self._folder / f"{self._number:05}.jsonl"
            self._file = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644
            )
            self._segments.append(path)
        parts = (_SCORE, score, _TIMING, canonical(timing), _RECORD, record, b"}\n")
        line = b"".join(parts)
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(28, "the disk took only part of a line; free some space and resume")
        if number is not None:
            self._note(number, self._number, self._offset, len(line))
        self._offset += len(line)

    def sync(self) -> None:
        """Ask the operating system to bring everything written so far to the disk."""
        if self._file is not None:
            os.fsync(self._file)

    def close(self) -> None:
        """Bring everything to the disk and close the segment."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None

    def lines(self) -> Iterator[Line]:
        """Yield every record that is done, by number."""
        files = [os.open(path, os.O_RDONLY) for path in self._segments]
        try:
            for number, at in enumerate(self._at):
                if at >= 0:
                    line = os.pread(files[at >> 44], self._length[number], at & ((1 << 44) - 1))
                    score, timing = len(_SCORE), line.index(_TIMING)
                    record = line.index(_RECORD, timing)
                    yield Line(
                        number=number,
                        score=line[score:timing],
                        timing=line[timing + len(_TIMING) : record],
                        record=line[record + len(_RECORD) : -2],
                    )
        finally:
            for file in files:
                os.close(file)
