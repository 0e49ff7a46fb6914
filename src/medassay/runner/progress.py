"""Progress of a run: bars on a terminal and in a notebook, a line every 30 s elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import msgspec

from medassay.core.frame import table_html
from medassay.errors import Interrupted


class Stop(msgspec.Struct):
    """Asked for by Ctrl-C: `soon` finishes the calls under way."""

    soon: bool = False

    def ask(self) -> None:
        """Ask for it."""
        self.soon = True


def duration_text(seconds: float) -> str:
    """Return a duration as people say it.

    Examples
    --------
    >>> duration_text(41), duration_text(125), duration_text(103_498)
    ('41 s', '2 min', '28 h 45 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def money_text(money: float) -> str:
    """Return what a pass has cost by now, after a comma; nothing where nothing costs money."""
    return f", {money:.4f} in money" if money else ""


class Progress(Protocol):
    """What the engine tells; `money` says what was spent by now."""

    money: Callable[[], float]

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Note finished trials, or verdicts of the judge `model`."""


class Silent:
    """Says nothing: for Python callers and --quiet."""

    def __init__(self) -> None:
        self.money: Callable[[], float] = lambda: 0.0

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Note nothing."""


class Lines:
    """A line every 30 seconds: done, failed, left, time left, cost."""

    def __init__(self, total: int, done: int, what: str = "trials", *, every: float = 30.0) -> None:
        self.money: Callable[[], float] = lambda: 0.0
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
            remaining = self._total - self._done
            done_here = max(1, self._done - self._at_start)
            seconds = (now - self._started) / done_here * remaining
            sys.stderr.write(
                f"{self._done} of {self._total} {self._what} done, {self._failed} failed,"
                f" {remaining} left, about {duration_text(seconds)}{money_text(self.money())}\n"
            )


class Live:
    """A bar for the sum, with failures and cost, and one for each model and domain, drawn with
    rich; a context manager.
    """

    def __init__(
        self,
        sizes: dict[tuple[str, str], int],
        done: Counter[tuple[str, str]],
        what: str = "trials",
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
        self.money: Callable[[], float] = lambda: 0.0
        self._failed: Counter[tuple[str, str]] = Counter()
        # Above 30 bars a terminal scrolls: one bar a model then.
        self._by_model = len(sizes) > 30
        self._sum = self._bars.add_task(
            what, total=sum(sizes.values()), completed=done.total(), failed=""
        )
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
        """Move one bar, and that of the sum."""
        key = self._key(model, domain)
        moved = 0 if outcome == "failed" else times
        failed = self._failed.total() + times - moved
        message = f"{failed} failed{money_text(self.money())}"
        self._bars.update(self._sum, advance=moved, failed=message)
        if outcome == "failed":
            self._failed[key] += times
            self._bars.update(self._tasks[key], failed=f"{self._failed[key]} failed")
        else:
            self._bars.advance(self._tasks[key], times)


class Notebook:
    """A bar for the sum and one for each model below the cell of a notebook; a context manager.

    It is redrawn at most four times a second, as HTML without script.
    """

    def __init__(
        self,
        what: str,
        sizes: Mapping[tuple[str, str], int],
        done: Counter[tuple[str, str]],
    ) -> None:
        self.money: Callable[[], float] = lambda: 0.0
        self._what = what
        self._sizes, self._done, self._failed = Counter[str](), Counter[str](), Counter[str]()
        for (model, domain), size in sizes.items():
            self._sizes[model] += size
            self._done[model] += done[model, domain]
        self._at_start = self._done.total()
        self._started = self._drawn = time.monotonic()
        self._display: Any = None

    def __enter__(self) -> "Notebook":
        from IPython.display import HTML, display

        self._display = display(HTML(self.html()), display_id=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._draw()

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Count, and draw when it is time."""
        (self._failed if outcome == "failed" else self._done)[model] += times
        if time.monotonic() - self._drawn >= 0.25:
            self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML

        self._drawn = time.monotonic()
        if self._display is not None:
            self._display.update(HTML(self.html()))

    def html(self) -> str:
        """Return the bars as they stand."""
        names = [None, *self._sizes] if len(self._sizes) > 1 else [None]
        rows = []
        for name in names:
            everything = name is None  # a model may be called as what is counted
            total, done, failed = (
                counts.total() if name is None else counts[name]
                for counts in (self._sizes, self._done, self._failed)
            )
            words = f"{done:,} of {total:,}" + (f", {failed:,} failed" if failed else "")
            if everything:
                words += self._remaining(total - done) + money_text(self.money())
            bar = f'<progress max="{max(1, total)}" value="{done}"></progress>'
            rows.append([self._what if name is None else name, bar, words])
        return table_html(["", "", ""], rows, markup=frozenset([1]))

    def _remaining(self, n_left: int) -> str:
        done_here = self._done.total() - self._at_start
        if not n_left or not done_here:
            return ""
        seconds = (time.monotonic() - self._started) / done_here * n_left
        return f", about {duration_text(seconds)} left"


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, in which HTML can be shown."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def terminal(
    what: str, sizes: Counter[tuple[str, str]], done: Counter[tuple[str, str]]
) -> AbstractContextManager[Progress]:
    """Return what shows the progress of a pass on standard error: bars where that is a terminal,
    else lines.
    """
    if not sys.stderr.isatty():
        return nullcontext(Lines(sizes.total(), done.total(), what))
    return Live(sizes, done, what)


# What is counted ("trials", "verdicts"), how many there are and how many are done, by model and
# domain.
ProgressFactory = Callable[
    [str, Counter[tuple[str, str]], Counter[tuple[str, str]]], AbstractContextManager[Progress]
]


def watching(
    watch: ProgressFactory | None,
    what: str,
    sizes: Counter[tuple[str, str]],
    done: Counter[tuple[str, str]],
) -> AbstractContextManager[Progress]:
    """Return what is told of a pass: to `watch`, or nobody."""
    return watch(what, sizes, done) if watch else nullcontext(Silent())


def raise_if_interrupted(stop: Stop, what: str, done: int, total: int) -> None:
    """Raise `Interrupted` where the user stopped a pass before its end."""
    if stop.soon and done < total:
        raise Interrupted(f"stopped: {done} of {total} {what} and kept; the same command resumes")
