"""Standard output holds the result only; messages go to standard error."""

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        """Print a line of the result."""
        sys.stdout.write(text + "\n")

    def document(self, document: dict[str, Any]) -> None:
        """Print one JSON document."""
        json.dump({"schema_version": 1, **document}, sys.stdout, ensure_ascii=False, indent=1)
        sys.stdout.write("\n")

    def say(self, text: str) -> None:
        """Print a message for people, unless --quiet."""
        if not self.quiet:
            sys.stderr.write(text + "\n")

    def console(self) -> "Console":
        """Return a console for tables on standard output."""
        from rich.console import Console

        return Console(
            no_color=not self.color, highlight=False, width=None if sys.stdout.isatty() else 140
        )


out = Output()
