"""Scores over the publications of the site.

A line never crosses a change of bank or methodology.
"""

from collections.abc import Iterator, Sequence

import msgspec

from medassay.core.json import record_as
from medassay.core.records.trend import PublishedPoint
from medassay.report.board import Board
from medassay.report.pages.figures import ShownFigure, figure_pages, shown_figure
from medassay.report.pages.html import Page, metric_name, render
from medassay.report.pages.ranking import metric_text
from medassay.report.plot.trend import SeriesPoint, trend

_MOST_ROWS = 1000


def pages(board: Board) -> Iterator[Page]:
    """Yield the page and its figure; nothing for a run that is shown without a site."""
    published = record_as(board.trend.points, list[PublishedPoint], "data/trend.json")
    if not published:
        return
    # Points of another metric stand in the table, in their own units, and in no figure beside
    # these.
    figures = [entry for part in board.by_metric for entry in _figures(part, published)]
    for entry in figures:
        yield from entry.pages
    yield render(
        "trend.html",
        board,
        "trend/",
        points=published[-_MOST_ROWS:],
        left_out=max(0, len(published) - _MOST_ROWS),
        markers=board.trend.markers,
        series={entry.publication: entry for entry in board.trend.series},
        metrics={part.statistics.metric for part in board.by_metric},
        figures=figures,
    )


class _ShownTrend(ShownFigure, frozen=True, kw_only=True):
    """A figure of one metric and mode, with its files."""

    mode: str
    pages: tuple[Page, ...]


def _figures(board: Board, published: Sequence[PublishedPoint]) -> Iterator[_ShownTrend]:
    """Yield what shows the points of one metric, mode by mode."""
    scale, metric = board.statistics.scale, board.statistics.metric
    several = bool(board.metrics)
    names = _row_names(board, published)
    for mode in board.modes:  # solo and tools are two series
        points = [
            SeriesPoint(
                place=point.publication,
                row=names[point.model, point.setting],
                series=f"{point.series} {point.sampling}",
                score=point.score,
                lo=point.lo,
                hi=point.hi,
            )
            for point in published
            if (point.metric, point.scale, point.mode) == (metric, scale.ends, mode)
        ]
        drawn_here = {point.place for point in points}
        markers = [m.publication for m in board.trend.markers if m.publication in drawn_here]
        drawing = trend(
            points, markers, unit=metric_text(board), factor=100 if scale.is_share else 1
        )
        name = "trend" if mode == board.modes[0] else f"trend-{board.slug(mode, 'mode')}"
        name = f"{board.figure_prefix}{name}"
        yield _ShownTrend(
            mode=f"{board.texts.said(metric_name(metric))}, {mode}" if several else mode,
            pages=tuple(figure_pages(drawing, name, board.texts)),
            **msgspec.structs.asdict(shown_figure(drawing, name, board.texts)),
        )


def _row_names(board: Board, published: Sequence[PublishedPoint]) -> dict[tuple[str, str], str]:
    """Return row → its name in the figure: the model, with its setting where there are several."""
    rows = {(point.model, point.setting) for point in published}
    settings = {setting: board.setting_name(setting) for _, setting in rows}
    if len(set(settings.values())) < len(settings):  # a publisher may call two alike
        settings = {setting: setting for setting in settings}
    alone = len(settings) == 1
    return {row: row[0] if alone else f"{row[0]} · {settings[row[1]]}" for row in rows}
