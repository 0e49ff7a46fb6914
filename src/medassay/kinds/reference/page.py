"""Likeness of answers to references: every metric of every row, and those that were unavailable."""

from collections.abc import Iterator

from medassay.core.records.statistics import OVERALL
from medassay.kinds.kind import Presentation
from medassay.kinds.reference import columns
from medassay.kinds.reference.row import TextRow, TextSummary
from medassay.report.board import Board
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of every mode."""
    if "text" not in board.statistics.document:
        return
    for mode in board.modes:
        slug = board.slug(mode, "mode")
        yield render(
            "reference/page.html",
            board,
            "texts/" if mode == board.modes[0] else f"texts/track/{slug}/",
            mode=mode,
            rows=board.statistics.rows_as(TextRow, OVERALL, mode),
            document=board.statistics.part("text", TextSummary),
        )


PRESENTATION = Presentation(
    title="Likeness", folder="texts", row_type=TextRow, pages=pages, tables=columns.tables
)
