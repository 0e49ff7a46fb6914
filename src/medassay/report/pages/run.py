"""The facts of the run: models, sampling, versions, machine, failures, times (nowhere else)."""

from collections.abc import Iterator

from medassay.core.records.statistics import OVERALL
from medassay.report.board import Board
from medassay.report.pages.html import Page, render
from medassay.report.pages.tools import tool_rows

_SHOWN = (
    "provider",
    "model",
    "version",
    "family",
    "location",
    "licence",
    "size",
    "quantisation",
    "engine",
    "engine_version",
    "weights_digest",
    "max_tokens",
    "temperature",
    "top_p",
)


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of the run."""
    path = f"run/{board.slug(board.manifest.run)}/"
    sources = [row for row in board.rows(OVERALL) if row.own_source]
    yield render("run.html", board, path, shown=_SHOWN, used=tool_rows(board), sources=sources)
