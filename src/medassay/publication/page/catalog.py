"""Every kind of page: one line each."""

from collections.abc import Callable, Iterator

from medassay.publication.board import Board
from medassay.publication.page import cell, data, leads, methodology, model, ranking, run
from medassay.publication.page.html import Page

PAGES: dict[str, Callable[[Board], Iterator[Page]]] = {
    "cell": cell.pages,
    "data": data.pages,
    "leads": leads.pages,
    "methodology": methodology.pages,
    "model": model.pages,
    "ranking": ranking.pages,
    "run": run.pages,
}
