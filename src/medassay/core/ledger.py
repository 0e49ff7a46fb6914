"""`LedgerEntry`, one line of a site's ledger, and what the lines together say of each
publication.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from medassay.core.keyed import keyed
from medassay.errors import IntegrityError

LEDGER = "log.jsonl"
SITE_SUMS = "log/SITE.sha256"
HEAD = "log/head.json"  # what an outsider keeps: size, root and last hash of the ledger
STATES = ("current", "superseded", "corrected", "retracted")


class LoggedRerun(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found that asked the models of a run again: trials that differ, of all, and
    whether all cells lie within tolerance.
    """

    run: str
    differing: int
    trials: int
    within: bool


class LedgerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of a ledger says: of a publication, or of a change of its status.

    Attributes
    ----------
    joined : ids of the runs that the published one joins
    banks, methodology, root : of the run: versions, and hashes
    next : the publication to read instead
    """

    event: str
    at: str
    publication: str
    status: str = "current"
    reason: str = ""
    next: str | None = None
    run: str = ""
    joined: list[str] = []
    rerun: LoggedRerun | None = None
    banks: list[str] = []
    methodology: str = ""
    root: str = ""
    sums_sha256: str = ""

    @property
    def is_publication(self) -> bool:
        """Return whether it is of a publication, not of a change of status."""
        return self.event == "publication"

    def holds(self, run: str) -> bool:
        """Return whether the publication is of a run, alone or joined with others."""
        return run == self.run or run in self.joined


@dataclass(frozen=True)
class LedgerEntry:
    """One line of a ledger: a record as it is hashed, the hash before it, its own, and who signed
    it if anyone.
    """

    record: dict[str, Any]
    prev: str
    hash: str
    signature: dict[str, str] | None = None

    @cached_property
    def event(self) -> LedgerEvent:
        """Return what the line says."""
        try:
            return msgspec.convert(self.record, LedgerEvent)
        except msgspec.ValidationError as error:
            raise IntegrityError(f"{LEDGER}: {error}") from None

    @property
    def signer(self) -> str | None:
        """Return the public key of who signed the line."""
        return None if self.signature is None else self.signature["key"]


def status_of(entries: Sequence[LedgerEntry]) -> dict[str, dict[str, Any]]:
    """Return publication → its status document: what the last entry about it says."""
    statuses: dict[str, dict[str, Any]] = {}
    for entry in entries:
        event = entry.event
        statuses[event.publication] = {
            "schema_version": 1,
            "publication": event.publication,
            "status": event.status,
            "reason": event.reason,
            "next": event.next,
            "at": event.at,
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
    published = publications_in(entries)
    documents = []
    for event in published:
        rerun = event.rerun
        if rerun is None:
            continue
        audited = [other.publication for other in published if other.holds(rerun.run)]
        if audited:
            document = {"publication": event.publication, "of": audited}
            documents.append(document | keyed(rerun, "differing", "trials", "within"))
    return documents


def publications_in(entries: Sequence[LedgerEntry]) -> list[LedgerEvent]:
    """Return what is said of each publication, oldest first."""
    return [entry.event for entry in entries if entry.event.is_publication]


def front_of(entries: Sequence[LedgerEntry]) -> str:
    """Return the publication that a site opens with: the newest that neither was retracted nor is
    an audit of another.

    Where there is none, the newest that is no audit; where all are audits, the newest of these.
    """
    states = status_of(entries)
    published = publications_in(entries)[::-1]
    names = [event.publication for event in published]
    no_audits = [event.publication for event in published if event.rerun is None]
    standing = [name for name in no_audits if states[name]["status"] != "retracted"]
    return (standing or no_audits or names)[0]
