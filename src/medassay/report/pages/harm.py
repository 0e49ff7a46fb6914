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
        (mode, part.statistics.metric): part.statistics.is_graded(
            mode, imported=board.manifest.is_import
        )
        for part in board.by_metric
        for mode in part.modes
    }
    yield render("harm.html", board, "harm/", rows=rows, domains=domains, graded=graded)
