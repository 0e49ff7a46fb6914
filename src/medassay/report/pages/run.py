"""The facts of the run: models, sampling, versions, machine, failures, times (nowhere else)."""

from collections.abc import Iterator

from medassay.report.board import OVERALL, Board
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
    path = f"run/{board.slug(board.manifest['run'])}/"
    sources = [row for row in board.statistics["domains"][OVERALL] if "own_source" in row]
    yield render("run.html", board, path, shown=_SHOWN, used=tool_rows(board), sources=sources)
