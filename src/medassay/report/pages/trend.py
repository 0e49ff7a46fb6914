"""Scores over the publications of the site.

A line never crosses a change of bank or methodology.
"""

from collections.abc import Iterator

import msgspec

from medassay.core.records.statistics import RankRange
from medassay.report.board import Board
from medassay.report.pages.figures import figure_context, figure_pages
from medassay.report.pages.html import Page, render
from medassay.report.pages.ranking import metric_text
from medassay.report.plot.trend import trend

_MOST_ROWS = 1000


class PublishedPoint(RankRange, frozen=True, kw_only=True):
    """The score of a row in one publication of a site; the earliest points have a rank alone."""

    publication: str
    date: str
    model: str
    setting: str
    mode: str
    metric: str
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


def pages(board: Board) -> Iterator[Page]:
    """Yield the page and its figure; nothing for a run that is shown without a site."""
    if not board.trend.get("points"):
        return
    # Points of another metric stand in the table, in their own units, and in no figure beside
    # these.
    scale, metric = board.statistics.scale, board.statistics.metric
    figures = []
    for mode in board.modes:  # solo and tools are two series
        points = [
            {
                **point,
                "row": f"{point['model']} · {point['setting']}",
                "series": f"{point['series']} {point['sampling']}",
            }
            for point in board.trend["points"]
            if (point["metric"], point["scale"], point["mode"]) == (metric, [*scale.ends], mode)
        ]
        drawn_here = {point["publication"] for point in points}
        markers = [
            m["publication"] for m in board.trend["markers"] if m["publication"] in drawn_here
        ]
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
        points=msgspec.convert(board.trend["points"][-_MOST_ROWS:], list[PublishedPoint]),
        left_out=max(0, len(board.trend["points"]) - _MOST_ROWS),
        markers=board.trend["markers"],
        series={entry["publication"]: entry for entry in board.trend["series"]},
        figures=figures,
    )
