"""Standard output holds the result only; messages go to standard error."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from medassay.core.secret import secrets

if TYPE_CHECKING:
    from rich.console import Console


@dataclass
class Output:
    """How this call prints; set once from the global options."""

    json: bool = False
    quiet: bool = False
    color: bool = True
    debug: bool = False

    def result(self, text: str = "") -> None:
        """Print a line of the result; characters that steer a terminal are spelled out."""
        sys.stdout.write(visible(text) + "\n")

    def document(self, document: dict[str, Any]) -> None:
        """Print one JSON document."""
        # Built whole before anything is written; ASCII, since any text must survive any terminal.
        sys.stdout.write(json.dumps({"schema_version": 1, **document}, indent=1) + "\n")

    def tell(self, record: "Mapping[str, Any] | msgspec.Struct", *lines: str) -> None:
        """Print a result: with --json the record as one document, else its lines."""
        if self.json:
            self.document(msgspec.to_builtins(record))
        for line in () if self.json else lines:
            self.result(line)

    def say(self, text: str) -> None:
        """Print a message for people, unless --quiet."""
        if not self.quiet:
            sys.stderr.write(visible(secrets.redact(text)) + "\n")

    def table(
        self,
        rows: Iterable[Sequence[str]],
        *,
        text: Sequence[str],
        numbers: Sequence[str] = (),
        title: str = "",
        unfolded: Collection[str] = (),
    ) -> None:
        """Print a table of cells, which may come from outside: nothing in them steers a terminal.

        Parameters
        ----------
        rows : the cells of each row, those of text first
        text, numbers : headings of columns of text, and of those that are aligned right
        unfolded : headings of columns that stay on one line
        """
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=escape(visible(title)) or None, title_justify="left")
        for heading in text:
            head = escape(visible(heading))
            table.add_column(head, no_wrap=heading in unfolded, overflow="fold")
        for heading in numbers:
            table.add_column(escape(visible(heading)), justify="right", overflow="fold")
        for cells in rows:
            table.add_row(*(escape(visible(cell)) for cell in cells))
        self.console().print(table)

    def console(self) -> "Console":
        """Return a console for tables on standard output."""
        from rich.console import Console

        return Console(
            no_color=not self.color,
            highlight=False,
            emoji=False,
            width=None if sys.stdout.isatty() else 140,
        )


def visible(text: str) -> str:
    """Return text without characters that steer a terminal; lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def table_width(columns: Mapping[str, Sequence[str]], folded: Mapping[str, int]) -> int:
    """Return how many characters wide a table is whose columns in `folded` may be folded to so
    many.
    """
    widths = [
        min(max(map(len, (heading, *cells))), folded.get(heading, 10**6))
        for heading, cells in columns.items()
    ]
    return sum(width + 3 for width in widths) + 1


out = Output()
