"""Who made the board."""

from collections.abc import Iterator

from medassay.report.board import Board
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    yield render("colophon.html", board, "colophon/")
