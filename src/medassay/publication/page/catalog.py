"""Every kind of page: one line each."""

from collections.abc import Callable, Iterator

from medassay.publication.board import Board
from medassay.publication.page import (
    bank,
    cell,
    compare,
    data,
    ddx,
    harm,
    leads,
    likelihood,
    methodology,
    model,
    ranking,
    records,
    run,
    texts,
    tools,
    trend,
    validation,
)
from medassay.publication.page.html import Page

PAGES: dict[str, Callable[[Board], Iterator[Page]]] = {
    "bank": bank.pages,
    "cell": cell.pages,
    "compare": compare.pages,
    "data": data.pages,
    "ddx": ddx.pages,
    "harm": harm.pages,
    "leads": leads.pages,
    "likelihood": likelihood.pages,
    "methodology": methodology.pages,
    "model": model.pages,
    "ranking": ranking.pages,
    "records": records.pages,
    "run": run.pages,
    "texts": texts.pages,
    "tools": tools.pages,
    "trend": trend.pages,
    "validation": validation.pages,
}
