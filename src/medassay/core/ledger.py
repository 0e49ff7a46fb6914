"""`LedgerEntry`, one line of a site's ledger, and what the lines together say of each
publication.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypedDict

import msgspec

from medassay.core.json import record_as
from medassay.core.records.dispute import DECISIONS, Dispute, DisputeStep
from medassay.errors import IntegrityError

LEDGER = "log.jsonl"
SITE_SUMS = "log/SITE.sha256"
HEAD = "log/head.json"  # what an outsider keeps: size, root and last hash of the ledger
PUBLICATION_ID = re.compile(r"[a-z0-9][a-z0-9.-]{0,199}")
STATES = ("current", "superseded", "corrected", "retracted")


class LedgerObject(TypedDict, total=False):
    """What a line of a ledger says, as it is hashed: of a publication, of a change of its status,
    or a step of a dispute about it; see `LedgerEvent` and `DisputeStep`.
    """

    schema_version: int
    event: str
    at: str
    publication: str
    code: dict[str, Any]
    run: str
    joined: list[str]
    rerun: dict[str, Any]
    banks: list[str]
    methodology: str
    root: str
    sums_sha256: str
    demonstration: bool
    status: str
    reason: str
    next: str | None
    step: str
    dispute: int
    about: dict[str, str]
    claim: str
    by: str
    checked: str
    decision: str


class LoggedRerun(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found that asked the models of a run again: trials that differ, of all, and
    whether all cells lie within tolerance.
    """

    run: str
    differing: int
    trials: int
    within: bool


class PublishedRerun(msgspec.Struct, frozen=True, kw_only=True):
    """What a published audit found: a run that asked the models of other publications again.

    Attributes
    ----------
    publication : the audit itself; `of` are those whose run it made again
    differing, trials : how many trials differ, of how many
    within : whether all cells lie within tolerance
    """

    publication: str
    of: list[str]
    differing: int
    trials: int
    within: bool


class OpenDispute(msgspec.Struct, frozen=True, kw_only=True):
    """A dispute that is open: its number, what it is about in words, and the model if it is about
    one.
    """

    number: int
    about: str
    model: str = ""


class PublicationStatus(msgspec.Struct, kw_only=True):
    """What the last entry about a publication says, and the audits of it and open disputes about it
    where there are any.
    """

    schema_version: int = 1
    publication: str
    status: str
    reason: str
    next: str | None
    at: str
    reruns: list[PublishedRerun] | msgspec.UnsetType = msgspec.UNSET
    open_disputes: list[OpenDispute] | msgspec.UnsetType = msgspec.UNSET


class LedgerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of a ledger says: of a publication, of a change of its status, or of a dispute
    about it (`core/records/dispute.py`).

    Attributes
    ----------
    joined : ids of the runs that the published one joins
    banks, methodology, root : of the run: versions, and hashes
    next : the publication to read instead
    demonstration : whether its models are scripted, to show the software
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
    demonstration: bool = False

    @property
    def is_publication(self) -> bool:
        """Return whether it is of a publication, not of a change of status."""
        return self.event == "publication"

    def holds(self, run: str) -> bool:
        """Return whether the publication is of a run, alone or joined with others."""
        return run == self.run or run in self.joined


class LedgerEntry(msgspec.Struct, frozen=True, dict=True):
    """One line of a ledger: a record as it is hashed, the hash before it, its own, and who signed
    it if anyone.
    """

    record: LedgerObject
    prev: str
    hash: str
    signature: dict[str, str] | None = None

    @cached_property
    def event(self) -> LedgerEvent:
        """Return what the line says."""
        return record_as(self.record, LedgerEvent, LEDGER)

    @property
    def is_dispute(self) -> bool:
        """Return whether it is of a dispute."""
        return self.event.event == "dispute"

    @property
    def signer(self) -> str | None:
        """Return the public key of who signed the line."""
        return None if self.signature is None else self.signature["key"]


def status_of(entries: Sequence[LedgerEntry]) -> dict[str, PublicationStatus]:
    """Return publication → its status: what the last entry about it says."""
    statuses: dict[str, PublicationStatus] = {}
    for entry in entries:
        event = entry.event
        if entry.is_dispute:
            continue
        statuses[event.publication] = PublicationStatus(
            publication=event.publication,
            status=event.status,
            reason=event.reason,
            next=event.next,
            at=event.at,
        )
    for rerun in reruns_of(entries):
        for name in rerun.of:
            status = statuses[name]
            status.reruns = [*(status.reruns or ()), rerun]
    for dispute in disputes_of(entries):
        if dispute.closing is None and dispute.publication in statuses:
            status = statuses[dispute.publication]
            about = dispute.opening.about
            open_dispute = OpenDispute(number=dispute.number, about=about.name, model=about.model)
            status.open_disputes = [*(status.open_disputes or ()), open_dispute]
    return statuses


def reruns_of(entries: Sequence[LedgerEntry]) -> list[PublishedRerun]:
    """Return what each published audit found that asked the models of other publications again,
    oldest first.

    Boards of earlier versions do not say it in their ledger.
    """
    published = publications_in(entries)
    reruns = []
    for event in published:
        rerun = event.rerun
        if rerun is None:
            continue
        audited = [other.publication for other in published if other.holds(rerun.run)]
        if audited:
            reruns.append(
                PublishedRerun(
                    publication=event.publication,
                    of=audited,
                    differing=rerun.differing,
                    trials=rerun.trials,
                    within=rerun.within,
                )
            )
    return reruns


def disputes_of(entries: Sequence[LedgerEntry]) -> list[Dispute]:
    """Return the disputes of a site in the order in which they were opened.

    Raises
    ------
    IntegrityError
        When a line answers or closes a dispute that is not open, or opens one out of turn.
    """
    disputes: list[Dispute] = []
    published: set[str] = set()
    for number, entry in enumerate(entries, 1):
        if entry.event.is_publication:
            published.add(entry.event.publication)
        if not entry.is_dispute:
            continue
        step = record_as(entry.record, DisputeStep, f"{LEDGER} line {number}")
        if step.step == "opened" and step.dispute == len(disputes) + 1:
            disputes.append(Dispute(step.dispute, step.publication))
        if not 1 <= step.dispute <= len(disputes):
            raise IntegrityError(f"{LEDGER} line {number}: there is no dispute {step.dispute}")
        dispute = disputes[step.dispute - 1]
        is_first = not dispute.steps
        if is_first != (step.step == "opened") or (not is_first and dispute.closing is not None):
            raise IntegrityError(
                f"{LEDGER} line {number}: dispute {step.dispute} is not open, or opened twice"
            )
        if step.publication not in published:
            raise IntegrityError(
                f"{LEDGER} line {number}: dispute {step.dispute} is of {step.publication}, which"
                " was not published before"
            )
        if step.publication != dispute.publication:
            raise IntegrityError(
                f"{LEDGER} line {number}: dispute {step.dispute} is of {dispute.publication}"
            )
        if (step.step == "closed") != (step.decision in DECISIONS):
            raise IntegrityError(
                f"{LEDGER} line {number}: decision '{step.decision:.40}'; expected"
                f" {', '.join(DECISIONS)} where a dispute is closed"
            )
        dispute.steps.append((step, entry.hash))
    return disputes


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
    standing = [name for name in no_audits if states[name].status != "retracted"]
    return (standing or no_audits or names)[0]
