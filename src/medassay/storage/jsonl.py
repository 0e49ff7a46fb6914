"""JSON Lines: read as a stream, appended line by line."""

import errno
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from medassay.core.json import parse_record
from medassay.errors import IntegrityError

T = TypeVar("T")


def append_line(file: int, path: Path, line: bytes) -> None:
    """Append one line to an open file, whole or not at all: others may write behind it, and nothing
    may stand before them that is no line.

    Raises
    ------
    OSError
        Naming `path`, when the disk takes only a part of it, or nothing.
    """
    try:
        written = os.write(file, line)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    if written != len(line):
        os.ftruncate(file, os.fstat(file).st_size - written)
        raise OSError(errno.ENOSPC, "the disk took only part of a line", str(path))


def read_as(path: Path, kind: type[T]) -> Iterator[T]:
    """Yield what a `msgspec.Struct` takes of each object of a file; the rest is not even read.

    Raises
    ------
    IntegrityError
        Naming the file and the line that is no such object.
    """
    decode = msgspec.json.Decoder(kind).decode
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise IntegrityError(f"{path.name} line {number}: {error}") from None


def line_parts(path: Path, lines: int) -> Iterator[tuple[int, int]]:
    """Yield (offset in bytes, number of lines) of parts of a file, none with more lines than asked
    for.
    """
    with path.open("rb") as file:
        while True:
            offset = file.tell()
            n_lines = sum(1 for _ in islice(file, lines))
            if not n_lines:
                return
            yield offset, n_lines


def read_jsonl(path: Path, *, offset: int = 0, line: int = 1) -> Iterator[Any]:
    """Yield the objects of a file, one a line, from the line on that begins at an offset in bytes.

    Raises
    ------
    IntegrityError
        Naming the file and the line that is not a JSON object.
    """
    name = path.name
    with path.open("rb") as file:
        file.seek(offset)
        for number, text in enumerate(file, line):
            record = parse_record(text, f"{name} line {number}", IntegrityError)
            if not isinstance(record, dict):
                raise IntegrityError(f"{name} line {number}: not a JSON object")
            yield record
