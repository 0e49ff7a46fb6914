"""The harm ledger: what could have hurt a patient, counted one by one and never averaged away."""

from collections.abc import Iterator

from medassay.publication.board import OVERALL, Board
from medassay.publication.page.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    rows = [row for row in board.statistics["domains"][OVERALL] if row.get("harm")]
    domains = [
        {**row, "domain": domain}
        for domain in board.domains
        for row in board.statistics["domains"][domain]
        if row.get("harm") and (row["harm"]["harmful"] or row.get("harmful_criteria"))
    ]
    yield render("harm.html", board, "harm/", rows=rows, domains=domains)
