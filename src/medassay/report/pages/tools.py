"""Solo and tools: what looking things up changes, paired over the items that a row answered both
ways.
"""

from collections.abc import Iterator, Sequence

import msgspec

from medassay.core.records.statistics import OVERALL, LeaderboardRow, ToolsEffect
from medassay.report.board import Board
from medassay.report.pages.figures import figure_pages, shown_figure
from medassay.report.pages.html import Page, render
from medassay.report.plot.figure import Figure
from medassay.report.plot.forest import NamedDifference, forest

_DRAWN = 40


def pages(board: Board) -> Iterator[Page]:
    """Yield the page, if any row was asked both ways."""
    for part in board.by_metric:
        if rows := part.statistics.tools_minus_solo:
            yield from _page(part, rows)


def _page(board: Board, rows: Sequence[ToolsEffect]) -> Iterator[Page]:
    figure = _figure(rows, board)
    name = f"{board.figure_prefix}tools-minus-solo"
    yield from figure_pages(figure, name, board.texts)
    yield render(
        "tools.html",
        board,
        f"{board.folder}tools/",
        rows=rows,
        overall=OVERALL,
        drawn=min(_DRAWN, len(rows)),
        scale=board.statistics.scale.ends,
        used=tool_rows(board),
        **msgspec.structs.asdict(shown_figure(figure, name, board.texts)),
    )


def _figure(rows: Sequence[ToolsEffect], board: Board) -> Figure:
    """Return the differences domain by domain, those over all domains first."""
    scale = board.statistics.scale
    first = sorted(rows, key=lambda row: (row.domain != OVERALL, row.domain))
    return forest(
        [
            NamedDifference(
                name=f"{_where(row.domain, board)}: {row.model} · {row.setting}",
                diff=row.diff,
                different=row.different,
                # One item varies in no draw: the point stands for itself.
                lo=row.diff if row.lo is None else row.lo,
                hi=row.diff if row.hi is None else row.hi,
            )
            for row in first[:_DRAWN]
        ],
        unit="tools minus solo, " + ("points of 100" if scale.is_share else "units of the score"),
        factor=100 if scale.is_share else 1,
    )


def _where(domain: str, board: Board) -> str:
    return board.texts.said(domain) if domain == OVERALL else domain


def tool_rows(board: Board) -> list[LeaderboardRow]:
    """Return the rows that say how tools were used."""
    return [row for row in board.rows(OVERALL) if row.tool_use]
