"""`Table`: cells that a command prints beside its lines."""

from collections.abc import Sequence

import msgspec

Cell = str | float | None  # of a table


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table for a terminal.

    Attributes
    ----------
    rows : the cells of each row, those of text first
    text, numbers : headings of the columns of text, and of those that are aligned right
    notes : lines below it
    unfolded : headings of columns that stay on one line
    """

    rows: Sequence[Sequence[str]] = ()
    text: Sequence[str] = ()
    numbers: Sequence[str] = ()
    title: str = ""
    notes: Sequence[str] = ()
    unfolded: Sequence[str] = ()
