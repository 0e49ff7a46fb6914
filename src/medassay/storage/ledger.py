"""The ledger of a site: one line for every publication and every change of status, chained by hash.

A line is `{"hash", "prev", "record"}` in canonical JSON: h₀ is 64 zeros, hᵢ the SHA-256 of the 32 bytes of
hᵢ₋₁ and the canonical record. Whoever kept one hash can tell whether anything before it was changed.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical
from medassay.core.jsontext import parse_json
from medassay.core.ledger import LEDGER, Entry
from medassay.errors import GateError, InputError, IntegrityError

START = "0" * 64


def chained(prev: str, record: dict[str, Any]) -> str:
    """Return the hash of a record that follows the hash `prev`.

    Examples
    --------
    >>> chained(START, {"a": 1})[:16]
    'b06a229070741292'
    """
    return hashlib.sha256(bytes.fromhex(prev) + canonical(record)).hexdigest()


def read_ledger(folder: Path) -> list[Entry]:
    """Return the entries of a site's ledger, none where there is no ledger yet.

    Raises
    ------
    IntegrityError
        Naming the first line that is not what was chained.
    """
    path = folder / LEDGER
    if not path.exists():
        return []
    entries: list[Entry] = []
    prev = START
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        where = f"{LEDGER} line {number}"
        try:
            found = parse_json(line, where)
        except InputError as error:
            raise IntegrityError(str(error)) from None
        record = found.get("record") if isinstance(found, dict) else None
        if not isinstance(record, dict) or canonical(found) != line:
            raise IntegrityError(f"{where}: not a line that was written")
        expected = chained(prev, record)
        if found.get("prev") != prev or found.get("hash") != expected or len(found) != 3:
            raise IntegrityError(f"{where}: does not follow the line before it")
        entries.append(Entry(record=record, prev=prev, hash=expected))
        prev = expected
    if not path.read_bytes().endswith(b"\n") and path.stat().st_size:
        raise IntegrityError(f"{LEDGER}: its last line is cut off")
    return entries


def append_entry(folder: Path, record: dict[str, Any]) -> Entry:
    """Add a record to the ledger of a site, whole or not at all; the site must be locked."""
    entries = read_ledger(folder)
    prev = entries[-1].hash if entries else START
    entry = Entry(record=record, prev=prev, hash=chained(prev, record))
    path = folder / LEDGER
    before = path.read_bytes() if path.exists() else b""
    line = canonical({"record": record, "prev": prev, "hash": entry.hash}) + b"\n"
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(before + line)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return entry


@contextmanager
def lock_site(folder: Path) -> Iterator[None]:
    """Hold a site for oneself; a second publisher is refused.

    Raises
    ------
    GateError
        When another process is publishing to the site.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise GateError(
                f"{folder}: another process is publishing to this site; nothing was written, try "
                "again when it is done"
            ) from None
        yield
