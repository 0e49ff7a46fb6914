"""Pairs of models over all domains: difference, interval, tests, and which of the two is shown to
be better.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from medassay.core.records.relations import RowPair
from medassay.core.records.statistics import OVERALL, Statistics
from medassay.core.records.trial import RowKey
from medassay.report.board import Board
from medassay.report.pages.figures import figure_pages, shown_figure
from medassay.report.pages.html import Page, render
from medassay.report.plot.figure import Figure
from medassay.report.plot.forest import NamedDifference, forest

_MOST_PAIRS = 200  # in one table; more are on the pages of their rows
_DRAWN = 60


def pages(board: Board) -> Iterator[Page]:
    """Yield for every mode a page of all pairs with a figure, and a page of each ranked row with
    its pairs.
    """
    for part in board.by_metric:
        yield from _pages(part)


def _pages(board: Board) -> Iterator[Page]:
    for mode in board.modes:
        pairs = pairs_by_rank(board.statistics, mode)
        pairs_of = _by_row(pairs)
        track = "" if mode == board.modes[0] else f"{board.slug(mode, 'mode')}/"
        name = f"{board.figure_prefix}forest-{board.slug(mode, 'mode')}"
        folder = f"{board.folder}compare/{track}"
        drawing = pairs_figure(board.statistics, mode)
        if pairs:
            yield from figure_pages(drawing, name, board.texts)
        rows = [row.key for row in board.rows(OVERALL, mode) if row.key in pairs_of]
        places = {row: f"{folder}{board.slug(' '.join(row), 'pairs')}/" for row in rows}
        n_rows = Counter(model for model, _ in places)
        common: dict[str, Any] = {
            "mode": mode,
            "in_settings": {model for model, n in n_rows.items() if n > 1},
            "total": len(pairs),
            "relations": board.relations(OVERALL, mode),
            "places": places,
            "scale": board.statistics.scale.ends,
        }
        yield render(
            "compare.html",
            board,
            folder,
            pairs=pairs if len(pairs) <= _MOST_PAIRS else [],
            row=None,
            drawn=min(_DRAWN, len(pairs)),
            **common,
            **msgspec.structs.asdict(shown_figure(drawing, name, board.texts)),
        )
        for row, place in places.items():
            yield render("compare.html", board, place, pairs=pairs_of[row], row=row, **common)


def pairs_by_rank(statistics: Statistics, mode: str) -> list[RowPair]:
    """Return the pairs over all domains as the ranking orders their rows: the row that stands
    higher first.
    """
    place = {row.key: at for at, row in enumerate(statistics.rows(OVERALL, mode))}
    pairs = [
        pair if place[pair.first] < place[pair.second] else pair.turned()
        for pair in statistics.relations(OVERALL, mode).pairs
    ]
    return sorted(pairs, key=lambda pair: (place[pair.first], place[pair.second]))


def _by_row(pairs: Sequence[RowPair]) -> dict[RowKey, list[RowPair]]:
    """Return the pairs of each row, itself first, in the order of the others' ranks."""
    pairs_of: dict[RowKey, list[RowPair]] = {}
    for pair in pairs:
        pairs_of.setdefault(pair.second, []).append(pair.turned())
    for pair in pairs:
        pairs_of.setdefault(pair.first, []).append(pair)
    return pairs_of


def pairs_figure(statistics: Statistics, mode: str) -> Figure:
    """Return the forest of a run's first pairs over all domains, by rank."""
    scale = statistics.scale
    pairs = pairs_by_rank(statistics, mode)[:_DRAWN]
    return forest(
        [_named_difference(pair, scale.better) for pair in pairs],
        unit="points of 100" if scale.is_share else "units of the score",
        factor=100 if scale.is_share else 1,
    )


def _named_difference(pair: RowPair, better: str) -> NamedDifference:
    first, other = pair.first, pair.second
    same = first[1] == other[1]
    names = (first[0], other[0]) if same else (" · ".join(first), " · ".join(other))
    return NamedDifference(
        name=f"{names[0]} − {names[1]}",
        diff=pair.difference,
        lo=pair.lo,
        hi=pair.hi,
        different=pair.reading(better) != "none",
    )
