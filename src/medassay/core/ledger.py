"""`Entry`, one line of a site's ledger, and what the lines together say of each publication."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEDGER = "log.jsonl"
SITE_SUMS = "log/SITE.sha256"
HEAD = "log/head.json"  # what an outsider keeps: size, root and last hash of the ledger
STATES = ("current", "superseded", "corrected", "retracted")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger: a record, the hash before it, its own, and who signed it if anyone."""

    record: dict[str, Any]
    prev: str
    hash: str
    signature: dict[str, str] | None = None

    @property
    def signer(self) -> str | None:
        """Return the public key of who signed the line."""
        return None if self.signature is None else self.signature["key"]


def status_of(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """Return publication → its status document: what the last entry about it says."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        record = entry.record
        found[record["publication"]] = {
            "schema_version": 1,
            "publication": record["publication"],
            "status": record.get("status", "current"),
            "reason": record.get("reason", ""),
            "next": record.get("next"),
            "at": record["at"],
        }
    return found


def is_publication(entry: Entry) -> bool:
    """Return whether an entry is of a publication, not of a change of status."""
    return bool(entry.record["event"] == "publication")
