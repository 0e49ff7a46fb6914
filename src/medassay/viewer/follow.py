"""The process that keeps indexes up to date, so that pages need not wait for it.

    python -m medassay.viewer.follow

It reads folders of runs from its input, each a JSON text on a line, and reads on in each until it
was not named for
a while. When its input ends, so does it: it never outlives the viewer.
"""

import contextlib
import json
import os
import queue
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from medassay.core.catch import caught
from medassay.storage.run import Run
from medassay.viewer.index import RunIndex

_AT_ONCE = 20_000  # lines of one run before another one has its turn
_PAUSE = 0.5  # seconds, when there was nothing to read
_PATIENCE = 60.0  # seconds after which a run that nobody looks at is read no further
_NICENESS = 10  # whoever makes the run comes first


def follow(folders: TextIO) -> None:
    """Read on in the runs whose folders are named, until the input ends."""
    names: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(folders, names), daemon=True).start()
    runs: dict[str, _FollowedRun] = {}
    while True:
        while not names.empty():
            name = names.get()
            if name is None:
                return
            if name not in runs:
                runs[name] = _FollowedRun(name)
            runs[name].named_at = time.monotonic()
        now = time.monotonic()
        for name in [name for name, run in runs.items() if now - run.named_at > _PATIENCE]:
            runs.pop(name).close()
        if not any([run.read_on() for run in runs.values()]):
            time.sleep(_PAUSE)


class _FollowedRun:
    def __init__(self, folder: str) -> None:
        self._run = Run(Path(folder))
        self._index: RunIndex | None = None
        self.named_at = 0.0

    def read_on(self) -> bool:
        """Read on for a while, and return whether there was anything to read."""
        with caught() as errors:  # what is wrong with one run must not end the reading of others
            if self._index is not None and self._index.is_stale:
                self.close()
            if self._index is None:
                self._index = RunIndex(Run(self._run.path))
            return self._index.catch_up(_AT_ONCE) > 0
        # Told on its pages; a run may be half removed, and be whole again a moment later.
        if self._index is not None:
            with contextlib.suppress(sqlite3.Error):
                self._index.note_error(str(errors[0]))
        return False

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


def _listen(folders: TextIO, names: "queue.SimpleQueue[str | None]") -> None:
    for line in folders:
        names.put(json.loads(line))
    names.put(None)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(KeyboardInterrupt):
        follow(sys.stdin)
