"""Scores over the publications of the site.

A line never crosses a change of bank or methodology.
"""

from collections.abc import Iterator

import msgspec

from medassay.core.records.statistics import RankRange
from medassay.errors import IntegrityError
from medassay.report.board import Board
from medassay.report.pages.figures import figure_context, figure_pages
from medassay.report.pages.html import Page, render
from medassay.report.pages.ranking import metric_text
from medassay.report.plot.trend import SeriesPoint, trend

_MOST_ROWS = 1000


class PublishedPoint(RankRange, frozen=True, kw_only=True):
    """The score of a row in one publication of a site; the earliest points have a rank alone."""

    publication: str
    date: str
    model: str
    setting: str
    mode: str
    metric: str
    series: str
    sampling: str = ""
    scale: tuple[float | None, float | None]
    score: float
    lo: float | None
    hi: float | None
    n: int

    @property
    def rank_shown(self) -> str:
        """Return its rank as text, a dash where it has none."""
        if self.rank_lo is None and self.rank is not None:
            return str(self.rank)
        return self.rank_text()


class PublishedSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The banks and the methodology of one publication."""

    publication: str
    banks: list[str]
    methodology: str


class SeriesMarker(msgspec.Struct, frozen=True, kw_only=True):
    """A publication that began a new series: what changed, and why."""

    publication: str
    what: str
    reason: str = ""


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """The publications of a site up to one of them; see `publishing/trend.py`, which writes it."""

    points: list[PublishedPoint] = []
    markers: list[SeriesMarker] = []
    series: list[PublishedSeries] = []


def pages(board: Board) -> Iterator[Page]:
    """Yield the page and its figure; nothing for a run that is shown without a site."""
    try:
        whole = msgspec.convert(board.trend, Trend)
    except msgspec.ValidationError as error:
        raise IntegrityError(f"data/trend.json: {error}") from None
    if not whole.points:
        return
    # Points of another metric stand in the table, in their own units, and in no figure beside
    # these.
    scale, metric = board.statistics.scale, board.statistics.metric
    figures = []
    for mode in board.modes:  # solo and tools are two series
        points = [
            SeriesPoint(
                place=point.publication,
                row=f"{point.model} · {point.setting}",
                series=f"{point.series} {point.sampling}",
                score=point.score,
                lo=point.lo,
                hi=point.hi,
            )
            for point in whole.points
            if (point.metric, point.scale, point.mode) == (metric, scale.ends, mode)
        ]
        drawn_here = {point.place for point in points}
        markers = [m.publication for m in whole.markers if m.publication in drawn_here]
        drawing = trend(
            points, markers, unit=metric_text(board), factor=100 if scale.is_share else 1
        )
        name = "trend" if mode == board.modes[0] else f"trend-{board.slug(mode, 'mode')}"
        yield from figure_pages(drawing, name)
        figures.append({"mode": mode, **figure_context(drawing, name)})
    yield render(
        "trend.html",
        board,
        "trend/",
        points=whole.points[-_MOST_ROWS:],
        left_out=max(0, len(whole.points) - _MOST_ROWS),
        markers=whole.markers,
        series={entry.publication: entry for entry in whole.series},
        figures=figures,
    )
