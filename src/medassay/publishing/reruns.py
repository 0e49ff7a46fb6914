"""What audits found of the publications of a series: `data/reruns.json` of each publication that
comes after them.

An audit is the publication of a fresh run: every model of a published run was asked again. The
audited publication keeps its bytes; its status page names the audit, and so does every later
ranking of the same banks and methodology.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from medassay.core.canonical import record_line
from medassay.core.json import parse_record, record_as
from medassay.core.ledger import LedgerEntry, PublishedRerun, publications_in, reruns_of
from medassay.core.records.trend import Series

RERUNS = Path("data/reruns.json")


def reruns_in_series(entries: Sequence[LedgerEntry], series: Series) -> list[PublishedRerun]:
    """Return what audits found of publications with the banks and the methodology of a series,
    oldest first.
    """
    members = {
        event.publication
        for event in publications_in(entries)
        if sorted(event.banks) == series.banks and event.methodology == series.methodology
    }
    return [rerun for rerun in reruns_of(entries) if members.intersection(rerun.of)]


def write_reruns(publication: Path, entries: Sequence[LedgerEntry], series: Series) -> None:
    """Write down what earlier audits found of the series of a publication that is being made;
    nothing where there is none.
    """
    if reruns := reruns_in_series(entries, series):
        (publication / RERUNS).write_bytes(record_line(_EarlierReruns(reruns=reruns)))


def read_reruns(publication: Path) -> list[PublishedRerun]:
    """Return what a publication says of earlier audits of its series.

    Raises
    ------
    IntegrityError
        Saying what is wrong with the file.
    """
    path = publication / RERUNS
    if not path.is_file():
        return []
    document = parse_record(path.read_bytes(), str(RERUNS))
    return record_as(document, _EarlierReruns, str(RERUNS)).reruns


class _EarlierReruns(msgspec.Struct, kw_only=True):
    schema_version: int = 1
    reruns: list[PublishedRerun]
