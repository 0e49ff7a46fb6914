"""The progress of long work on standard error."""

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
    from medassay.runner.progress import Silent, terminal

    if done.total():
        out.say(f"resuming: {done.total()} of {sizes.total()} {what} are there")
    if out.quiet:
        yield Silent()
        return
    with terminal(what, sizes, done) as progress:
        yield progress
