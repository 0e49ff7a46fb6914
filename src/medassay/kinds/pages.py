"""Every page of a board: those of all boards, and those of the kind of its task."""

from collections.abc import Callable, Iterator

from medassay.kinds.catalog import presentations
from medassay.report.board import Board
from medassay.report.pages import catalog
from medassay.report.pages.html import Page

PAGES: dict[str, Callable[[Board], Iterator[Page]]] = {
    **catalog.PAGES,
    **{p.folder: p.pages for p in presentations().values() if p.pages is not None},
}
