"""The records of a run for people: typed iterators that also give data frames.

Of a run that is not finished they give what is there by now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar, cast

from medassay.bank.run_items import RunItems
from medassay.core.frame import FrameRow, Records, Tabular
from medassay.core.json import RecordDecoder, parse_record
from medassay.core.records.item import Item
from medassay.core.records.score import TrialScore
from medassay.core.records.sealed_object import TimingObject
from medassay.core.records.table_rows import item_columns, score_columns, trial_row
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import StoredVerdict
from medassay.errors import InputError, IntegrityError
from medassay.storage.journal import JOURNAL, VERDICTS
from medassay.storage.jsonl import read_jsonl
from medassay.storage.records import (
    decode_score,
    decode_trial,
    read_scored_trials,
    read_scores,
    read_stored_verdicts,
    read_trials,
)
from medassay.storage.unfinished import JournalRecord, read_journal

T = TypeVar("T")
_decode_verdict = RecordDecoder(StoredVerdict)


@dataclass(frozen=True, repr=False)
class FileRecords(Records[T]):
    """Records that a function reads anew for each iteration.

    Attributes
    ----------
    name : what they are, "trials" or "items", for people
    read : opens them
    row : gives the columns of one
    """

    name: str
    read: Callable[[], Iterable[T]]
    row: Callable[[T], FrameRow]

    def __iter__(self) -> Iterator[T]:
        return iter(self.read())

    def __len__(self) -> int:
        return sum(1 for _ in self.read())

    def __repr__(self) -> str:
        return f"<{len(self):,} {self.name}: iterate, or to_pandas()>"

    def table_rows(self) -> Iterator[FrameRow]:
        """Yield the columns of each record."""
        return map(self.row, self.read())


def _journal(folder: Path, name: str, sealed: str) -> Iterator[JournalRecord] | None:
    """Return what a journal holds; None where the run was sealed meanwhile, and its file is there.

    Raises
    ------
    IntegrityError
        Naming the line that is none.
    """
    if (folder / sealed).exists():
        return None
    records = read_journal(folder / name)
    try:
        first = next(records, None)
    except FileNotFoundError:  # removed between being listed and being opened
        first = None
    if first is None:
        return None if (folder / sealed).exists() else iter(())
    return chain([first], records)


def trials_of(folder: Path) -> Iterator[Trial]:
    """Yield the trials of a run, of an unfinished one those that are there."""
    lines = _journal(folder, JOURNAL, "trials.jsonl")
    if lines is None:
        yield from read_trials(folder)
    for line in lines or ():
        yield _as_record(decode_trial, line.record, line.where)


def trial_lines(folder: Path) -> Iterator[bytes]:
    """Yield the trials of a run as the lines of their file, of an unfinished one those that are
    there.
    """
    lines = _journal(folder, JOURNAL, "trials.jsonl")
    if lines is None:
        with (folder / "trials.jsonl").open("rb") as file:
            yield from (line.removesuffix(b"\n") for line in file)
    yield from (line.record for line in lines or ())


def scores_of(folder: Path) -> Iterator[TrialScore]:
    """Yield the scores of a run, of an unfinished one those that are there.

    What waits for its judges has none yet.
    """
    lines = _journal(folder, JOURNAL, "scores.jsonl")
    if lines is None:
        yield from read_scores(folder)
    for line in lines or ():
        if line.score != b"null":
            yield _as_record(decode_score, line.score, line.where)


def verdicts_of(folder: Path) -> Iterator[StoredVerdict]:
    """Yield the verdicts of a run with the judges' replies; none of a run without judges."""
    lines = _journal(folder, VERDICTS, f"{VERDICTS}.jsonl")
    if lines is None:
        yield from (v for v, _ in read_stored_verdicts(folder / f"{VERDICTS}.jsonl"))
    for line in lines or ():
        yield _as_record(_decode_verdict, line.record, line.where)


def items_of(folder: Path, domains: Mapping[str, str]) -> Iterator[Item]:
    """Yield the items of a run.

    Parameters
    ----------
    domains : domain → version of its bank, of the manifest
    """
    if not (folder / "items.jsonl").exists():
        raise InputError(f"{folder}: holds no items yet; nothing was asked")
    yield from RunItems(folder, domains)


@dataclass(frozen=True)
class AnswersTable(Tabular):
    """One row a trial: the trial, its seconds, its score, and the item that was asked."""

    folder: Path
    domains: Mapping[str, str]

    def table_rows(self) -> Iterator[FrameRow]:
        """Yield the rows in the order of the trials."""
        # The frame holds the texts of all items anyway: each is read once, whoever answers it.
        items = {
            (item.domain, item.id): item_columns(item)
            for item in items_of(self.folder, self.domains)
        }
        for trial, score, timing in self._answers():
            row = trial_row(trial) | {"seconds": timing.get("seconds")}
            row |= score_columns(score) if score is not None else {"score": None}
            item = items.get((trial.domain, trial.item))
            if item is None:
                raise IntegrityError(
                    f"items.jsonl: no item '{trial.item}' in domain '{trial.domain}'"
                )
            yield row | item

    def _answers(self) -> Iterator[tuple[Trial, TrialScore | None, TimingObject]]:
        folder = self.folder
        lines = _journal(folder, JOURNAL, "trials.jsonl")
        if lines is not None:
            yield from map(_journalled, lines)
            return
        path = folder / "timings.jsonl"
        timings: Iterator[TimingObject] = read_jsonl(path) if path.exists() else iter(())
        scored: Iterator[tuple[Trial, TrialScore | None]]
        if (folder / "scores.jsonl").exists():
            scored = read_scored_trials(folder)
        else:
            scored = ((trial, None) for trial in read_trials(folder))
        for trial, score in scored:
            yield trial, score, next(timings, TimingObject())


def _journalled(line: JournalRecord) -> tuple[Trial, TrialScore | None, TimingObject]:
    score = None
    if line.score != b"null":
        score = _as_record(decode_score, line.score, line.where)
    timing = parse_record(line.timing, line.where)
    if not isinstance(timing, dict | None):
        raise IntegrityError(f"{line.where}: 'timing' is no object; restore the file")
    trial = _as_record(decode_trial, line.record, line.where)
    return trial, score, cast(TimingObject, timing or {})


def _as_record(decode: RecordDecoder[T], data: bytes, where: str) -> T:
    try:
        return decode.with_document(data, where, 0)[0]
    except InputError as error:
        raise IntegrityError(str(error).replace(" line 0", "")) from None
