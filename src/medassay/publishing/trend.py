"""Scores over the publications of a site, series by series: `data/trend.json` of each.

A series is a question bank's version with a methodology; a change of either begins a new one, and
the old points stay under their own. Each publication takes over the points of the one before it.
"""

from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical, short_hash
from medassay.core.json import parse_record
from medassay.core.ledger import publications_in
from medassay.core.records.statistics import OVERALL
from medassay.storage.ledger import read_ledger
from medassay.storage.run import Run

TREND = Path("data/trend.json")


def write_trend(folder: Path, site: Path, run: Run, publication: str, reason: str) -> None:
    """Write the trend of a publication that is being made: the earlier points and its own."""
    before = _earlier(site)
    document = extended(before, run, publication, reason)
    (folder / TREND).write_bytes(canonical(document) + b"\n")


def extended(before: dict[str, Any], run: Run, publication: str, reason: str) -> dict[str, Any]:
    """Return a trend with the points of one more publication, and a marker if a series begins."""
    series = series_of(run)
    markers = list(before["markers"])
    last = before["series"][-1] if before["series"] else None
    if last is not None and any(last[key] != series[key] for key in ("banks", "methodology")):
        changes = [
            f"{what} {', '.join(map(str, old))} → {', '.join(map(str, new))}"
            for what, old, new in (
                ("question bank", last["banks"], series["banks"]),
                ("methodology", [last["methodology"]], [series["methodology"]]),
            )
            if old != new
        ]
        markers.append({"publication": publication, "what": "; ".join(changes), "reason": reason})
    points = [
        {
            "publication": publication,
            "date": run.seal.sealed_at[:10],
            "series": series["id"],
            "sampling": short_hash(run.manifest.sampling.get(row["model"])),
            **{
                key: row[key]
                for key in (
                    *("model", "setting", "mode", "metric", "scale"),
                    *("score", "lo", "hi", "n", "rank"),
                    *(("rank_lo", "rank_hi", "interval") if "interval" in row else ()),
                )
            },
        }
        for row in run.statistics.document["domains"][OVERALL]
        if row["score"] is not None
    ]
    entries = [{"publication": publication, **series}]
    return {
        "schema_version": 1,
        "series": [*before["series"], *entries],
        "markers": markers,
        "points": [*before["points"], *points],
    }


def series_of(run: Run) -> dict[str, Any]:
    """Return what a series in time is known by: bank versions and methodology."""
    banks = sorted(bank.version for bank in run.manifest.banks)
    key = {"banks": banks, "methodology": run.manifest.methodology}
    return {"id": short_hash(key), **key}


def _earlier(site: Path) -> dict[str, Any]:
    names = [event.publication for event in publications_in(read_ledger(site))]
    return read_trend(site / "p" / names[-1]) if names else nothing()


def nothing() -> dict[str, Any]:
    """Return the trend of a site without publications."""
    return {"schema_version": 1, "series": [], "markers": [], "points": []}


def read_trend(publication: Path) -> dict[str, Any]:
    """Return the trend of a publication; nothing where it has none."""
    path = publication / TREND
    if not path.is_file():
        return nothing()
    document = parse_record(path.read_bytes(), str(TREND))
    return document if isinstance(document, dict) else nothing()
