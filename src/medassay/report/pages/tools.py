"""Solo and tools: what looking things up changes, paired over the items that a row answered both
ways.
"""

from collections.abc import Iterator, Sequence

from medassay.core.records.statistics import OVERALL, LeaderboardRow, ScoreScale, ToolsEffect
from medassay.report.board import Board
from medassay.report.pages.figures import figure_context, figure_pages
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
    figure = tools_figure(rows, board.statistics.scale)
    name = f"{board.figure_prefix}tools-minus-solo"
    yield from figure_pages(figure, name)
    yield render(
        "tools.html",
        board,
        f"{board.folder}tools/",
        rows=rows,
        overall=OVERALL,
        drawn=min(_DRAWN, len(rows)),
        scale=board.statistics.scale.ends,
        used=tool_rows(board),
        **figure_context(figure, name),
    )


def tools_figure(rows: Sequence[ToolsEffect], scale: ScoreScale) -> Figure:
    """Return the differences domain by domain, those over all domains first."""
    first = sorted(rows, key=lambda row: (row.domain != OVERALL, row.domain))
    return forest(
        [
            NamedDifference(
                name=f"{row.domain}: {row.model} · {row.setting}",
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


def tool_rows(board: Board) -> list[LeaderboardRow]:
    """Return the rows that say how tools were used."""
    return [row for row in board.rows(OVERALL) if row.tool_use]
