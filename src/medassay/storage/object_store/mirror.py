"""A folder of this machine that stands for an address in an object store, as `s3://bucket/runs`.

Any address that fsspec reads will do.

Object stores know whole objects only: nothing is appended, nothing renamed. So work is done in the
folder, which lies in the user's cache, and carried over: whole files as one object each, which
appears at once or not at all; files that grow (journals, replies) piece by piece, each piece an
object `FILE@OFFSET` that ends with a line. A store that answers with errors is asked again for some
minutes; what could not be carried over stays in the folder, and the same command carries it over
later.
"""

import errno
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import platformdirs

from medassay.core.canonical import sha256_hex
from medassay.core.catch import caught
from medassay.core.log import log
from medassay.core.private import make_folder
from medassay.core.secret import secrets
from medassay.errors import InputError, UnavailableError
from medassay.storage.run import JOURNALS, LEASES, LOCK
from medassay.storage.spend import SPEND

PATIENCE = 600.0  # seconds in which a store that does not answer is asked again
# Address → since when its store has answered with errors alone, by this process's clock.
_refusing: dict[str, float] = {}
_GROWING = ("measures/", "retrieved/")
_SEGMENT = ".jsonl.zst"  # of replies, named by its content
_FILES = "files"
_MARK = "address"
_CARRIED = "carried"  # names of segments that were in the store once
_LONGEST_WAIT = 15.0
_MOST_LISTINGS = 20  # of one pull
_SAY_AFTER = 5.0
_HINTS = {
    "EndpointConnectionError": "is AWS_ENDPOINT_URL right?",
    "NoCredentialsError": (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, on Ray's nodes before `ray start`"
    ),
}
_addresses: dict[str, str] = {}  # folder → address
# Of this machine's disk, not of a store: they do not pass by waiting.
_OWN_ERRORS = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.ENOTDIR, errno.EISDIR)
_BLOCK = 1 << 23
_ONE_SLASH = re.compile(r"([a-z][a-z0-9+]+):/(?!/)")
T = TypeVar("T")


def is_address(place: str | Path) -> bool:
    """Return whether a place is in an object store.

    Raises
    ------
    InputError
        When it is written with one slash, as no folder is meant to be called.
    """
    match = _ONE_SLASH.match(str(place))
    if match:
        raise InputError(f"{place}: an address has two slashes, as {match[1]}://bucket/place")
    return "://" in str(place)


class Vanished(InputError):
    """Say that an object is not there, or not any more."""


_KEYS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Mirror:
    """One address and the folder that stands for it.

    Several processes of a machine share the folder.
    """

    def __init__(self, address: str) -> None:
        secrets.learn(os.environ.get(name, "") for name in _KEYS)
        self._files, self._root = _filesystem(address)
        self.address = address.rstrip("/")
        name = sha256_hex(self.address.encode())[:20]
        # What the mirror remembers lies beside the folder: in there is what is at the address,
        # nothing else.
        self._own = platformdirs.user_cache_path("medassay") / "mirrors" / name
        self.folder = self._own / _FILES
        make_folder(self._own)
        make_folder(self.folder)
        if not (self._own / _MARK).exists():  # whole or not at all: others may read it now
            part = self._own / f"{_MARK}.{token_hex(4)}"
            part.write_text(self.address, encoding="utf-8")
            part.replace(self._own / _MARK)
        _addresses[str(self.folder)] = self.address
        self._growing: list[Callable[[], Path | None]] = []
        self._carried: dict[Path, int] = {}
        self._flushing = threading.Lock()

    def name(self, path: Path) -> str:
        """Return the name of a file below the address."""
        return path.relative_to(self.folder).as_posix()

    def called(self, path: Path) -> str:
        """Return the address of a file or folder."""
        return f"{self.address}/{self.name(path)}"

    def listed(self, under: str = "") -> dict[str, int]:
        """Return name → size of the objects at or below a name."""
        place = f"{self._root}/{under}".rstrip("/")

        def find() -> dict[str, Any]:
            self._files.invalidate_cache()
            entries: dict[str, Any] = self._files.find(place, detail=True)
            return entries

        start = len(self._root) + 1
        entries = self._patiently(f"list {under or 'everything'}", find)
        sizes = {
            path[start:]: int(entry["size"] or 0)
            for path, entry in entries.items()
            if entry["type"] == "file" and not path.endswith("/")
        }
        # Empty objects that stand for folders, as consoles of object stores make them.
        folders = {name.rpartition("/")[0] for name in sizes}
        return {n: size for n, size in sizes.items() if size or n not in folders}

    def pull(self, under: str = "", *, accepts: Callable[[str], bool] = lambda name: True) -> None:
        """Bring what is at or below a name here.

        A segment of replies or a list of items that is here in the same size is not fetched again.
        """
        with (self._own / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # other processes here fetch the same files
            # What vanished since it was listed was joined or sealed by another machine, or removed:
            # a new list tells which.
            for _ in range(_MOST_LISTINGS):
                there = self.listed(under)
                self._drop_removed(under, there)
                with suppress(Vanished):
                    self._fetch_all(there, accepts)
                    return
            raise InputError(
                f"{self.address}: what is below '{under}' changes faster than it can be fetched;"
                " wait until nobody else works on it"
            )

    def _fetch_all(self, there: Mapping[str, int], accepts: Callable[[str], bool]) -> None:
        pieces: dict[str, list[tuple[int, str, int]]] = {}
        for name, size in sorted(there.items()):
            base, at, offset = name.rpartition("@")
            self._refuse_above(name)
            if not accepts(name) or is_own(name.partition("@")[0] if at else name):
                continue
            if at and offset.isdigit():
                pieces.setdefault(base, []).append((int(offset), name, size))
            elif self._wants(name, size):
                self._fetch(name)
        for base, parts in pieces.items():
            self._join(base, sorted(parts))

    def _drop_removed(self, under: str, there: Iterable[str]) -> None:
        """Remove the segments of replies that another machine removed from the store, by a legal
        request for deletion.
        """
        for name in self._once_there() - set(there):
            if name.startswith(f"{under}/".lstrip("/")) and (self.folder / name).is_file():
                (self.folder / name).unlink()

    def _once_there(self) -> set[str]:
        path = self._own / _CARRIED
        return set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()

    def _note_there(self, name: str) -> None:
        """Remember that a segment is in the store, so that one which is there no longer is not
        carried over again.
        """
        if name.endswith(_SEGMENT):
            with (self._own / _CARRIED).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")

    def _wants(self, name: str, size: int) -> bool:
        """Return whether an object is fetched: what only grows here may hold more than the store
        has by now.
        """
        have = self._size(name)
        if name.startswith(_GROWING):
            return have < size
        return have != size or not _is_final(name)

    def _refuse_above(self, name: str) -> None:
        """Refuse names that would lead out of the folder: whoever writes to the store may choose
        them.
        """
        if ".." in name.split("/") or name.startswith("/") or "\\" in name:
            raise InputError(f"{self.address}: an object is named '{name}'; remove it")

    def _size(self, name: str) -> int:
        path = self.folder / name
        return path.stat().st_size if path.is_file() else -1

    def _fetch(self, name: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            self._patiently(
                f"fetch {name}", lambda: self._files.get_file(f"{self._root}/{name}", str(part))
            )
            if path.exists():
                path.chmod(0o644)
            part.replace(path)
            self._note_there(name)
        finally:
            part.unlink(missing_ok=True)

    def _join(self, target: str, parts: Iterable[tuple[int, str, int]]) -> None:
        """Append the pieces of a growing file that are not here yet."""
        path = self.folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        have = self._size(target)
        for offset, name, size in parts:
            if have < 0:  # what stood before the first piece is kept elsewhere by now
                have = offset
            # Behind a gap: the missing piece comes with a later pull. Here already: the piece was
            # carried over twice, by a process that was killed before it noted how far it was.
            if offset > have or offset + size <= have:
                continue
            data = self._patiently(
                f"fetch {name}", partial(self._files.cat_file, f"{self._root}/{name}")
            )
            with path.open("ab") as file:
                file.write(data[have - offset :])
            have = offset + size

    def push(self, path: Path) -> None:
        """Carry one file over, as one object."""
        name = self.name(path)
        self._patiently(
            f"store {name}", lambda: self._files.put_file(str(path), f"{self._root}/{name}")
        )
        self._note_there(name)

    def push_new(self, under: str, *, last: Iterable[str] = ()) -> None:
        """Carry over every file below a name, but those that never change and are there.

        Some names last, in their order.

        Journals, and replies that are being written, go their own way (`flush`).
        """
        there, once = self.listed(under), self._once_there()
        order = list(last)
        here = [p for p in (self.folder / under).rglob("*") if p.is_file()]
        here = [p for p in here if not is_own(self.name(p)) and not _grows(self.name(p))]
        for path in sorted(here, key=lambda p: (p.name in order, p)):
            is_uploaded = _is_final(path.name) and there.get(self.name(path)) == path.stat().st_size
            removed = self.name(path) in once - there.keys()
            if path.name not in order and not is_uploaded and not removed:
                self.push(path)
        for name in order:
            if (self.folder / under / name).is_file():
                self.push(self.folder / under / name)

    def contents(self, under: str) -> dict[str, bytes]:
        """Return name → content of the objects below a name: small ones that change."""
        contents = {}
        for name in self.listed(under):
            with suppress(Vanished):  # removed meanwhile
                contents[name] = self._patiently(
                    f"fetch {name}", partial(self._files.cat_file, f"{self._root}/{name}")
                )
        return contents

    def carry_whole(self, path: Path) -> None:
        """Carry a file over that will not grow any more, in place of its pieces.

        One that was never made is none.
        """
        if path.is_file():
            self.push(path)
            self.settle(path)

    def settle(self, path: Path) -> None:
        """Remove the pieces of a file that was carried over otherwise, and forget how far they
        went.
        """
        name = self.name(path)
        self.remove(name.rpartition("/")[0], accepts=lambda name_: name_.startswith(f"{name}@"))
        self._carried.pop(path, None)

    def remove(self, under: str, *, accepts: Callable[[str], bool] = lambda name: True) -> None:
        """Remove the objects at or below a name."""
        gone = [f"{self._root}/{name}" for name in self.listed(under) if accepts(name)]
        if gone:
            self._patiently(f"remove {under}", lambda: self._files.rm(gone))

    def follow(self, growing: Callable[[], Path | None]) -> None:
        """Let `flush` carry over what a file has grown by; the file may not be there yet."""
        self._growing.append(growing)

    def catch_up(self, under: str) -> None:
        """Carry over what journals hold here that the store has not: of a process that was killed
        before it could.
        """
        pieces = self.listed(under)
        for path in sorted((self.folder / under).glob("*.jsonl")):
            name, end = self.name(path), 0
            for piece in sorted(
                piece_name for piece_name in pieces if piece_name.startswith(f"{name}@")
            ):
                offset = int(piece.rpartition("@")[2])
                end = max(end, offset + pieces[piece]) if offset <= end else end
            self._carried[path] = end
            self._carry(path)

    def flush(self) -> None:
        """Carry over what the followed files have grown by, in the order in which they are
        followed.
        """
        with self._flushing:
            for growing in self._growing:
                if (path := growing()) is not None and path.is_file():
                    self._carry(path)

    def _carry(self, path: Path) -> None:
        done = self._carried.get(path, 0)
        with path.open("rb") as file:
            file.seek(done)
            while block := file.read(_BLOCK):
                while b"\n" not in block and (more := file.read(_BLOCK)):  # a very long line
                    block += more
                end = block.rfind(b"\n") + 1
                if not end:
                    break
                name = f"{self.name(path)}@{done:015}"
                self._patiently(
                    f"store {name}",
                    partial(self._files.pipe_file, f"{self._root}/{name}", block[:end]),
                )
                done += end
                self._carried[path] = done
                file.seek(done)

    def carried(self, path: Path) -> int:
        """Return how many bytes of a followed file are safe in the store."""
        return self._carried.get(path, 0)

    @contextmanager
    def following(self, *growing: Callable[[], Path | None], every: float = 2.0) -> Iterator[None]:
        """Carry over what files grow by while something is done, and at its end."""
        for path_ in growing:
            self.follow(path_)
        ended = threading.Event()

        def carry() -> None:
            while not ended.wait(every):
                with suppress(OSError, InputError):  # the end tries once more, and says so
                    self.flush()

        thread = threading.Thread(target=carry, name="medassay-mirror", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.flush()
            self._growing.clear()

    def _patiently(self, what: str, do: Callable[[], T]) -> T:
        """Do something with the store, again while it answers with passing errors.

        Raises
        ------
        OSError
            With the store's reason: at once where asking again is pointless, or where patience has
            ended before, else after some minutes.
        """
        wait = 0.25
        while True:
            started = time.monotonic()
            with caught() as errors:  # each store has errors of its own
                result = do()
                _refusing.pop(self.address, None)
                return result
            [error] = errors
            if isinstance(error, FileNotFoundError | PermissionError):
                _refusing.pop(self.address, None)
                kind = Vanished if isinstance(error, FileNotFoundError) else InputError
                raise kind(
                    f"{self.address}: cannot {what}: {_why(error)}; check the address and who may"
                    " use it"
                )
            if not _passes(error):
                number = getattr(error, "errno", None) or errno.EIO
                raise OSError(number, f"{self.address}: cannot {what}: {_why(error)}")
            waited = time.monotonic() - _refusing.setdefault(self.address, started)
            if waited > PATIENCE:
                raise OSError(
                    errno.EIO,
                    f"{self.address}: cannot {what}, asked for {waited:.0f} s: {_why(error)}; "
                    "everything is kept on this machine, the same command carries it over",
                )
            log.warn("store_waits", doing=what, waited=round(waited, 1), why=_why(error))
            if waited > _SAY_AFTER:
                log.say(
                    f"{self.address}: cannot {what} ({_why(error)}); waiting,"
                    f" {PATIENCE / 60:.0f} minutes at most"
                )
            time.sleep(wait)
            wait = min(_LONGEST_WAIT, wait * 2)


def mirror_of(path: Path) -> Mirror | None:
    """Return the mirror that a path lies in, None for an ordinary folder of this machine."""
    for folder in (path, *path.parents):
        mark = folder.parent / _MARK
        if folder.name == _FILES and mark.is_file():
            return Mirror(mark.read_text(encoding="utf-8"))
    return None


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return file → size and time of its last change, for what belongs to the address."""
    states_by_path = {}
    for path in folder.rglob("*"):
        if path.is_file() and not is_own(path.relative_to(folder).as_posix()):
            status = path.stat()
            states_by_path[path] = status.st_size, status.st_mtime_ns
    return states_by_path


def _filesystem(address: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise UnavailableError(
            f"{address}: object stores need the extra [objects]: pip install 'medassay[objects]'"
        ) from None
    try:
        files, root = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise UnavailableError(
            f"{address}: {error}; for s3:// the extra [objects] has it: pip install"
            " 'medassay[objects]'"
        ) from None
    except ValueError as error:
        raise InputError(f"{address}: not an address that can be opened: {error}") from None
    if not str(root).strip("/"):
        raise InputError(f"{address}: names no bucket; expected s3://bucket/place")
    return files, str(root).rstrip("/")


def _is_final(name: str) -> bool:
    """Return whether a file never changes under its name: segments of replies, the items of a
    run.
    """
    return name.endswith((_SEGMENT, "items.jsonl"))


def is_own(name: str) -> bool:
    """Return whether a file belongs to this machine alone: locks, leases, indexes, what is being
    written.
    """
    parts = name.split("/")
    return (
        parts[-1].startswith((".", "index.sqlite"))
        or parts[-1].endswith((".part", ".new"))
        or parts[-1] == LOCK
        or LEASES in parts[:-1]
    )


def _grows(name: str) -> bool:
    """Return whether a file is appended to, so that it is carried over in pieces."""
    parts = name.split("/")
    return parts[-1].startswith("active-") or bool(set(parts[:-1]) & {*JOURNALS, SPEND})


def _passes(error: Exception) -> bool:
    """Return whether a store may answer when it is asked again."""
    if isinstance(error, OSError) and error.errno in _OWN_ERRORS:
        return False
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        status = (response or {}).get("ResponseMetadata", {}).get("HTTPStatusCode")
        if isinstance(status, int):
            return status >= 500 or status == 429
        cause = cause.__cause__
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names & {"ConnectionError", "ClientError", "HTTPClientError", "TimeoutError", "OSError"}
    )


def _why(error: Exception) -> str:
    kind = type(error).__name__
    hint = f"; {_HINTS[kind]}" if kind in _HINTS else ""
    return " ".join(f"{kind}: {error}".split())[:200] + hint


def with_addresses(message: str) -> str:
    """Return a message with addresses in place of the folders that stand for them."""
    for folder, address in _addresses.items():
        message = message.replace(folder, address)
    return message
