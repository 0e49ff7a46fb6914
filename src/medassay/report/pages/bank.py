"""One page a question bank: card, limits, statistics, item flow, examples, history."""

from collections.abc import Iterator
from typing import Any

from medassay.report.board import Board
from medassay.report.pages.figures import figure_context, figure_pages
from medassay.report.pages.html import Page, render
from medassay.report.plot.bars import stacked

_SHOWN = ("domain", "category", "year", "language", "answer_type", "form")
_MOST_GROUPS = 40


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of each bank and its figure."""
    for bank in board.banks:
        slug = board.slug(bank["version"], "bank")
        figure: dict[str, Any] = {"figure": None, "file": None}
        cross = bank["cross"]
        if cross and len({row[cross["over"]] for row in cross["counts"]}) <= _MOST_GROUPS:
            stacked_bars = stacked(cross["counts"], over=cross["over"], by=cross["by"])
            yield from figure_pages(stacked_bars, f"bank-{slug}")
            figure = figure_context(stacked_bars, f"bank-{slug}")
        yield render("bank.html", board, f"bank/{slug}/", bank=bank, fields=_SHOWN, **figure)
