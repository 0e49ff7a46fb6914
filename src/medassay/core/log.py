"""Events for whoever operates runs, one JSON object a line: off unless asked for, by `--log FILE`
or `MEDASSAY_LOG`.

Events name runs, models, workers and counts; never a prompt, a reply or a secret; a reason may name
an address.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from medassay.core.private import open_file
from medassay.core.secret import secrets

_STDERR = "-"
_SAY_EVERY = 60.0  # seconds


class EventLog:
    """Where events go; nowhere until `open` is called."""

    def __init__(self) -> None:
        self._logger: Any = None
        self._file: TextIO | None = None
        self._said: dict[str, float] = {}
        self.listener: Callable[[str], None] | None = None  # the terminal's messages

    def open(self, place: str) -> None:
        """Append events to a file, or write them to standard error for `-`."""
        import structlog

        self.close()
        if place != _STDERR:
            file = open_file(Path(place), os.O_WRONLY | os.O_APPEND)
            # Open until the process ends.
            self._file = open(file, "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._logger = structlog.wrap_logger(
            structlog.WriteLogger(self._file or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
            process=os.getpid(),
        )

    def close(self) -> None:
        """Send events nowhere."""
        if self._file is not None:
            self._file.close()
        self._logger = self._file = None

    def tell(self, event: str, **facts: Any) -> None:
        """Note that something happened."""
        if self._logger is not None:
            self._logger.info(event, **_redact(facts))

    def say(self, line: str) -> None:
        """Tell whoever waits at a terminal why, at most once a minute the same."""
        if self.listener is None:
            return
        now = time.monotonic()
        if now - self._said.get(line, -1e9) > _SAY_EVERY:
            self._said[line] = now
            self.listener(secrets.redact(line))

    def warn(self, event: str, **facts: Any) -> None:
        """Note that something happened which an operator may want to look at."""
        if self._logger is not None:
            self._logger.warning(event, **_redact(facts))


def _redact(facts: dict[str, Any]) -> dict[str, Any]:
    return {k: secrets.redact(v) if isinstance(v, str) else v for k, v in facts.items()}


log = EventLog()
