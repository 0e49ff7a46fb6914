"""Progress of a run on standard error: a live table on a terminal, a line every 30 s elsewhere."""

import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol


@dataclass
class Stop:
    """Asked for by Ctrl-C: `soon` finishes the calls under way."""

    soon: bool = False

    def ask(self) -> None:
        """Ask for it."""
        self.soon = True


class Progress(Protocol):
    """What the engine tells."""

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Note finished trials, or verdicts of the judge `model`."""


class Silent:
    """Says nothing: for Python callers and --quiet."""

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Note nothing."""


class Lines:
    """A line every 30 seconds: done, failed, left, time left."""

    def __init__(
        self, total: int, done: int, what: str = "trials", *, every: float = 30.0
    ) -> None:
        self._what = what
        self._total, self._done, self._failed = total, done, 0
        self._at_start = done
        self._every = every
        self._started = self._printed = time.monotonic()

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Count, and print when it is time."""
        self._done += times * (outcome != "failed")
        self._failed += times * (outcome == "failed")
        now = time.monotonic()
        if now - self._printed >= self._every:
            self._printed = now
            left = self._total - self._done
            made = max(1, self._done - self._at_start)
            seconds = (now - self._started) / made * left
            sys.stderr.write(
                f"{self._done} of {self._total} {self._what} done, {self._failed} failed, {left} left, "
                f"about {seconds:.0f} s\n"
            )


class Live:
    """A bar for each model and domain, drawn with rich; a context manager."""

    def __init__(
        self, sizes: dict[tuple[str, str], int], done: Counter[tuple[str, str]]
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            refresh_per_second=4,
        )
        self._failed: Counter[tuple[str, str]] = Counter()
        # Above 30 bars a terminal scrolls: one bar a model then.
        self._by_model = len(sizes) > 30
        totals: Counter[tuple[str, str]] = Counter()
        dones: Counter[tuple[str, str]] = Counter()
        for key, size in sizes.items():
            totals[self._key(*key)] += size
            dones[self._key(*key)] += done[key]
        self._tasks = {
            key: self._bars.add_task(
                " · ".join(filter(None, key)), total=size, completed=dones[key], failed=""
            )
            for key, size in totals.items()
        }

    def _key(self, model: str, domain: str) -> tuple[str, str]:
        return (model, "") if self._by_model else (model, domain)

    def __enter__(self) -> "Live":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Move one bar."""
        key = self._key(model, domain)
        if outcome == "failed":
            self._failed[key] += times
            self._bars.update(self._tasks[key], failed=f"{self._failed[key]} failed")
        else:
            self._bars.advance(self._tasks[key], times)
