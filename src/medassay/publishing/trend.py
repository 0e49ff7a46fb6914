"""Scores over the publications of a site, series by series: `data/trend.json` of each.

A series is a question bank's version with a methodology; a change of either begins a new one, and
the old points stay under their own. Each publication takes over the points of the one before it.
"""

from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import record_line, short_hash
from medassay.core.json import parse_record, record_as
from medassay.core.ledger import publications_in
from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.records.trend import PublishedSeries, Series, SeriesMarker, Trend
from medassay.storage.ledger import read_ledger
from medassay.storage.run import Run

TREND = Path("data/trend.json")


def write_trend(folder: Path, site: Path, run: Run, publication: str, reason: str) -> None:
    """Write the trend of a publication that is being made: the earlier points and its own."""
    published = publications_in(read_ledger(site))
    before = read_trend(site / "p" / published[-1].publication) if published else Trend()
    (folder / TREND).write_bytes(record_line(extended(before, run, publication, reason)))


def extended(before: Trend, run: Run, publication: str, reason: str) -> Trend:
    """Return a trend with the points of one more publication, and a marker if a series begins."""
    series = series_of(run)
    markers = list(before.markers)
    last = before.series[-1] if before.series else None
    if last is not None:
        changes = [
            f"{what} {', '.join(old)} → {', '.join(new)}"
            for what, old, new in (
                ("question bank", last.banks, series.banks),
                ("methodology", [last.methodology], [series.methodology]),
            )
            if old != new
        ]
        if changes:
            what = "; ".join(changes)
            markers.append(SeriesMarker(publication=publication, what=what, reason=reason))
    own_series = PublishedSeries(publication=publication, **msgspec.structs.asdict(series))
    points = [
        {
            "publication": publication,
            "date": run.seal.sealed_at[:10],
            "series": series.id,
            "sampling": short_hash(run.manifest.sampling.get(row.model)),
            **_point(row),
        }
        for row in run.statistics.rows(OVERALL)
        if row.score is not None
    ]
    return Trend(
        series=[*before.series, own_series],
        markers=markers,
        points=[*before.points, *points],
    )


def _point(row: LeaderboardRow) -> dict[str, Any]:
    """Return what a point says of its row; ranges of ranks where the run has them."""
    names = ["model", "setting", "mode", "metric", "scale", "score", "lo", "hi", "n", "rank"]
    if row.interval is not msgspec.UNSET:
        names += ["rank_lo", "rank_hi", "interval"]
    return {name: getattr(row, name) for name in names}


def series_of(run: Run) -> Series:
    """Return what a series in time is known by: bank versions and methodology."""
    banks, methodology = sorted(b.version for b in run.manifest.banks), run.manifest.methodology
    key = short_hash({"banks": banks, "methodology": methodology})
    return Series(id=key, banks=banks, methodology=methodology)


def read_trend(publication: Path) -> Trend:
    """Return the trend of a publication; nothing where it has none.

    Raises
    ------
    IntegrityError
        Saying what is wrong with the file.
    """
    path = publication / TREND
    if not path.is_file():
        return Trend()
    return record_as(parse_record(path.read_bytes(), str(TREND)), Trend, str(TREND))
