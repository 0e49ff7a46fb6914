"""Leases: a worker keeps a file alive while it holds work; whoever finds one waits until it is given up or dead.

A lease is dead when its bytes have not changed for `DEAD_AFTER` seconds of the finder's own clock, so clocks of machines
need not agree. A worker that could not renew its lease for half as long begins no further call.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from medassay.core.canonical import canonical
from medassay.core.log import log

DEAD_AFTER = 10.0  # seconds
_RENEW_EVERY = DEAD_AFTER / 5


class Lease:
    """The lease of one worker on the work that it was given."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{name}.json"
        self._name = name
        self._beat = 0
        self._renewed = -1e9

    @property
    def doubtful(self) -> bool:
        """Return whether others may soon hold this lease for dead, so that nothing new may begin."""
        return time.monotonic() - self._renewed > DEAD_AFTER / 2

    def renew(self) -> None:
        """Show once more that this worker lives."""
        self._beat += 1
        part = self._path.with_suffix(".part")
        part.write_bytes(canonical({"worker": self._name, "beat": self._beat}) + b"\n")
        part.replace(self._path)
        self._renewed = time.monotonic()

    async def keep(self) -> None:
        """Renew until cancelled; a disk that refuses makes the lease doubtful, and is asked again."""
        while True:
            try:
                await asyncio.to_thread(self.renew)
            except OSError:
                await asyncio.sleep(_RENEW_EVERY / 4)
                continue
            await asyncio.sleep(_RENEW_EVERY)

    def give_up(self) -> None:
        """Say that this worker holds nothing any more."""
        self._path.unlink(missing_ok=True)


class Watch:
    """Watches the leases of a run."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._seen: dict[str, tuple[bytes, float]] = {}

    def alive(self, name: str = "*") -> list[str]:
        """Return the leases that are not dead yet, as far as was seen by now; dead ones are removed."""
        now, found = self._clock(), []
        for path in sorted(self._folder.glob(f"{name}.json")):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            known, since = self._seen.get(path.stem, (None, now))
            if content != known:
                known, since = content, now
            self._seen[path.stem] = (content, since)
            if now - since > DEAD_AFTER:
                path.unlink(missing_ok=True)
            else:
                found.append(path.stem)
        return found

    async def gone(self, name: str) -> None:
        """Wait until a worker holds nothing any more."""
        while self.alive(name):
            await asyncio.sleep(DEAD_AFTER / 50)


def await_dead(folder: Path, tell: Callable[[str], None]) -> None:
    """Wait until nobody holds work of a run: who was cut off may still be asking for some seconds."""
    watch = Watch(folder)
    if found := watch.alive():
        tell(
            f"{len(found)} worker(s) of an earlier call may still be at work; waiting until they end"
        )
        log.tell("waiting_for_leases", workers=found)
        while watch.alive():
            time.sleep(DEAD_AFTER / 50)
