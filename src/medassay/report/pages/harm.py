"""The harm ledger: what could have hurt a patient, counted one by one and never averaged away."""

from collections.abc import Iterator

from medassay.report.board import OVERALL, Board
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    rows = [row for row in board.statistics["domains"][OVERALL] if row.get("harm")]
    domains = [
        {**row, "domain": domain}
        for domain in board.domains
        for row in board.statistics["domains"][domain]
        if row.get("harm") and (row["harm"]["harmful"] or row.get("harmful_criteria"))
    ]
    graded = {mode: _is_graded(board, mode) for mode in board.modes}
    yield render("harm.html", board, "harm/", rows=rows, domains=domains, graded=graded)


def _is_graded(board: Board, mode: str) -> bool:
    """Return whether answers can be partly right.

    Relations of fewer than two ranked rows do not tell.
    """
    relations = board.relations(OVERALL, mode)
    is_told = relations.get("n_ranked", 0) > 1
    return board.statistics["metric"] != "accuracy" and (relations["graded"] if is_told else True)
