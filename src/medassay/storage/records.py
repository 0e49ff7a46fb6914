"""The records of a run, decoded line by line."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from medassay.core.json import RecordDecoder
from medassay.core.records.score import TrialScore
from medassay.core.records.sealed_object import VerdictObject
from medassay.core.records.trial import RowKey, Trial, TrialKey
from medassay.core.records.verdict import StoredVerdict, TrialVerdict
from medassay.errors import InputError, IntegrityError

T = TypeVar("T")
_CHUNK = 1 << 16  # bytes of lines that are decoded in one go
decode_trial = RecordDecoder(Trial, declared=True)
decode_score = RecordDecoder(TrialScore)
_decode_verdict = RecordDecoder(TrialVerdict)
_decode_stored_verdict = RecordDecoder(StoredVerdict)


def read_trials(folder: Path, *, offset: int = 0, line: int = 1) -> Iterator[Trial]:
    """Yield the trials of a run, from the line on that begins at an offset in bytes.

    Raises
    ------
    IntegrityError
        Naming the line that is no trial.
    """
    return _read(folder / "trials.jsonl", decode_trial, offset, line)


def read_scores(folder: Path, *, offset: int = 0, line: int = 1) -> Iterator[TrialScore]:
    """Yield the scores of a run; see `read_trials`."""
    return _read(folder / "scores.jsonl", decode_score, offset, line)


def item_scores(folder: Path) -> dict[RowKey, dict[tuple[str, str], float]]:
    """Return row → (domain, item) → the score of the item in a run, repeats averaged, those left
    out whose score nobody knows.
    """
    sums: dict[RowKey, dict[tuple[str, str], list[float]]] = {}
    for score in read_scores(folder):
        if score.score is not None:
            row = sums.setdefault(score.row, {})
            row.setdefault((score.domain, score.item), []).append(score.score)
    return {
        row: {item: sum(v) / len(v) for item, v in values.items()} for row, values in sums.items()
    }


def read_verdicts(path: Path) -> Iterator[TrialVerdict]:
    """Yield the verdicts in a file of a run; see `read_trials`."""
    return _read(path, _decode_verdict, 0, 1)


def read_stored_verdicts(path: Path) -> Iterator[tuple[StoredVerdict, VerdictObject]]:
    """Yield the verdicts in a file with what the judges replied, each with its whole line; see
    `read_trials`.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield _decode_stored_verdict.with_document(line, path.name, number)
            except InputError as error:
                raise IntegrityError(str(error)) from None


def read_verdicts_by_trial(path: Path) -> Iterator[tuple[TrialKey, list[TrialVerdict]]]:
    """Yield the place of each judged trial with its verdicts, which stand one after the other."""
    for place, verdicts in groupby(read_verdicts(path), key=lambda verdict: verdict.place):
        yield place, list(verdicts)


def read_scored_trials(folder: Path) -> Iterator[tuple[Trial, TrialScore]]:
    """Yield the trials of a run, each with its score.

    Raises
    ------
    IntegrityError
        Naming the line that is no such record, or where a trial has no score.
    """
    pairs = zip_longest(read_trials(folder), read_scores(folder))
    for number, (trial, score) in enumerate(pairs, 1):
        if trial is None or score is None:
            raise IntegrityError(f"scores.jsonl line {number}: not one score for each trial")
        yield trial, score


class StoredTrial(msgspec.Struct, frozen=True):
    """A trial and its score, with the line and the object that hold them."""

    trial: Trial
    score: TrialScore
    trial_line: bytes
    score_record: dict[str, Any]


def read_stored_trials(
    folder: Path, *, trials: int = 0, scores: int = 0, line: int = 1
) -> Iterator[StoredTrial]:
    """Yield the trials of a run with their scores and lines; see `read_scored_trials`.

    Parameters
    ----------
    trials, scores : offsets in bytes at which a line begins in each file
    line : the number of that line
    """
    paths = folder / "trials.jsonl", folder / "scores.jsonl"
    with paths[0].open("rb") as trials_file, paths[1].open("rb") as scores_file:
        trials_file.seek(trials)
        scores_file.seek(scores)
        for number, (trial_line, score_line) in enumerate(
            zip_longest(trials_file, scores_file), line
        ):
            if trial_line is None or score_line is None:
                raise IntegrityError(f"scores.jsonl line {number}: not one score for each trial")
            try:
                trial = decode_trial(trial_line, "trials.jsonl", number)
                score, record = decode_score.with_document(score_line, "scores.jsonl", number)
            except InputError as error:
                raise IntegrityError(str(error)) from None
            yield StoredTrial(trial, score, trial_line, record)


def _read(path: Path, decode: RecordDecoder[T], offset: int, line: int) -> Iterator[T]:
    try:
        # `chain` takes a million records without resuming a generator of ours for each.
        yield from chain.from_iterable(_blocks(path, decode, offset, line))
    except InputError as error:
        raise IntegrityError(str(error)) from None


def _blocks(path: Path, decode: RecordDecoder[T], offset: int, line: int) -> Iterator[Iterable[T]]:
    with path.open("rb") as file:
        file.seek(offset)
        while data := file.read(_CHUNK):
            data += file.readline()
            yield decode.lines(data, path.name, line)
            line += data.count(b"\n")
