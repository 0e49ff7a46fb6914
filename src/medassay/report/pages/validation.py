"""Documents on how a version was validated: methodology, study, limitations, replies to
criticism.
"""

from collections.abc import Iterator

from medassay.report.board import VALIDATION, Board
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page; nothing where the publisher gave no documents."""
    if board.documents:
        yield render("validation.html", board, f"{VALIDATION}/")
