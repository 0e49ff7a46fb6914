"""Every page of a board: those of all boards, and those of the kind of its task."""

from collections.abc import Callable, Iterator

from medassay.kinds.catalog import presentations
from medassay.report.board import Board
from medassay.report.pages import catalog
from medassay.report.pages.html import Page


def _of_metrics(pages: Callable[[Board], Iterator[Page]]) -> Callable[[Board], Iterator[Page]]:
    """Return what makes the pages of a kind on a board, from the metric that is the kind's."""

    def of_board(board: Board) -> Iterator[Page]:
        for part in board.by_metric:
            yield from pages(part)

    return of_board


PAGES: dict[str, Callable[[Board], Iterator[Page]]] = {
    **catalog.PAGES,
    **{p.folder: _of_metrics(p.pages) for p in presentations().values() if p.pages is not None},
}
