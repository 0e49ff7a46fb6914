"""What the law deletes leaves a tombstone: the text is gone, its hash keeps the chain whole.

In the records under the seal a tombstone is the leaf of the Merkle tree that the record was, so
that the root stays what was sealed; so it is in the tree of the items. `tombstones.json` says which
sums the files had and have.
"""

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.check import build_item
from medassay.core.canonical import canonical, record_line
from medassay.core.files import write_whole
from medassay.core.json import parse_json, record_as
from medassay.core.records.manifest import Manifest
from medassay.core.records.statistics import FURTHER
from medassay.errors import IncompleteError, InputError
from medassay.kinds.catalog import RULES
from medassay.publishing.redaction import (
    TRIAL_FIELDS,
    NamedFinding,
    counted_still,
    form_of,
    item_of,
    numbers_of,
    place_of_item,
    select_fields,
)
from medassay.publishing.report import Mismatch
from medassay.storage.jsonl import read_as, read_jsonl
from medassay.storage.leftover import at_work
from medassay.storage.merkle import leaf_hash
from medassay.storage.response import ResponseStore
from medassay.storage.run import (
    JUDGED,
    STUDIES,
    SUMS,
    TOMBSTONES,
    Run,
    file_sha256,
    items_root,
    read_document,
)
from medassay.viewer.index import remove_index

# Files of a run that a deletion changes; where the rules of a kind name items, its documents too.
_FILES = ("items.jsonl", "trials.jsonl", *JUDGED, "findings.jsonl")
_DOCUMENTS = ("manifest.json", "statistics.json")
_VERDICT_FIELDS = (*TRIAL_FIELDS, "judge", "seat", "score")


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted: replies in the store, and the runs that now hold tombstones."""

    replies: int
    runs: list[str]


def forget(item: str, workspace: Path, *, domain: str = "", reason: str, at: str) -> Forgotten:
    """Delete an item's text and everything said of it from a workspace; scores and hashes stay.

    Parameters
    ----------
    domain : only the item of this domain
    reason : why, e.g. the request of a patient; it stands in every run
    at : the time of deletion

    Raises
    ------
    InputError
        When no run holds the item, a run of it is unfinished, or no reason is given.
    IncompleteError
        When another process writes replies on the item, or a study is at work.
    """
    if not reason.strip():
        raise InputError("--reason: empty; an auditor must learn why records are gone")
    manifests = sorted((workspace / "runs").glob("*/manifest.json"))
    runs = [run for path in manifests if _domains(run := Run(path.parent), item, domain)]
    for run in runs:
        if not run.sealed:
            raise InputError(
                f"run {run.id}: not finished and asks item '{item}'; finish it or remove its folder"
                " first"
            )
    if not runs:
        raise InputError(f"{workspace}: no run with item '{item}'")
    named = {item} | {first for run in runs for first in _batches(run, item)}
    for study in sorted((workspace / STUDIES).glob("*")):
        if at_work(study):
            raise IncompleteError(
                f"{study}: a study is at work and may ask item '{item}' again; wait until it ends,"
                " then give the same command"
            )
    # Replies go before the verdicts that name them: a call that is interrupted in between finds all
    # of them again.
    with ResponseStore(workspace / "responses") as store:
        # A judge's reply on several answers is filed under the first of them.
        gone = store.purge(
            lambda line: (
                line.get("item") == item or ("judged" in line and line.get("item") in named)
            )
        )
    # What killed studies left.
    shutil.rmtree(workspace / STUDIES, ignore_errors=True)
    for run in runs:
        _bury(run, item, _domains(run, item, domain), reason=reason, at=at)
        remove_index(run)
    return Forgotten(replies=gone, runs=[run.id for run in runs])


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """Which item was deleted, when, and why."""

    domain: str
    item: str
    at: str
    reason: str


class AmendedFile(msgspec.Struct, frozen=True, kw_only=True):
    """SHA-256 of a file as it was sealed, and as it is now."""

    sealed: str
    now: str


class Tombstones(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted from a run after sealing, and the files that changed by it."""

    schema_version: int = 1
    entries: list[Tombstone] = []
    files: dict[str, AmendedFile] = {}

    @property
    def items(self) -> set[tuple[str, str]]:
        """Return (domain, id) of every item that was deleted."""
        return {(entry.domain, entry.item) for entry in self.entries}


def read_tombstones(folder: Path) -> Tombstones:
    """Return what was deleted from a run after sealing.

    Raises
    ------
    IntegrityError
        Saying what is wrong with the file.
    """
    if not (folder / TOMBSTONES).is_file():
        return Tombstones()
    return record_as(read_document(folder / TOMBSTONES), Tombstones, TOMBSTONES)


def check_amendments(run: Run) -> dict[str, AmendedFile]:
    """Return the files of a run that changed by what was deleted.

    Of findings, and of items by seals before there was a root of them, the sum alone is sealed.
    What is checked is what can be: that these are files which a deletion changes, that the items
    hold a tombstone of each that is listed, and of no other, and that they have the root.

    Raises
    ------
    Mismatch
        When something else than a deletion changed them.
    """
    tombstones = read_tombstones(run.path)
    if tombstones.files and not tombstones.entries:
        raise Mismatch(f"{TOMBSTONES}: changes files, and lists no item that was deleted")
    names_items = any(key in run.manifest_document for key in RULES)
    for name in tombstones.files:
        if name not in (*_FILES, *(_DOCUMENTS if names_items else ())):
            raise Mismatch(f"{TOMBSTONES}: changes {name}, which a deletion leaves as it is")
    items = run.path / "items.jsonl"
    if not tombstones.entries or not items.is_file():
        return tombstones.files
    buried = {place_of_item(record) for record in read_jsonl(items) if "tombstone" in record}
    for domain, item in sorted(buried ^ tombstones.items):
        problem = (
            "was deleted, and is still there"
            if (domain, item) in tombstones.items
            else "has a tombstone that is not listed"
        )
        raise Mismatch(f"items.jsonl: item '{item}' of '{domain}' {problem}")
    if run.seal.items_root not in (None, items_root(run.path)):
        raise Mismatch("items.jsonl: an item that was not deleted is not the one that was sealed")
    return tombstones.files


def _domains(run: Run, item: str, domain: str) -> set[str]:
    """Return the domains in which a run holds an item."""
    path = run.path / "items.jsonl"
    records = read_jsonl(path) if path.is_file() else iter(())
    keys = (place_of_item(record) for record in records)
    return {place for place, name in keys if name == item and domain in ("", place)}


def _batches(run: Run, item: str) -> set[str]:
    """Return the items under which replies on batches with an item are filed."""
    batches = set()
    for name in JUDGED:
        if (run.path / name).exists():
            for verdict in read_as(run.path / name, _BatchOfVerdict):
                if verdict.item == item and verdict.batch:
                    batches.add(verdict.batch[0][4])
    return batches


def _bury(run: Run, item: str, domains: set[str], *, reason: str, at: str) -> None:
    """Put tombstones in the place of an item's records; the same call finishes an
    interrupted one.
    """
    tombstones = read_tombstones(run.path)
    entries = [
        *tombstones.entries,
        *(
            Tombstone(domain=name, item=item, at=at, reason=reason)
            for name in sorted(domains)
            if (name, item) not in tombstones.items
        ),
    ]
    listed = (run.path / SUMS).read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in listed)}
    files = dict(tombstones.files)
    parts = []
    for name in _FILES:
        path = run.path / name
        if path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(b"".join(_buried(path, name, item, domains, run.manifest)))
            if file_sha256(part) != sums[name]:
                files[name] = AmendedFile(sealed=sums[name], now=file_sha256(part))
            parts.append((part, path))
    for name, data in _without_names(run, item, domains).items():
        part = (run.path / name).with_suffix(".part")
        part.write_bytes(canonical(data) + b"\n")
        files[name] = AmendedFile(sealed=sums[name], now=file_sha256(part))
        parts.append((part, run.path / name))
    write_whole(run.path / TOMBSTONES, record_line(Tombstones(entries=entries, files=files)))
    for part, path in parts:
        part.chmod(0o444)
        part.replace(path)


def _without_names(run: Run, item: str, domains: set[str]) -> dict[str, dict[str, Any]]:
    """Return the documents of a run in which the rules and the summary of its kind name items,
    without what would tell of the item; nothing for kinds that name none.
    """
    keys = [key for key in RULES if key in run.manifest_document]
    items_left = [
        build_item(record)
        for record in (read_jsonl(run.path / "items.jsonl") if keys else ())
        if record["id"] != item or record["domain"] not in domains
    ]
    manifest: dict[str, Any] = {**run.manifest_document}
    statistics: dict[str, Any] = {**run.statistics.document}
    further = [dict(document) for document in statistics.get(FURTHER, [])]
    for key in keys:
        manifest[key] = RULES[key].publish(manifest[key], items_left)
        for document in (statistics, *further):
            if key in document:
                document[key] = RULES[key].forget(document[key])
    if further:
        statistics[FURTHER] = further
    return {"manifest.json": manifest, "statistics.json": statistics} if keys else {}


def _buried(path: Path, name: str, item: str, domains: set[str], manifest: Manifest) -> list[bytes]:
    """Return the lines of a file with tombstones for what is about the item."""
    with path.open("rb") as file:
        return [
            _tombstone(parse_json(raw, f"{name} line {number}"), raw, name, item, domains, manifest)
            for number, raw in enumerate(file, 1)
        ]


def _tombstone(
    record: Any, raw: bytes, name: str, item: str, domains: set[str], manifest: Manifest
) -> bytes:
    line = raw.removesuffix(b"\n")
    if name == "findings.jsonl":
        finding = record_as(record, NamedFinding, name)
        entry = {k: v for k, v in record.items() if k not in ("old", "new")}
        is_told = finding.place in {(d, item) for d in domains}
        return canonical(entry) + b"\n" if is_told and finding.field != "score" else raw
    domain, about = place_of_item(record) if name == "items.jsonl" else item_of(record)
    if about != item or domain not in domains or "tombstone" in record:
        return raw
    if name == "items.jsonl":
        entry = {**numbers_of(record), **select_fields(record, ("cluster", "lowest"))}
        if manifest.tasks:
            entry["form"] = form_of(record)
        return canonical({**entry, "tombstone": sha256(line).hexdigest()}) + b"\n"
    entry = select_fields(record, TRIAL_FIELDS if name == "trials.jsonl" else _VERDICT_FIELDS)
    if name == "trials.jsonl":
        entry |= counted_still(record)
    return canonical({**entry, "tombstone": leaf_hash(line).hex()}) + b"\n"


class _BatchOfVerdict(msgspec.Struct):
    """The answers, by their place, that a verdict was given on together."""

    item: str
    batch: list[tuple[str, str, str, str, str, int]] | None = None
