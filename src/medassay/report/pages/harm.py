"""The harm ledger: what could have hurt a patient, counted one by one and never averaged away."""

from collections.abc import Iterator

from medassay.core.records.statistics import OVERALL
from medassay.report.board import Board
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    rows = [row for row in board.rows(OVERALL) if row.harm]
    domains = [
        (domain, row)
        for domain in board.domains
        for row in board.rows(domain)
        if row.harm and (row.harm.harmful or row.harmful_criteria)
    ]
    graded = {
        (mode, part.statistics.metric): _is_graded(part, mode)
        for part in board.by_metric
        for mode in part.modes
    }
    yield render("harm.html", board, "harm/", rows=rows, domains=domains, graded=graded)


def _is_graded(board: Board, mode: str) -> bool:
    """Return whether answers can be partly right.

    Relations of fewer than two ranked rows do not tell.
    """
    relations = board.relations(OVERALL, mode)
    is_told = (relations.n_ranked or 0) > 1
    return board.statistics.metric != "accuracy" and (bool(relations.graded) if is_told else True)
