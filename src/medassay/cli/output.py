"""Standard output holds the result only; messages go to standard error."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from medassay.core.secret import secrets
from medassay.core.table import Table
from medassay.core.wording import visible

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

    def tell(
        self,
        record: Mapping[str, Any] | msgspec.Struct,
        *parts: str | Table | Iterable[str | Table],
    ) -> None:
        """Print a result: with --json the record as one document, else its lines and tables.

        Parts that are iterated, as what a generator yields, are made only where they are printed.
        """
        if self.json:
            self.document(msgspec.to_builtins(record))
        for part in () if self.json else parts:
            for line in (part,) if isinstance(part, str | Table) else part:
                if isinstance(line, str):
                    self.result(line)
                else:
                    self.table(line)
        sys.stdout.flush()  # a server goes on, and whoever reads its link through a pipe waits

    def say(self, text: str) -> None:
        """Print a message for people, unless --quiet."""
        if not self.quiet:
            sys.stderr.write(visible(secrets.redact(text)) + "\n")

    def table(self, table: Table) -> None:
        """Print a table and its notes; nothing in its cells, which may come from outside, steers a
        terminal.
        """
        from rich import table as rich
        from rich.markup import escape

        grid = rich.Table(title=escape(visible(table.title)) or None, title_justify="left")
        for heading in table.text:
            head = escape(visible(heading))
            grid.add_column(head, no_wrap=heading in table.unfolded, overflow="fold")
        for heading in table.numbers:
            grid.add_column(escape(visible(heading)), justify="right", overflow="fold")
        for cells in table.rows:
            grid.add_row(*(escape(visible(cell)) for cell in cells))
        self.console().print(grid)
        for note in table.notes:
            self.result(note)

    def console(self) -> "Console":
        """Return a console for tables on standard output."""
        from rich.console import Console

        return Console(
            no_color=not self.color,
            highlight=False,
            emoji=False,
            width=None if sys.stdout.isatty() else 140,
        )


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
