"""JSON Lines, read as a stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medassay.core.jsontext import parse_record
from medassay.errors import InputError, IntegrityError


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, one a line.

    Raises
    ------
    IntegrityError
        Naming the file and the line that is not a JSON object.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                record = parse_record(line, f"{path.name} line {number}")
            except InputError as error:
                raise IntegrityError(str(error)) from None
            if not isinstance(record, dict):
                raise IntegrityError(f"{path.name} line {number}: not a JSON object")
            yield record
