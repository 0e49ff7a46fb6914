"""Who publishes a board, what for, and how to read and to dispute it."""

from collections.abc import Iterator

from medassay.core.records.statistics import OVERALL
from medassay.report.board import Board
from medassay.report.pages.html import Page, render

_LEGEND = {
    "zero_shot": "the question alone",
    "few_shot": "the question after solved examples",
    "rag": "the question with passages that a search found",
    "topline_path": "the question with the reasoning path to its answer: an upper bound",
    "topline_text": "the question with the source text of its condition: an upper bound",
    "topline_all": "the question with path and source text: an upper bound",
}


def pages(board: Board) -> Iterator[Page]:
    """Yield the page, of a board whose publisher says who they are."""
    if board.identity is None:
        return
    rows = [
        row for mode in board.modes for part in board.by_metric for row in part.rows(OVERALL, mode)
    ]
    settings = sorted({row.setting for row in rows})
    # How imported answers were asked for, nobody said.
    legend = {} if board.manifest.is_import else _LEGEND
    yield render("about.html", board, "about/", settings=settings, legend=legend)
