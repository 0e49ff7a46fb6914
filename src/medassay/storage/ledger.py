"""The ledger of a site: one line for every publication, change of status and step of a dispute,
chained by hash.

A line is `{"hash", "prev", "record"}` in canonical JSON, signed lines also have a `signature`: h₀
is 64 zeros, hᵢ the SHA-256 of the 32 bytes of hᵢ₋₁ and the canonical record. Whoever kept one hash
can tell whether anything before it was changed.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from medassay.core.canonical import canonical
from medassay.core.files import write_whole
from medassay.core.json import parse_json
from medassay.core.ledger import LEDGER, PUBLICATION_ID, LedgerEntry, LedgerObject
from medassay.errors import IncompleteError, InputError, IntegrityError
from medassay.storage.merkle import MerkleTree
from medassay.storage.signature import Signer, signed

START = "0" * 64


def chained(prev: str, record: Mapping[str, Any]) -> str:
    """Return the hash of a record that follows the hash `prev`.

    Examples
    --------
    >>> chained(START, {"a": 1})[:16]
    'b06a229070741292'
    """
    return hashlib.sha256(bytes.fromhex(prev) + canonical(record)).hexdigest()


def read_ledger(folder: Path) -> list[LedgerEntry]:
    """Return the entries of a site's ledger, none where there is no ledger yet.

    Raises
    ------
    IntegrityError
        Naming the first line that is not what was chained.
    """
    path = folder / LEDGER
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    if lines[-1]:
        raise IntegrityError(f"{LEDGER}: its last line is incomplete")
    entries: list[LedgerEntry] = []
    for number, line in enumerate(lines[:-1], 1):
        prev = entries[-1].hash if entries else START
        entries.append(_entry(line, prev, f"{LEDGER} line {number}"))
    return entries


def _entry(line: bytes, prev: str, where: str) -> LedgerEntry:
    """Return what a line says, or say that it is not what was chained behind `prev`."""
    document = parse_json(line, where, IntegrityError)
    record = document.get("record") if isinstance(document, dict) else None
    if not isinstance(record, dict) or canonical(document) != line:
        raise IntegrityError(f"{where}: not a line that was written")
    line_record = cast(LedgerObject, record)
    if not _is_complete(line_record):
        raise IntegrityError(
            f"{where}: neither a publication, a change of status nor a step of a dispute"
        )
    signature = document.pop("signature", None)
    expected = chained(prev, record)
    if document != {"record": record, "prev": prev, "hash": expected}:
        raise IntegrityError(f"{where}: does not follow the line before it")
    if signature is not None and not signed(signature, expected):
        raise IntegrityError(f"{where}: its signature is not of this line")
    return LedgerEntry(record=line_record, prev=prev, hash=expected, signature=signature)


def _is_complete(record: LedgerObject) -> bool:
    """Return whether a record says what every reader of the ledger asks for."""
    try:
        entry = msgspec.convert(record, _StatusRecord | _PublicationRecord | _DisputeRecord)
    except msgspec.ValidationError:
        return False
    # It names folders: a ledger may come from anywhere.
    return PUBLICATION_ID.fullmatch(entry.publication) is not None


class _StatusRecord(msgspec.Struct, tag_field="event", tag="status"):
    """A change of status, as far as every reader of the ledger asks for it."""

    publication: str
    at: str
    status: str
    reason: str
    next: str | None = None


class _DisputeRecord(msgspec.Struct, tag_field="event", tag="dispute"):
    """A step of a dispute, as far as every reader of the ledger asks for it."""

    publication: str
    at: str
    step: Literal["opened", "answered", "closed"]
    dispute: int


class _PublicationRecord(msgspec.Struct, tag_field="event", tag="publication"):
    """A publication, as far as every reader of the ledger asks for it."""

    publication: str
    at: str
    run: str
    methodology: str
    root: str
    sums_sha256: str
    banks: list[Any]


def append_entry(folder: Path, record: LedgerObject, signer: Signer | None = None) -> LedgerEntry:
    """Add a record to the ledger of a site, whole or not at all; the site must be locked.

    Raises
    ------
    InputError
        If the last line is signed and this one would not be: readers would miss the signature.
    """
    entries = read_ledger(folder)
    prev = entries[-1].hash if entries else START
    if signer is None and entries and entries[-1].signature:
        raise InputError(
            f"{folder / LEDGER}: its last line is signed by {entries[-1].signer}; sign with --key"
        )
    line_hash = chained(prev, record)
    line: dict[str, Any] = {"record": record, "prev": prev, "hash": line_hash}
    signature = None if signer is None else signer.sign(line_hash)
    if signature is not None:
        line |= {"signature": signature}
    path = folder / LEDGER
    before = path.read_bytes() if path.exists() else b""
    write_whole(path, before + canonical(line) + b"\n", mode=0o644)
    return LedgerEntry(record=record, prev=prev, hash=line_hash, signature=signature)


class LedgerHead(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for a whole ledger: size, Merkle root over its records, last hash.

    Whoever keeps it can tell later whether the ledger has only grown (`consistency_proof`).
    """

    schema_version: int = 1
    size: int
    root: str
    hash: str
    signature: dict[str, str] | None


def head_of(entries: Sequence[LedgerEntry]) -> LedgerHead:
    """Return the head of a ledger."""
    tree = MerkleTree()
    for entry in entries:
        tree.add(canonical(entry.record))
    return LedgerHead(
        size=tree.count,
        root=tree.root().hex(),
        hash=entries[-1].hash,
        signature=entries[-1].signature,
    )


def head_line(entries: Sequence[LedgerEntry]) -> bytes:
    """Return the bytes of the file with the head of a ledger."""
    return canonical(msgspec.to_builtins(head_of(entries))) + b"\n"


def is_locked(folder: Path) -> bool:
    """Return whether a process is publishing to a site on this machine."""
    try:
        file = os.open(folder / ".lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


@contextmanager
def lock_site(folder: Path) -> Iterator[None]:
    """Hold a site for oneself; a second publisher is refused.

    Raises
    ------
    IncompleteError
        When another process is publishing to the site.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW  # no link leads to a file elsewhere
    with open(os.open(folder / ".lock", flags, 0o666), "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IncompleteError(
                f"{folder}: another process is publishing to this site; nothing was written, try "
                "again when it is done"
            ) from None
        yield
