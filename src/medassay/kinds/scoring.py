"""Trials → scores: reading the stored answers of a run and scoring each, as a stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medassay.bank.run_items import RunItems
from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.score import score_record
from medassay.core.records.sealed_object import ScoreObject
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial, TrialPlace
from medassay.kinds.catalog import SCORERS, measures_of
from medassay.score.scorer import Scorer
from medassay.storage.records import read_trials


class TaskScorer:
    """The scorers of a task, applied to one answer at a time."""

    def __init__(self, task: Task) -> None:
        self._scorers = {
            form: SCORERS[name] if name else unjudged(task.part(form))
            for form, (_, name) in task.readers.items()
        }
        self._measures = {form: measures_of(task, form) for form in task.readers}

    def record(self, item: Item, place: TrialPlace, answer: Answer, text: str) -> ScoreObject:
        """Return the line of scores.jsonl for a trial: its key, its score, why, by which scorer,
        and its parts; `text` is the whole reply.
        """
        scorer = self._scorers[item.form]
        [score] = scorer.score([item], [answer])
        record = score_record(place, score.value, score.because, scorer.id)
        if answer.outcome != "failed":
            parts: dict[str, Any] = {}
            for measure in self._measures[item.form]:
                parts |= measure.parts(item, answer, text)
            if parts:
                record |= {"parts": parts}
        return record


def unjudged(task: Task) -> Scorer:
    """Return what scores an answer that judges decide on: null until they have."""
    return Scorer("judges", lambda item, answer: (None, "unjudged"), revision=1, scale=task.scale)


def score_trials(folder: Path, items: RunItems, task: Task) -> Iterator[tuple[Trial, ScoreObject]]:
    """Yield every trial of a run with its score record, in the order of trials.jsonl."""
    scorer = TaskScorer(task)
    for trial in read_trials(folder):
        item = items.get(trial.domain, trial.item)
        yield trial, scorer.record(item, trial.place, trial.answer, trial.text or "")
