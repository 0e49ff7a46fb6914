"""Leases: a worker keeps a file alive while it holds work.

Whoever finds one waits until it is given up or dead.

A lease is dead when its bytes have not changed for `DEAD_AFTER` seconds of the finder's own clock,
so clocks of machines need not agree. A worker that could not renew its lease for half as long
begins no further call.
"""

import asyncio
import contextlib
import errno
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex

from medassay.core.canonical import canonical
from medassay.core.log import log
from medassay.errors import IncompleteError, InputError
from medassay.storage.object_store import Mirror, mirror_of
from medassay.storage.run import LEASES

DEAD_AFTER = 10.0  # seconds
_RENEW_EVERY = DEAD_AFTER / 5


class Lease:
    """The lease of one worker on the work that it was given; `folder` is that of the run."""

    def __init__(self, run: Path, name: str) -> None:
        (run / LEASES).mkdir(parents=True, exist_ok=True)
        self._path = run / LEASES / f"{name}.json"
        self._name = name
        self._mirror = mirror_of(run)
        self._beat = 0
        self._renewed = -1e9
        self._given_up = False
        self._turn = threading.Lock()

    @property
    def doubtful(self) -> bool:
        """Return whether others may soon hold this lease for dead, so that nothing new may
        begin.
        """
        return time.monotonic() - self._renewed > DEAD_AFTER / 2

    def renew(self) -> None:
        """Show once more that this worker lives."""
        with self._turn:
            if self._given_up:
                return
            began = time.monotonic()
            self._beat += 1
            part = self._path.with_suffix(".part")
            part.write_bytes(canonical({"worker": self._name, "beat": self._beat}) + b"\n")
            part.replace(self._path)
            if self._mirror is not None:
                self._mirror.push(self._path)
            self._renewed = began  # a store that took long may have shown it then

    async def keep(self) -> None:
        """Renew until cancelled.

        A disk that refuses makes the lease doubtful, and is asked again.
        """
        while True:
            try:
                await asyncio.to_thread(self.renew)
            except OSError as error:
                log.warn("lease_not_renewed", worker=self._name, why=str(error))
                await asyncio.sleep(_RENEW_EVERY / 4)
                continue
            await asyncio.sleep(_RENEW_EVERY)

    def give_up(self) -> None:
        """Say that this worker holds nothing any more."""
        with self._turn:
            self._given_up = True
            self._path.unlink(missing_ok=True)
            if self._mirror is not None:
                self._mirror.remove(self._mirror.name(self._path))


class LeaseWatcher:
    """Watches the leases of a run."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = run / LEASES
        self._mirror: Mirror | None = mirror_of(run)
        self._clock = clock
        self._seen: dict[str, tuple[bytes, float]] = {}

    def _contents(self) -> dict[str, bytes]:
        if self._mirror is not None:
            lease_contents = self._mirror.contents(self._mirror.name(self._folder))
            return {Path(name).stem: content for name, content in lease_contents.items()}
        contents = {}
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(FileNotFoundError):
                contents[path.stem] = path.read_bytes()
        return contents

    def alive(self) -> list[str]:
        """Return the leases that are not dead yet, as far as was seen by now.

        Leases of the dead are removed.
        """
        now, alive = self._clock(), []
        for name, content in sorted(self._contents().items()):
            # The clock starts when a content is first seen here: times of files are those of the
            # worker's machine or of the store, and clocks differ.
            content_seen, since = self._seen.get(name, (content, now))
            if content != content_seen:
                since = now
            self._seen[name] = (content, since)
            if now - since > DEAD_AFTER:
                self._remove(name)
            else:
                alive.append(name)
        return alive

    def _remove(self, name: str) -> None:
        path = self._folder / f"{name}.json"
        path.unlink(missing_ok=True)
        if self._mirror is not None:
            self._mirror.remove(self._mirror.name(path))

    async def gone(self, name: str) -> None:
        """Wait until a worker holds nothing any more."""
        while name in await asyncio.to_thread(self.alive):
            await asyncio.sleep(DEAD_AFTER / 50)


def _run_text(folder: Path) -> str:
    """Return what a run, or a site in an object store, is called."""
    mirror = mirror_of(folder)
    site = mirror is not None and mirror.folder == folder
    return mirror.address if mirror is not None and site else f"run {folder.name}"


def await_dead(run: Path, tell: Callable[[str], None]) -> None:
    """Wait until nobody holds work of a run: a process that was killed may still be
    asking for some seconds.

    Raises
    ------
    IncompleteError
        When somebody still does after that: the run is at work elsewhere.
    """
    watcher = LeaseWatcher(run)
    if not (alive := watcher.alive()):
        return
    tell(f"{len(alive)} worker(s) of an earlier call may still be at work; waiting until they end")
    log.tell("waiting_for_leases", workers=alive)
    began = time.monotonic()
    while alive := watcher.alive():
        if time.monotonic() - began > 4 * DEAD_AFTER:
            raise IncompleteError(
                f"{_run_text(run)}: another process is working on it (lease '{alive[0]}'); wait"
                " for it"
            )
        time.sleep(DEAD_AFTER / 50)


@contextlib.contextmanager
def held(run: Path) -> Iterator[Callable[[], bool]]:
    """Hold a lease on a run or a site in an object store, where no lock of a file keeps a second
    machine away.

    Yields what tells whether the lease is in doubt, so that no further call may begin. It raises an
    OSError with the store's reason once the lease is in doubt and the store is asked no longer:
    whoever waits for it would wait for ever.

    Raises
    ------
    IncompleteError
        When somebody else took one at the same moment.
    """
    if mirror_of(run) is None:
        yield lambda: False
        return
    name = f"driver-{token_hex(6)}"
    lease, ended = Lease(run, name), threading.Event()
    lease.renew()
    if others := [
        holder
        for holder in LeaseWatcher(run).alive()
        if holder.startswith("driver-") and holder != name
    ]:
        lease.give_up()
        raise IncompleteError(
            f"{_run_text(run)}: another process is working on it (lease '{others[0]}'); wait for it"
        )

    refusals: list[str] = []  # the last one, while the lease cannot be renewed

    def keep() -> None:
        while not ended.wait(_RENEW_EVERY):
            try:
                lease.renew()
                refusals.clear()
            except (OSError, InputError) as error:
                refusals[:] = [str(getattr(error, "strerror", None) or error)]
                log.warn("lease_not_renewed", worker=name, why=str(error))

    def in_doubt() -> bool:
        if lease.doubtful and refusals:
            raise OSError(errno.EIO, refusals[0])
        return lease.doubtful

    thread = threading.Thread(target=keep, name="medassay-lease", daemon=True)
    thread.start()
    try:
        yield in_doubt
    finally:
        ended.set()
        thread.join()
        lease.give_up()
