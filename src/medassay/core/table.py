"""`Table`: cells that a command prints beside its lines."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table for a terminal: cells of text first, then numbers; `notes` stand below it.

    Columns whose headings are in `unfolded` stay on one line.
    """

    rows: Sequence[Sequence[str]] = ()
    text: Sequence[str] = ()
    numbers: Sequence[str] = ()
    title: str = ""
    notes: Sequence[str] = ()
    unfolded: Sequence[str] = ()
