"""What a publication says otherwise than the one before it: `data/changes.json`, made of the public
records of both, so that anybody can make it again.
"""

import hashlib
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from medassay.core.json import parse_record, record_as
from medassay.core.ledger import LedgerEntry, disputes_of, front_of, publications_in
from medassay.core.records.changes import (
    ChangedBank,
    ChangedField,
    ChangedItem,
    ChangedModel,
    ChangedRow,
    PublicationChanges,
    PublicationRoot,
    RowPlace,
)
from medassay.core.records.item_object import ItemObject
from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.records.trial import CellKey, TrialLine
from medassay.publishing.trend import series_of
from medassay.storage.jsonl import read_as, read_jsonl
from medassay.storage.run import Run

CHANGES = Path("data/changes.json")
# What of a model's entry decides what it answers.
_MODEL_FIELDS = (
    *("provider", "model", "version", "location", "quantisation", "engine", "engine_version"),
    *("weights_digest", "max_tokens"),
)
_NOT_CONTENT = ("revision", "approval")  # of an item: what says nothing of its text
_SAME = 1e-12  # scores that differ by less are equal

ItemKey = tuple[str, str]  # domain and id
RowKey = tuple[str, str, str, str, str]  # metric, domain, model, setting, mode


def earlier_publication(entries: Sequence[LedgerEntry]) -> str | None:
    """Return the publication that a new one is held against: the one its site opens with."""
    return front_of(entries) if publications_in(entries) else None


def read_changes(publication: Path) -> PublicationChanges | None:
    """Return what a publication says otherwise than the one before it, None where it has no file.

    Raises
    ------
    IntegrityError
        Saying what is wrong with the file.
    """
    path = publication / CHANGES
    if not path.is_file():
        return None
    return record_as(
        parse_record(path.read_bytes(), str(CHANGES)), PublicationChanges, str(CHANGES)
    )


def changes_between(
    earlier: tuple[str, Run],
    later: tuple[str, Run],
    entries: Sequence[LedgerEntry],
    reason: str,
) -> PublicationChanges:
    """Return what a publication says otherwise than an earlier one.

    Parameters
    ----------
    earlier, later : the ids of the publications, each with its public run
    entries : the ledger before the later publication
    reason : why bank or methodology changed, in the words of the publisher; kept where they did
    """
    (earlier_name, earlier_run), (later_name, later_run) = earlier, later
    items, hidden = _items(earlier_run, later_run, entries)
    answers = _compared_answers(earlier_run, later_run, items)
    before, after = _rows(earlier_run), _rows(later_run)
    same_series = series_of(earlier_run) == series_of(later_run)
    return PublicationChanges(
        earlier=_root(earlier_name, earlier_run),
        later=_root(later_name, later_run),
        same_series=same_series,
        reason="" if same_series else reason,
        banks=_banks(earlier_run, later_run),
        models=_models(earlier_run, later_run),
        further=_different(_method_fields(earlier_run), _method_fields(later_run)),
        items=items,
        rows=list(_changed_rows(before, after, items, answers)),
        not_compared=hidden + answers.hidden,
        rows_before=len(before),
        rows_after=len(after),
    )


def _root(name: str, run: Run) -> PublicationRoot:
    return PublicationRoot(publication=name, root=run.seal.root, date=run.seal.sealed_at[:10])


def _banks(earlier: Run, later: Run) -> list[ChangedBank]:
    before, after = ({bank.name: bank for bank in run.manifest.banks} for run in (earlier, later))
    changed = []
    for name in sorted(before | after):
        old, new = before.get(name), after.get(name)
        versions = [bank.version if bank else "" for bank in (old, new)]
        if versions[0] == versions[1]:
            continue
        text = ""
        # Each version adds a part to the end of the list.
        if old and new and old.changes and new.changes.startswith(old.changes):
            text = new.changes.removeprefix(old.changes).strip()
        changed.append(ChangedBank(name=name, before=versions[0], after=versions[1], text=text))
    return changed


def _models(earlier: Run, later: Run) -> list[ChangedModel]:
    before, after = (_model_fields(run) for run in (earlier, later))
    changed = []
    for name in sorted(before | after):
        if name not in before or name not in after:
            what = "new" if name in after else "left"
            changed.append(ChangedModel(model=name, what=what))
        elif fields := _different(before[name], after[name]):
            changed.append(ChangedModel(model=name, what="changed", fields=fields))
    return changed


def _model_fields(run: Run) -> dict[str, dict[str, str]]:
    """Return model → what decides what it answers, as text."""
    fields = {}
    for name, spec in run.manifest_document["models"].items():
        entry = {key: spec.get(key) for key in _MODEL_FIELDS}
        entry |= dict(run.manifest_document.get("sampling", {}).get(name, {}))
        fields[name] = {key: "" if value is None else str(value) for key, value in entry.items()}
    return fields


def _method_fields(run: Run) -> dict[str, str]:
    """Return what else than bank and model a number depends on, as text."""
    return {
        "task": run.manifest.task,
        "template": run.manifest.template,
        "judges": ", ".join(judge.id for judge in run.manifest.judges),
        "methodology": run.manifest.methodology,
    }


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> list[ChangedField]:
    return [
        ChangedField(name=name, before=before.get(name, ""), after=after.get(name, ""))
        for name in dict.fromkeys([*before, *after])
        if before.get(name, "") != after.get(name, "")
    ]


def _items(
    earlier: Run, later: Run, entries: Sequence[LedgerEntry]
) -> tuple[list[ChangedItem], int]:
    """Return the items that differ, and how many cannot be compared since their text is withheld
    or deleted.
    """
    upheld: dict[str, list[int]] = defaultdict(list)
    for dispute in disputes_of(entries):
        if dispute.state == "upheld" and dispute.opening.about.item:
            upheld[dispute.opening.about.item].append(dispute.number)
    before, after = (_items_by_bank(run) for run in (earlier, later))
    changed, hidden = [], 0
    for key in sorted(before | after):
        what, fields = _item_change(before.get(key), after.get(key))
        hidden += what == "hidden"
        if what not in ("same", "hidden"):
            domain, name, _ = key
            disputes = upheld.get(f"{domain}/{name}", [])
            changed.append(
                ChangedItem(domain=domain, item=name, what=what, fields=fields, disputes=disputes)
            )
    return changed, hidden


def _items_by_bank(run: Run) -> dict[tuple[str, str, str], ItemObject]:
    """Return (domain, id, name of the bank) → item: those of two banks are never the same."""
    names = {bank.version: bank.name for bank in run.manifest.banks}
    domains = run.manifest.domains
    return {
        (item["domain"], item["id"], names.get(domains[item["domain"]], "")): item
        for item in read_jsonl(run.path / "items.jsonl")
    }


def _item_change(before: ItemObject | None, after: ItemObject | None) -> tuple[str, list[str]]:
    """Return what became of an item, and the names of its fields that differ."""
    if before is None or after is None:
        return ("added" if before is None else "removed"), []
    if any("commitment" in item or "tombstone" in item for item in (before, after)):
        # Of a withheld one the revision is left, which every release raises that changes it.
        same = before.get("revision", 1) == after.get("revision", 1)
        return ("hidden" if same else "corrected"), []
    names = [name for name in sorted({*before, *after}) if name not in _NOT_CONTENT]
    fields = [name for name in names if before.get(name) != after.get(name)]
    return ("corrected" if fields else "same"), fields


class _Answer(TrialLine, frozen=True, kw_only=True):
    """What is compared of an answer, as the bytes it was written with."""

    text: msgspec.Raw = msgspec.Raw(b"")
    value: msgspec.Raw = msgspec.Raw(b"null")
    outcome: str = ""
    commitment: str = ""
    tombstone: str = ""


class _ScoreLine(msgspec.Struct):
    score: float | None = None


class _CellAnswers(NamedTuple):
    """Answers of one cell: hash of item and repeat, hash of what was said (0: withheld), score."""

    places: "array[int]"
    contents: "array[int]"
    scores: "array[float]"


class _Compared(NamedTuple):
    """(domain, model, setting, mode) → differing answers, and equal ones with another score."""

    answers: Mapping[CellKey, int]
    rescored: Mapping[CellKey, int]
    hidden: int


def _compared_answers(earlier: Run, later: Run, items: Sequence[ChangedItem]) -> _Compared:
    """Return how many answers of each cell differ, of those to items that did not change.

    Of the earlier answers 24 bytes each are held, so that a million takes 24 MB.
    """
    changed = {(item.domain, item.item) for item in items}
    before = {cell: answers for cell, answers, _ in _cells(earlier, changed)}
    different: Counter[CellKey] = Counter()
    rescored: Counter[CellKey] = Counter()
    hidden = 0
    for cell, answers, hidden_here in _cells(later, changed):
        hidden += hidden_here
        if cell not in before:
            continue
        earlier_answers = {
            place: (content, score) for place, content, score in zip(*before[cell], strict=True)
        }
        for place, content, score in zip(*answers, strict=True):
            if place not in earlier_answers:
                different[cell] += 1
                continue
            content_before, score_before = earlier_answers[place]
            if content and content_before and content != content_before:
                different[cell] += 1
            elif not _same_score(score_before, score):
                rescored[cell] += 1
    return _Compared(different, rescored, hidden)


def _cells(run: Run, left_out: set[ItemKey]) -> Iterator[tuple[CellKey, _CellAnswers, int]]:
    """Yield each cell with its answers, without those to some items, and how many are withheld."""
    answers = read_as(run.path / "trials.jsonl", _Answer)
    scores = read_as(run.path / "scores.jsonl", _ScoreLine)
    for cell, lines in groupby(zip(answers, scores, strict=True), key=lambda line: line[0].cell):
        cell_answers = _CellAnswers(array("Q"), array("Q"), array("d"))
        hidden = 0
        for answer, score in lines:
            if (answer.domain, answer.item) in left_out:
                continue
            is_hidden = bool(answer.commitment or answer.tombstone)
            hidden += is_hidden
            reply = bytes(answer.text) or bytes(answer.value)
            failed = b"failed" if answer.outcome == "failed" else b""
            content = _hash64(reply, failed)
            cell_answers.places.append(_hash64(answer.item.encode(), str(answer.repeat).encode()))
            cell_answers.contents.append(0 if is_hidden else content)
            cell_answers.scores.append(math.nan if score.score is None else score.score)
        yield cell, cell_answers, hidden


def _hash64(*parts: bytes) -> int:
    digest = hashlib.blake2b(b"\x1f".join(parts), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def _same_score(first: float | None, second: float | None) -> bool:
    if first is None or second is None or math.isnan(first) or math.isnan(second):
        return (first is None or math.isnan(first)) == (second is None or math.isnan(second))
    return abs(first - second) <= _SAME


def _rows(run: Run) -> dict[RowKey, LeaderboardRow]:
    return {
        (statistics.metric, domain, row.model, row.setting, row.mode): row
        for statistics in run.statistics.by_metric
        for domain in statistics.domains
        for row in statistics.rows(domain)
    }


def _changed_rows(
    before: Mapping[RowKey, LeaderboardRow],
    after: Mapping[RowKey, LeaderboardRow],
    items: Sequence[ChangedItem],
    answers: _Compared,
) -> Iterator[ChangedRow]:
    """Yield the rows that differ: overall first, then by domain, in the order of the rankings."""
    items_of = Counter(item.domain for item in items)
    domains_of: dict[str, set[str]] = defaultdict(set)  # metric → domains
    for metric, domain, *_ in (*before, *after):
        domains_of[metric].add(domain)
    keys = sorted(dict.fromkeys([*after, *before]), key=lambda key: (key[0], key[1] != OVERALL))
    for key in keys:
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and _same_place(old, new):
            continue
        metric, domain, model, setting, mode = key
        domains = domains_of[metric] if domain == OVERALL else {domain}
        cells = [(name, model, setting, mode) for name in domains]
        row = before[key] if new is None else new
        yield ChangedRow(
            domain=domain,
            metric=metric,
            scale=(row.scale[0], row.scale[1]),
            model=model,
            setting=setting,
            mode=mode,
            before=_place(old),
            after=_place(new),
            items=sum(items_of[name] for name in domains),
            answers=sum(answers.answers.get(cell, 0) for cell in cells),
            rescored=sum(answers.rescored.get(cell, 0) for cell in cells),
        )


def _same_place(old: LeaderboardRow, new: LeaderboardRow) -> bool:
    same_range = (old.rank_lo, old.rank_hi, old.rank) == (new.rank_lo, new.rank_hi, new.rank)
    return same_range and old.n == new.n and _same_score(old.score, new.score)


def _place(row: LeaderboardRow | None) -> RowPlace | None:
    if row is None:
        return None
    names = ("score", "lo", "hi", "n", "rank", "rank_lo", "rank_hi", "interval")
    return RowPlace(**{name: getattr(row, name) for name in names})
