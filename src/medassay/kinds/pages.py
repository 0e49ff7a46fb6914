"""Every page of a board: those of all boards, and those of one kind of item, one line each."""

from collections.abc import Callable, Iterator

from medassay.kinds.diagnoses import page as diagnoses
from medassay.kinds.likelihood import page as likelihood
from medassay.kinds.record import page as record
from medassay.kinds.reference import page as reference
from medassay.report.board import Board
from medassay.report.pages import catalog
from medassay.report.pages.html import Page

PAGES: dict[str, Callable[[Board], Iterator[Page]]] = {
    **catalog.PAGES,
    "ddx": diagnoses.pages,
    "likelihood": likelihood.pages,
    "records": record.pages,
    "texts": reference.pages,
}
