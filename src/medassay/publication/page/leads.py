"""No model leads everywhere: on which share of items each model is best, and the bound above them."""

from collections.abc import Iterator

from medassay.publication.board import OVERALL, Board
from medassay.publication.page.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    tables = []
    for mode in board.modes:
        for domain in (OVERALL, *board.domains):
            oracle = board.relations(domain, mode)["oracle"]
            tables.append(
                {
                    "domain": domain,
                    "mode": mode,
                    "oracle": oracle,
                    "n": board.relations(domain, mode)["n_common"],
                }
            )
    leaders = {
        row["model"]
        for domain in board.domains
        for row in board.rows(domain, board.modes[0])
        if row["rank"] == 1
    }
    yield render("leads.html", board, "leads/", tables=tables, leaders=sorted(leaders))
