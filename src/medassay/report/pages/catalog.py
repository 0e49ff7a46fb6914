"""Every page that does not belong to one kind of task: one line each."""

from collections.abc import Callable, Iterator

from medassay.report.board import Board
from medassay.report.pages import (
    about,
    bank,
    cell,
    changes,
    compare,
    data,
    harm,
    leads,
    matrix,
    methodology,
    model,
    ranking,
    run,
    tools,
    trend,
    validation,
)
from medassay.report.pages.html import Page

PAGES: dict[str, Callable[[Board], Iterator[Page]]] = {
    "about": about.pages,
    "bank": bank.pages,
    "cell": cell.pages,
    "changes": changes.pages,
    "compare": compare.pages,
    "data": data.pages,
    "harm": harm.pages,
    "leads": leads.pages,
    "matrix": matrix.pages,
    "methodology": methodology.pages,
    "model": model.pages,
    "ranking": ranking.pages,
    "run": run.pages,
    "tools": tools.pages,
    "trend": trend.pages,
    "validation": validation.pages,
}
