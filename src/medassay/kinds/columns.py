"""How a kind shows columns of measures where it brings nothing of its own: a table in the terminal,
a page with a figure, and a file.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from medassay.core.records.leaderboard import honest_ends, units
from medassay.kinds.kind import DataFile, Presentation, Rows, Statistics, Table
from medassay.report.board import OVERALL, Board
from medassay.report.pages.figures import figure_context, figure_pages
from medassay.report.pages.html import Page, render
from medassay.report.plot.bars import bars
from medassay.report.plot.figure import Figure
from medassay.report.tables import csv_text
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


def _estimates(key: str, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield every estimate of some rows with the row and the name of its number."""
    for row in rows:
        who = {name: row[name] for name in ("model", "setting", "mode")}
        for name, estimate in row[key].items():
            if estimate is not None:
                named = {"number": name, "name": name.replace("_", " ")}
                yield {**who, **named, **estimate, **honest_ends(estimate)}


def _tables(key: str, rows: Rows, statistics: Statistics) -> Iterator[Table]:
    cells = []
    for estimate in _estimates(key, rows):
        value, lo, hi = (units(estimate[end], estimate["scale"]) for end in ("score", "lo", "hi"))
        who = (estimate["model"], estimate["setting"], estimate["name"])
        cells.append((*who, f"{value} [{lo}, {hi}]", str(estimate["n"])))
    yield Table(
        rows=cells,
        text=("model", "setting", "number"),
        numbers=("value", "items"),
        title="beside the score, 95 % intervals; shares in %",
    )


def _csv(key: str, board: Board) -> str:
    lines = []
    for domain, rows in board.statistics["domains"].items():
        for estimate in _estimates(key, rows):
            second = {f"second_{name}": v for name, v in (estimate["second"] or {}).items()}
            lines.append({"domain": domain, **estimate, **second})
    return csv_text(_CSV, lines)


def _figure(key: str, run: Run | None, statistics: Statistics, mode: str) -> Figure | None:
    """Return the columns that are shares by row, at most forty rows; None where there are none."""
    rows = [row for row in statistics["domains"][OVERALL] if row["mode"] == mode][:_SHOWN]
    points = [
        {**estimate, "row": f"{estimate['model']} · {estimate['setting']}"}
        for estimate in _estimates(key, rows)
        if estimate["scale"] == [0, 1]
    ]
    if not points:
        return None
    return bars(points, by="row", group="name", unit="shares, %", factor=100)


def _pages(key: str, board: Board) -> Iterator[Page]:
    """Yield the page of every mode."""
    if key not in board.statistics:
        return
    for mode in board.modes:
        slug = board.slug(mode, "mode")
        figure = _figure(key, None, board.statistics, mode)
        if figure is not None:
            yield from figure_pages(figure, f"{key}-{slug}")
        yield render(
            "columns.html",
            board,
            f"{key}/" if mode == board.modes[0] else f"{key}/track/{slug}/",
            mode=mode,
            key=key,
            title=key.replace("_", " ").capitalize(),
            rows=board.rows(OVERALL, mode),
            names=board.statistics[key]["columns"],
            figure=None if figure is None else figure_context(figure, f"{key}-{slug}"),
        )
