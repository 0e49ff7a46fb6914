"""banks.lock: which content hash each bank version of a workspace has."""

import fcntl
import json
import os
from pathlib import Path

from medassay.core.files import write_whole
from medassay.core.json import parse_json
from medassay.errors import InputError


def _read(lock: Path) -> dict[str, str]:
    if not lock.is_file():
        return {}
    document = parse_json(lock.read_bytes(), lock.name)
    entries = document.get("banks") if isinstance(document, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(v, str) for v in entries.values()):
        raise InputError(f"{lock.name}: expected bank versions with their hashes; restore the file")
    return entries


def registered_hash(lock: Path, version: str) -> str | None:
    """Return the content hash registered for a bank version, None if it is new here."""
    return _read(lock).get(version)


def register(lock: Path, version: str, content: str) -> None:
    """Bind a bank version to its content hash; a version once bound is never bound anew."""
    place = os.open(lock.absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)  # two releases at once would lose one of them
        versions = _read(lock)
        if versions.setdefault(version, content) != content:
            raise InputError(
                f"{lock.name}: {version} is already registered with another content hash"
            )
        document = {"schema_version": 1, "banks": dict(sorted(versions.items()))}
        write_whole(lock, f"{json.dumps(document, indent=2)}\n".encode())
    finally:
        os.close(place)
