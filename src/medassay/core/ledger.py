"""`LedgerEntry`, one line of a site's ledger, and what the lines together say of each
publication.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEDGER = "log.jsonl"
SITE_SUMS = "log/SITE.sha256"
HEAD = "log/head.json"  # what an outsider keeps: size, root and last hash of the ledger
STATES = ("current", "superseded", "corrected", "retracted")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One line of a ledger: a record, the hash before it, its own, and who signed it if anyone."""

    record: dict[str, Any]
    prev: str
    hash: str
    signature: dict[str, str] | None = None

    @property
    def signer(self) -> str | None:
        """Return the public key of who signed the line."""
        return None if self.signature is None else self.signature["key"]


def status_of(entries: Sequence[LedgerEntry]) -> dict[str, dict[str, Any]]:
    """Return publication → its status document: what the last entry about it says."""
    statuses: dict[str, dict[str, Any]] = {}
    for entry in entries:
        record = entry.record
        statuses[record["publication"]] = {
            "schema_version": 1,
            "publication": record["publication"],
            "status": record.get("status", "current"),
            "reason": record.get("reason", ""),
            "next": record.get("next"),
            "at": record["at"],
        }
    for rerun in reruns_of(entries):
        for name in rerun["of"]:
            statuses[name].setdefault("reruns", []).append(rerun)
    return statuses


def reruns_of(entries: Sequence[LedgerEntry]) -> list[dict[str, Any]]:
    """Return what each published audit found that asked the models of other publications again,
    oldest first.

    An audit says `publication`, its own name, `of`, the publications whose run it made again,
    `differing` of `trials`, and whether all cells lie `within` tolerance. Boards of earlier
    versions do not say it in their ledger.
    """
    published = [entry.record for entry in entries if is_publication(entry)]
    return [
        {"publication": record["publication"], "of": audited}
        | {key: record["rerun"][key] for key in ("differing", "trials", "within")}
        for record in published
        if "rerun" in record
        if (
            audited := [
                other["publication"] for other in published if _holds(other, record["rerun"]["run"])
            ]
        )
    ]


def _holds(record: Mapping[str, Any], run: str) -> bool:
    """Return whether a publication is of a run, alone or joined with others."""
    return run == record["run"] or run in record.get("joined", ())


def front_of(entries: Sequence[LedgerEntry]) -> str:
    """Return the publication that a site opens with: the newest that neither was retracted nor is
    an audit of another.

    Where there is none, the newest that is no audit; where all are audits, the newest of these.
    """
    states = status_of(entries)
    published = [entry.record for entry in reversed(entries) if is_publication(entry)]
    names = [str(record["publication"]) for record in published]
    no_audits = [str(record["publication"]) for record in published if "rerun" not in record]
    standing = [name for name in no_audits if states[name]["status"] != "retracted"]
    return (standing or no_audits or names)[0]


def is_publication(entry: LedgerEntry) -> bool:
    """Return whether an entry is of a publication, not of a change of status."""
    return bool(entry.record["event"] == "publication")
