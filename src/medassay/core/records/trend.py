"""The scores of a site over its publications: `data/trend.json` of each."""

from typing import Any

import msgspec

from medassay.core.records.statistics import RankRange


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """What points must share to be joined by a line: bank versions and methodology.

    `id` is the hash of both.
    """

    id: str
    banks: list[str]
    methodology: str


class PublishedSeries(Series, frozen=True, kw_only=True):
    """The series of one publication."""

    publication: str


class SeriesMarker(msgspec.Struct, frozen=True, kw_only=True):
    """A publication that began a new series: what changed, and why."""

    publication: str
    what: str
    reason: str = ""


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


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """The publications of a site up to one of them.

    `points` are those of `PublishedPoint` as the file has them: later publications copy them, and
    those of earlier versions have other keys.
    """

    schema_version: int = 1
    series: list[PublishedSeries] = []
    markers: list[SeriesMarker] = []
    points: list[dict[str, Any]] = []
