"""The facts of the run: models, sampling, versions, machine, failures, times (nowhere else)."""

from collections.abc import Iterator

from medassay.publication.board import Board
from medassay.publication.page.html import Page, render

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
    yield render("run.html", board, path, shown=_SHOWN)
