"""The response store: every reply that was ever paid for, found again by what was asked.

The truth is in segments `responses/<hash>.jsonl.zst`, named by their content. While a process
writes, its records are in a plain segment under a lock; a process that died leaves its segment for
the next one to take over. `index.sqlite` only speeds up finding and can be deleted at any time.
"""

import errno
import fcntl
import hashlib
import os
import platform
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import msgspec
import platformdirs

from medassay.core.canonical import sha256_hex
from medassay.core.keyed import keyed
from medassay.core.private import close_to_others, make_folder, open_file
from medassay.core.records.completion import Completion, ReplyColumns, Usage
from medassay.errors import IncompleteError, IntegrityError
from medassay.storage.jsonl import append_line

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


_PATIENCE = 120.0  # seconds: another process may be reading a large segment into the index
_SNAPSHOT = 1.0  # seconds


class _SegmentLine(msgspec.Struct):
    """A line of a segment as the index needs it: the completion is copied, not read."""

    key: str
    completion: msgspec.Raw


class _UsedBy(msgspec.Struct):
    """A line of a segment as accounting needs it; what was only looked up has no usage."""

    key: str
    completion: Completion
    model: str = ""


T = TypeVar("T")
_used_of = msgspec.json.Decoder(_UsedBy).decode
_decode_stored = msgspec.json.Decoder(_SegmentLine).decode
_decode_completion = msgspec.json.Decoder(Completion).decode


def this_host() -> str:
    """Return a name of this machine that no other machine beside it has: processes that share it
    share a kernel and its locks.
    """
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    return re.sub(r"[^0-9A-Za-z]", "", platform.node())[:40] or "host"


def index_of(folder: Path) -> Path:
    """Return where this machine keeps its own index of the replies in a shared folder."""
    return platformdirs.user_cache_path("medassay") / "indexes" / sha256_hex(bytes(folder))[:16]


def request_key(constant: bytes, messages: bytes, repeat: int, attempt: int = 0) -> str:
    """Return the key under which the reply to a request is stored: a SHA-256.

    Parameters
    ----------
    constant : canonical JSON of what is equal for all requests of a model
    messages : canonical JSON of the messages
    """
    return sha256_hex(b"\x1f".join((constant, messages, b"%d,%d" % (repeat, attempt))))


def growing_name(name: str) -> str:
    """Return the file name of a segment that is being written."""
    return f"active-{name}.jsonl"


class ResponseStore:
    """Open for one process; a context manager. Where a request has two replies, since two processes
    asked at once, the one whose segment was finished first is found.

    Parameters
    ----------
    name : of the segment that this process writes, where others shall know it; no other process may
        choose it
    index : the folder of the index, if not that of the replies
    """

    def __init__(self, folder: Path, *, name: str = "", index: Path | None = None) -> None:
        self._folder = folder
        self._index_folder = index or folder
        make_folder(folder)
        make_folder(self._index_folder)
        try:
            self._index = self._open_index()
        except sqlite3.OperationalError as error:
            raise OSError(errno.EIO, f"responses/index.sqlite: {error}") from None
        except sqlite3.DatabaseError:  # damaged: it only speeds up finding, so it is made anew
            for path in self._index_folder.glob("index.sqlite*"):
                path.unlink()
            self._index = self._open_index()
        self._reader = self._connect()
        self._snapshot_ends = 0.0
        self._holds_any = True  # whether the snapshot has a reply: none in a new folder
        self.adopt()
        self._active: int | None = None
        self._active_path = folder / growing_name(name or token_hex(8))

    def _open_index(self) -> sqlite3.Connection:
        close_to_others(self._index_folder / "index.sqlite")  # its -wal and -shm follow it
        index = self._connect()
        try:
            index.execute("PRAGMA journal_mode=WAL")
            index.execute("PRAGMA synchronous=OFF")  # it can be rebuilt
            index.execute("CREATE TABLE IF NOT EXISTS segment (name TEXT PRIMARY KEY)")
            index.execute(
                "CREATE TABLE IF NOT EXISTS response (key TEXT PRIMARY KEY, body BLOB) WITHOUT"
                " ROWID"
            )
        except sqlite3.DatabaseError:
            index.close()
            raise
        return index

    def _connect(self) -> sqlite3.Connection:
        path = self._index_folder / "index.sqlite"
        return sqlite3.connect(path, check_same_thread=False, timeout=_PATIENCE)

    @property
    def growing(self) -> Path | None:
        """Return the segment that this process writes, None while it wrote nothing."""
        return None if self._active is None else self._active_path

    def __enter__(self) -> "ResponseStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def get(self, key: str) -> Completion | None:
        """Return the stored completion, None if this was never answered: what other processes
        finished within the last second may be missed, until `adopt`.
        """
        # Read from a snapshot: locking the index for each reply takes three times as long.
        if time.monotonic() >= self._snapshot_ends:
            self._end_snapshot()  # what other processes have indexed by now is read, for a second
            self._reader.execute("BEGIN")
            any_reply = self._reader.execute("SELECT EXISTS (SELECT 1 FROM response)")
            self._holds_any = bool(any_reply.fetchone()[0])
            self._snapshot_ends = time.monotonic() + _SNAPSHOT
        if not self._holds_any:
            return None
        row = self._reader.execute("SELECT body FROM response WHERE key = ?", (key,)).fetchone()
        return None if row is None else _decode_completion(row[0])

    def _end_snapshot(self) -> None:
        """Let the next look-up see all that is indexed by then; nothing holds old pages."""
        if self._reader.in_transaction:
            self._reader.commit()
        self._snapshot_ends = 0.0

    def put(self, key: str, completion: Completion, columns: ReplyColumns) -> None:
        """Append one reply; it is in the operating system's hands when this returns."""
        if self._active is None:
            self._active = self._begin(self._active_path)
        record = {"key": key, **columns, "completion": completion_to_dict(completion)}
        # Plain JSON: a segment is named by the hash of its bytes, whatever their form.
        line = msgspec.json.encode(record) + b"\n"
        append_line(self._active, self._active_path, line)

    def usages(self) -> dict[str, tuple[str, Usage]]:
        """Return key → (model, usage) of every stored reply, of each as it was stored first."""
        usages: dict[str, tuple[str, Usage]] = {}
        for path in self._segments():
            for record in self._decoded(path, _used_of):
                usages.setdefault(record.key, (record.model, record.completion.usage))
        return usages

    def _segments(self) -> list[Path]:
        """Return the finished segments in the order in which they were finished, as far as copies
        kept the times of files: an index that is made anew then finds the replies that the one
        before it found.
        """
        finished = []
        for path in self._folder.glob("*.jsonl.zst"):
            with suppress(FileNotFoundError):  # another process wrote it anew
                finished.append((path.stat().st_mtime_ns, path.name))
        return [self._folder / name for _, name in sorted(finished)]

    @staticmethod
    def _begin(path: Path) -> int:
        """Return a segment to be written, open: locked before it has the name by which others look
        for those without an owner.
        """
        draft = path.with_suffix(".new")
        file = open_file(draft, os.O_WRONLY | os.O_APPEND)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            draft.rename(path)
        except BaseException:
            os.close(file)
            raise
        return file

    def close(self) -> None:
        """Seal this process's segment and free the index; the lock is freed whatever happens."""
        try:
            if self._active is not None:
                os.fsync(self._active)
                self._compress(self._active_path)
            with suppress(OSError):  # a full disk, say: the next opening makes it good
                self.adopt()
        finally:
            if self._active is not None:
                os.close(self._active)
                self._active = None
            self._reader.close()
            self._index.close()

    def purge(self, matches: Callable[[dict[str, Any]], bool]) -> int:
        """Delete every stored reply that is wanted gone, and return how many; the rest stays.

        Raises
        ------
        IncompleteError
            When another process is writing such replies: they are its own until it ends. Nothing
            is deleted then.
        IntegrityError
            Naming a segment that is damaged.
        """
        self._end_snapshot()
        for path in self._folder.glob(growing_name("*")):
            if _holds(path, matches):
                raise IncompleteError(
                    f"responses/{path.name}: another process is writing replies that are to be"
                    " deleted; wait until it ends, then give the same command"
                )
        gone = sum(self._purge_segment(path, matches) for path in self._segments())
        with self._index:
            self._index.execute("DELETE FROM response")
            self._index.execute("DELETE FROM segment")
        self._refresh_index()
        self._index.execute("VACUUM")  # deleted rows leave the file, too
        return gone

    def _purge_segment(self, path: Path, matches: Callable[[dict[str, Any]], bool]) -> int:
        """Write a segment anew without the replies that are wanted gone; return how many."""

        def lines() -> Iterator[tuple[bytes, bool]]:
            return self._decoded(path, lambda line: (line, matches(msgspec.json.decode(line))))

        n_gone = sum(is_gone for _, is_gone in lines())
        if n_gone:
            active = self._folder / growing_name(f"purge-{token_hex(8)}")
            with open(self._begin(active), "wb") as file:
                file.writelines(line for line, is_gone in lines() if not is_gone)
                file.flush()
                # While it is locked: others would take it over.
                self._compress(active, finished=path.stat().st_mtime_ns)
            path.unlink()
        return n_gone

    def adopt(self) -> None:
        """Take over what processes wrote that are no longer there, and read what others
        finished.
        """
        self._end_snapshot()
        self._adopt_orphans()
        self._refresh_index()

    def _adopt_orphans(self) -> None:
        for path in sorted(self._folder.glob("active-*.jsonl")):
            with suppress(FileNotFoundError), path.open("r+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue  # its process is alive
                if path.exists():  # not taken over by another process while we waited for the lock
                    self._compress(path)

    def _compress(self, path: Path, *, finished: int | None = None) -> None:
        part = path.with_suffix(".part")
        is_kept = False
        # Closed below.
        compressed = open(open_file(part, os.O_WRONLY | os.O_TRUNC), "wb")  # noqa: SIM115
        with (
            compressed,
            path.open("rb") as file,
            zstd.open(compressed, "wb", level=3) as packed,
        ):
            torn = b""
            while block := file.read(1 << 20):
                complete, newline, torn = (torn + block).rpartition(b"\n")
                packed.write(complete + newline)  # a torn last line was never answered for
                is_kept = is_kept or bool(newline)
        if is_kept:
            with part.open("rb") as file:
                os.fsync(file.fileno())
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if finished is not None:
                os.utime(part, ns=(finished, finished))
            part.replace(self._folder / f"{digest[:32]}.jsonl.zst")
        part.unlink(missing_ok=True)
        path.unlink()

    def _refresh_index(self) -> None:
        """Read new segments into the index; processes that share it take turns."""
        try:
            with self._index:
                self._index.execute("BEGIN IMMEDIATE")
                known_segments = {
                    name for (name,) in self._index.execute("SELECT name FROM segment")
                }
                present = [path.name for path in self._segments()]
                if known_segments.difference(present):  # a segment was removed: start over
                    self._index.execute("DELETE FROM response")
                    self._index.execute("DELETE FROM segment")
                    known_segments = set()
                for name in [name for name in present if name not in known_segments]:
                    rows = (
                        (record.key, bytes(record.completion))
                        for record in self._decoded(self._folder / name, _decode_stored)
                    )
                    self._index.executemany("INSERT OR IGNORE INTO response VALUES (?, ?)", rows)
                    self._index.execute("INSERT INTO segment VALUES (?)", (name,))
        except sqlite3.OperationalError as error:
            raise OSError(errno.EIO, f"responses/index.sqlite: {error}") from None

    @staticmethod
    def _decoded(path: Path, decode: Callable[[bytes], T]) -> Iterator[T]:
        try:
            with zstd.open(path, "rb") as file:
                for line in file:
                    yield decode(line)
        except (zstd.ZstdError, EOFError, ValueError) as error:
            raise IntegrityError(
                f"responses/{path.name}: damaged ({error}); restore the file, or remove it to ask"
                " again"
            ) from None


def _holds(path: Path, matches: Callable[[dict[str, Any]], bool]) -> bool:
    """Return whether a segment that is being written holds such a reply; a line that is not whole
    yet is of a reply that nobody was given.
    """
    try:
        with path.open("rb") as file:
            return any(line.endswith(b"\n") and matches(msgspec.json.decode(line)) for line in file)
    except FileNotFoundError:  # finished meanwhile: it is among the segments
        return False


def completion_to_dict(completion: Completion) -> dict[str, Any]:
    """Return a completion as plain JSON values; what is empty is left out."""
    plain: dict[str, Any] = {
        "text": completion.text,
        "finish": completion.finish,
        "usage": completion.usage.to_dict(),
        "seconds": round(completion.seconds, 6),
    }
    calls = [keyed(call, "id", "name", "arguments", "details") for call in completion.calls]
    optional = {
        "logprobs": completion.logprobs,
        "alternatives": completion.alternatives,
        "likelihoods": completion.likelihoods,
        "drawn": completion.drawn,
        "calls": calls if calls else None,
    }
    return plain | {key: value for key, value in optional.items() if value is not None}
