"""The progress of long work on standard error."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from medassay.cli.output import out

if TYPE_CHECKING:
    from medassay.runner.progress import Progress


@contextmanager
def watch(
    what: str, sizes: Counter[tuple[str, str]], done: Counter[tuple[str, str]]
) -> "Iterator[Progress]":
    """Yield what shows the progress of a run on standard error."""
    from medassay.runner.progress import Lines, Live, Silent

    if done.total():
        out.say(f"resuming: {done.total()} of {sizes.total()} {what} are there")
    if out.quiet:
        yield Silent()
    elif not sys.stderr.isatty():
        yield Lines(sizes.total(), done.total(), what)
    else:
        with Live(sizes, done, what) as progress:
            yield progress
