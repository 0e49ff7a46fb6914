"""One page a question bank: card, limits, statistics, item flow, examples, history."""

from collections.abc import Iterator

from msgspec.structs import replace

from medassay.report.board import Board, ShownBank
from medassay.report.pages.figures import figure_pages, shown_figure
from medassay.report.pages.html import Page, render
from medassay.report.plot.bars import StackedCount, stacked

_SHOWN = ("domain", "category", "year", "language", "answer_type", "form")
_MOST_GROUPS = 40


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of each bank and its figure."""
    for bank in board.banks:
        slug = board.slug(bank.card["version"], "bank")
        figure = None
        if bank.counts and len({count.place for count in bank.counts}) <= _MOST_GROUPS:
            stacked_bars = stacked(_named(bank, board), over=bank.over, by=bank.by)
            yield from figure_pages(stacked_bars, f"bank-{slug}", board.texts)
            figure = shown_figure(stacked_bars, f"bank-{slug}", board.texts)
        yield render(
            "bank.html",
            board,
            f"bank/{slug}/",
            bank=bank.card,
            shown=bank,
            fields=_fields(bank, board),
            figure=figure and figure.figure,
            file=figure and figure.file,
        )


def _fields(bank: ShownBank, board: Board) -> list[str]:
    """Return by what the items are counted; files of imports say no language, and "en" stands in
    for it.
    """
    languages = bank.stats.by.get("language", {}) if bank.stats is not None else {}
    unsaid = board.manifest.is_import and languages.keys() == {"en"}
    return [name for name in _SHOWN if not (unsaid and name == "language")]


def _named(bank: ShownBank, board: Board) -> list[StackedCount]:
    """Return the counts of a bank's items with domains called as the publisher calls them."""
    names = [board.domain_name(count.place) for count in bank.counts]
    if bank.over != "domain" or len(set(names)) < len({count.place for count in bank.counts}):
        return list(bank.counts)
    return [replace(count, place=name) for count, name in zip(bank.counts, names, strict=True)]
