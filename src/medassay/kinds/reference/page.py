"""Likeness of answers to references: every metric of every row, and those that were unavailable."""

from collections.abc import Iterator

from medassay.kinds.kind import Presentation
from medassay.kinds.reference import columns
from medassay.report.board import OVERALL, Board
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of every mode."""
    if "text" not in board.statistics:
        return
    for mode in board.modes:
        slug = board.slug(mode, "mode")
        yield render(
            "reference/page.html",
            board,
            "texts/" if mode == board.modes[0] else f"texts/track/{slug}/",
            mode=mode,
            rows=board.rows(OVERALL, mode),
            document=board.statistics["text"],
        )


PRESENTATION = Presentation(title="Likeness", folder="texts", pages=pages, tables=columns.tables)
