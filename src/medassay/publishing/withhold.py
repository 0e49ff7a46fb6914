"""The public copy of a run that holds synthetic items: a sealed run of its own, without their
text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, cast

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical, record_line
from medassay.core.json import record_as, texts_in
from medassay.core.records.item_object import ItemObject
from medassay.core.records.manifest_object import BankObject, ManifestObject
from medassay.core.records.sealed_object import (
    FindingObject,
    ScoreObject,
    TimingObject,
    TrialObject,
    VerdictObject,
    place_of,
)
from medassay.core.records.statistics_object import StatisticsObject
from medassay.core.records.target import TARGETS, Criteria, further_targets
from medassay.errors import IntegrityError
from medassay.kinds.catalog import RULES, public_parts
from medassay.publishing.board import verdicts_by_trial
from medassay.publishing.redaction import (
    FINDING_FIELDS,
    NamedFinding,
    Redactor,
    form_of,
    item_of,
    place_of_item,
    select_fields,
)
from medassay.publishing.shingles import PrivateShingles
from medassay.publishing.times import times_of, to_sealed
from medassay.publishing.tombstone import Tombstones, read_tombstones
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import (
    JUDGED,
    RERUN,
    SALT,
    TOMBSTONES,
    Run,
    read_document,
    seal_run,
    write_new,
)

# Words of an item that nobody may read; what else it holds (category, year) is dropped, but no
# secret.
_ITEM_TEXT = (
    "question",
    "context",
    "reference",
    "rationale",
    "path",
    "condition",
    "leaf",
)
Places = Set[tuple[str, str]]  # (domain, item)


class _Salt(msgspec.Struct, frozen=True):
    secret: str = ""


def withholding_of(run: Run) -> Redactor:
    """Return what makes the public records of a run.

    Raises
    ------
    IntegrityError
        When the run has no secret: it was sealed before synthetic items could be published.
    """
    if not (run.path / SALT).is_file():
        raise IntegrityError(
            f"run {run.id}: holds synthetic items and no {SALT}; it was sealed by an earlier"
            " version, make it anew with `medassay score`"
        )
    secret = record_as(read_document(run.path / SALT), _Salt, SALT).secret
    if not re.fullmatch("[0-9a-f]{64}", secret):
        raise IntegrityError(f"{SALT}: holds no secret of 64 hexadecimal digits")
    return Redactor(secret, public_parts(run.manifest))


def write_public(run: Run, items: RunItems, folder: Path) -> Run:
    """Write the public copy of a run into an empty folder, sealed, and return it."""
    hidden = withholding_of(run)
    _write(folder / "manifest.json", iter([_manifest(run, items)]))
    _write(folder / "statistics.json", iter([_statistics(run, items)]))
    if (run.path / RERUN).exists():
        (folder / RERUN).write_bytes((run.path / RERUN).read_bytes())
    withheld = _withheld(items)
    _write(folder / "items.jsonl", _items(run, hidden, withheld))
    _write(folder / "trials.jsonl", _trials(run, hidden, withheld))
    _write(folder / "scores.jsonl", _scores(run, hidden, withheld))
    _write(folder / "timings.jsonl", _timings(run, withheld))
    _write(folder / "findings.jsonl", _findings(run, withheld))
    for name in JUDGED:
        if (run.path / name).exists():
            verdicts = read_jsonl(run.path / name)
            _write(folder / name, (v for v in verdicts if item_of(v) not in withheld))
    public_run = Run(folder)
    times, _ = times_of(run, items, withheld)
    took = {key: sums for key, sums in times.items() if key.items == "synthetic"}
    of: dict[str, Any] = {"items": len(withheld), "root": run.seal.root, "seal": run.seal.hash}
    if took:
        of |= {"times": to_sealed(took)}
    seal_run(public_run, sealed_at=run.seal.sealed_at, withheld=of)
    entries = read_tombstones(run.path).entries
    entries_left = [entry for entry in entries if (entry.domain, entry.item) not in withheld]
    if entries_left:
        # The files were written with their tombstones: none was amended after this seal.
        write_new(folder / TOMBSTONES, record_line(Tombstones(entries=entries_left)))
    return public_run


def secrets_of(run: Run, items: RunItems) -> PrivateShingles:
    """Return every stretch of text of a run's synthetic items, and of what was said of them.

    What models and judges say in the same words of public items is no secret, nor are words that a
    public item has too; other words of an item are, wherever they stand.
    """
    secrets_found = PrivateShingles()
    withheld = _withheld(items)
    for record in _lines_with_texts(run):
        if (place := item_of(record)) in withheld:
            for text in texts_in(record):
                secrets_found.add(text, f"what was said of item '{place[1]}'")
    for record in _lines_with_texts(run):
        if item_of(record) not in withheld:
            for text in texts_in(record):
                secrets_found.allow(text)
    for domain, name in sorted(withheld):
        for key, text in _texts_of_item(items.record(domain, name)):
            secrets_found.add(text, f"item '{name}', {key}")
    for item in items:
        if item.kind == "public":  # the same words in a public item: they are public
            for _, words in _texts_of_item(items.record(item.domain, item.id)):
                secrets_found.allow(words)
    return secrets_found


def _lines_with_texts(run: Run) -> Iterator[TrialObject | VerdictObject]:
    for name in ("trials.jsonl", *JUDGED):
        if (run.path / name).exists():
            yield from read_jsonl(run.path / name)


def _texts_of_item(item: ItemObject) -> Iterator[tuple[str, str]]:
    """Yield (field, text) of all texts of an item and its target, also of one that a kind
    brings.
    """
    targets = (key for target in (*TARGETS, *further_targets()) for key in target.keys)
    for key in dict.fromkeys((*_ITEM_TEXT, *targets)):
        for text in texts_in(item.get(key, [])):
            yield key, text


def _withheld(items: RunItems) -> set[tuple[str, str]]:
    """Return (domain, id) of the synthetic items."""
    return {
        (domain, name)
        for domain, marks in items.synthetic.items()
        for name, is_synthetic in zip(items.names(domain), marks, strict=True)
        if is_synthetic
    }


def _write(path: Path, records: Iterator[Mapping[str, Any]]) -> None:
    with path.open("wb") as file:
        for record in records:
            file.write(canonical(record) + b"\n")


def _manifest(run: Run, items: RunItems) -> ManifestObject:
    """Return the manifest without the replies of a scripted model and synonyms of private
    diagnoses.
    """
    models = {
        name: {key: value for key, value in spec.items() if key != "script"}
        for name, spec in run.manifest_document["models"].items()
    }
    judges = [
        {key: value for key, value in judge.items() if key != "script"}
        for judge in run.manifest_document.get("judges", [])
    ]
    # What changed from version to version is told in words of the items, as often as not.
    banks: list[BankObject] = [{**bank, "changes": ""} for bank in run.manifest_document["banks"]]
    manifest: dict[str, Any] = {**run.manifest_document, "models": models, "banks": banks}
    for key in RULES.keys() & manifest.keys():
        public = (item for item in items if item.kind == "public")
        manifest[key] = RULES[key].publish(manifest[key], public)
    return cast(ManifestObject, {**manifest, "judges": judges} if judges else manifest)


def _statistics(run: Run, items: RunItems) -> StatisticsObject:
    """Return the statistics without names that stand in synthetic items alone: tags, criteria."""
    public = [item for item in items if item.kind == "public"]
    rubrics = (item.target.criteria for item in public if isinstance(item.target, Criteria))
    tags = {tag for rubric in rubrics for criterion in rubric for tag in criterion.tags}
    public_items = {f"{item.domain}/{item.id}" for item in public}
    document = run.statistics.document
    rows = {
        domain: [_public_row(row, tags, public_items) for row in domain_rows]
        for domain, domain_rows in document["domains"].items()
    }
    return {**document, "domains": rows}


def _public_row(row: dict[str, Any], tags: set[str], public_items: set[str]) -> dict[str, Any]:
    public_row = dict(row)
    if "tags" in row:
        public_row["tags"] = {
            tag: tag_estimate for tag, tag_estimate in row["tags"].items() if tag in tags
        }
    if "harmful_criteria" in row:
        events: Counter[str] = Counter()
        for name, n in row["harmful_criteria"]["events"].items():
            item = name.rsplit("/", 1)[0]
            events[name if item in public_items else item] += n
        public_row["harmful_criteria"] = {**row["harmful_criteria"], "events": dict(events)}
    return public_row


def _cluster(run: Run, item: ItemObject) -> tuple[str, str]:
    """Return what a cluster is known by: its name in a version of a bank, whatever the domain."""
    return run.manifest.domains[item["domain"]], item.get("cluster", "")


def _clusters(run: Run, hidden: Redactor) -> dict[tuple[str, str], str]:
    """Return the public name of every cluster: salted, unless a public item tells it.

    Intervals need to know who belongs together, public and synthetic items and domains alike.
    """
    clusters_by_item: dict[tuple[str, str], str] = {}
    for item in read_jsonl(run.path / "items.jsonl"):
        if "cluster" in item:
            key = _cluster(run, item)
            if item.get("kind") != "synthetic":
                clusters_by_item[key] = key[1]
            clusters_by_item.setdefault(key, hidden.salt("cluster", *key)[:16])
    return clusters_by_item


def _items(run: Run, hidden: Redactor, withheld: Places) -> Iterator[ItemObject]:
    """Yield the items, those that are withheld without their texts."""
    clusters = _clusters(run, hidden)
    for item in read_jsonl(run.path / "items.jsonl"):
        if place_of_item(item) not in withheld:
            yield item
            continue
        public = hidden.item(item, clusters.get(_cluster(run, item)))
        yield {**public, "form": form_of(item)} if run.manifest.tasks else public


def _trials(run: Run, hidden: Redactor, withheld: Places) -> Iterator[TrialObject]:
    """Yield the answers, those to withheld items without what was said."""
    for trial in read_jsonl(run.path / "trials.jsonl"):
        yield hidden.trial(trial) if item_of(trial) in withheld else trial


def _scores(run: Run, hidden: Redactor, withheld: Places) -> Iterator[ScoreObject]:
    verdicts_of = verdicts_by_trial(run)
    for record in read_jsonl(run.path / "scores.jsonl"):
        verdicts = verdicts_of(place_of(record))
        yield hidden.score(record, verdicts) if item_of(record) in withheld else record


def _findings(run: Run, withheld: Places) -> Iterator[FindingObject]:
    """Yield findings; of a synthetic item a score before and after, but no reply."""
    for record in read_jsonl(run.path / "findings.jsonl"):
        finding = record_as(record, NamedFinding, "findings.jsonl")
        hidden = finding.place in withheld and finding.field != "score"
        yield select_fields(
            record, [f for f in FINDING_FIELDS if not hidden or f not in ("old", "new")]
        )


def _timings(run: Run, withheld: Places) -> Iterator[TimingObject]:
    trials = read_jsonl(run.path / "trials.jsonl")
    for trial, timing in zip(trials, read_jsonl(run.path / "timings.jsonl"), strict=True):
        yield {} if item_of(trial) in withheld else timing
