"""How a kind shows columns of measures where it brings nothing of its own: a table in the terminal,
a page with a figure, and a file.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from medassay.core.records.estimate import RowEstimate
from medassay.core.records.statistics import OVERALL, LeaderboardRow, Statistics
from medassay.core.table import Table
from medassay.kinds.kind import DataFile, Presentation
from medassay.report.board import Board
from medassay.report.pages.figures import figure_pages, shown_figure
from medassay.report.pages.html import Page, render
from medassay.report.plot.bars import Bar, bars
from medassay.report.plot.figure import N_COLOURS, Figure
from medassay.report.tables import csv_text, estimate_cells, named_row
from medassay.storage.run import Run

_SHOWN = 40  # rows of a figure
_CSV = (
    *("domain", "mode", "model", "setting", "number", "score", "lo", "hi"),
    *("second_method", "second_lo", "second_hi", "n"),
)


def shown_columns(key: str) -> Presentation:
    """Return how the columns of a kind are shown.

    Parameters
    ----------
    key : of the summary in the statistics of a run
    """
    title = key.replace("_", " ")
    return Presentation(
        title=title.capitalize(),
        folder=key,
        pages=partial(_pages, key),
        tables=partial(_tables, key),
        files={f"{key}.csv": DataFile(about=f"every estimate on {title}", text=partial(_csv, key))},
        figures={key: partial(_figure, key)},
    )


_Columns = dict[str, RowEstimate | None]  # name of a number → its mean; None without an interval


@cache
def _row_type(key: str) -> type[LeaderboardRow]:
    """Return the type of a row that has the columns of a kind under its key."""
    row_type: type[LeaderboardRow] = msgspec.defstruct(  # type: ignore[assignment]
        "ColumnsRow", [(key, _Columns)], bases=(LeaderboardRow,), frozen=True, kw_only=True
    )
    return row_type


def _rows(
    key: str, statistics: Statistics, domain: str, mode: str | None = None
) -> list[tuple[LeaderboardRow, _Columns]]:
    """Return the rows of a ranking with their columns."""
    rows = statistics.rows_as(_row_type(key), domain, mode)
    return [(row, getattr(row, key)) for row in rows]


def _estimates(
    rows: Sequence[tuple[LeaderboardRow, _Columns]],
) -> Iterator[tuple[LeaderboardRow, str, RowEstimate]]:
    """Yield every estimate of some rows with the row and the name of its number."""
    for row, columns in rows:
        for name, estimate in columns.items():
            if estimate is not None:
                yield row, name, estimate


def _tables(key: str, statistics: Statistics, domain: str) -> Iterator[Table]:
    cells = [
        (*row.key, name.replace("_", " "), estimate.on(estimate.scale), str(estimate.n))
        for row, name, estimate in _estimates(_rows(key, statistics, domain))
    ]
    yield Table(
        rows=cells,
        text=("model", "setting", "number"),
        numbers=("value", "items"),
        title="beside the score, 95 % intervals; shares in %",
    )


def _csv(key: str, board: Board) -> str:
    lines = []
    for domain in board.statistics.domains:
        for row, name, estimate in _estimates(_rows(key, board.statistics, domain)):
            lo, hi = estimate.ends
            lines.append(
                {
                    **named_row(domain, row),
                    **estimate_cells(estimate),
                    "number": name,
                    "score": estimate.value,
                    "lo": lo,
                    "hi": hi,
                }
            )
    return csv_text(_CSV, lines)


def _figure(key: str, run: Run | None, statistics: Statistics, mode: str) -> Figure | None:
    """Return the columns that are shares, by row; None where there are none.

    At most forty rows are shown. Of more columns than there are colours the rows are coloured
    instead, as many as there are colours.
    """
    rows = _rows(key, statistics, OVERALL, mode)
    names = {name for _, name, estimate in _estimates(rows) if estimate.scale == (0, 1)}
    by_column = len(names) > N_COLOURS
    shown = rows[: N_COLOURS if by_column else _SHOWN]
    points = [
        Bar(
            place=name.replace("_", " ") if by_column else row.name,
            group=row.name if by_column else name.replace("_", " "),
            score=estimate.value,
            lo=estimate.ends[0],
            hi=estimate.ends[1],
            n=estimate.n,
        )
        for row, name, estimate in _estimates(shown)
        if estimate.scale == (0, 1) and estimate.value is not None
    ]
    if not points:
        return None
    by, group = ("name", "row") if by_column else ("row", "name")
    figure = bars(points, by=by, group=group, unit="shares, %", factor=100)
    if len(shown) < len(rows):
        caption = f"{figure.caption} The first {len(shown)} of {len(rows)} rows."
        figure = replace(figure, caption=caption)
    return figure


def _pages(key: str, board: Board) -> Iterator[Page]:
    document = cast(Mapping[str, Any], board.statistics.document)
    if key not in document:
        return
    for mode in board.modes:
        slug = board.slug(mode, "mode")
        figure = _figure(key, None, board.statistics, mode)
        if figure is not None:
            yield from figure_pages(figure, f"{key}-{slug}", board.texts)
        yield render(
            "columns.html",
            board,
            f"{key}/" if mode == board.modes[0] else f"{key}/track/{slug}/",
            mode=mode,
            key=key,
            title=key.replace("_", " ").capitalize(),
            rows=_rows(key, board.statistics, OVERALL, mode),
            names=document[key]["columns"],
            figure=figure and shown_figure(figure, f"{key}-{slug}", board.texts),
        )
