"""Trials → scores: reading the stored answers of a run and scoring each, as a stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medassay.bank.run_items import RunItems
from medassay.core.catch import caught
from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.own_code import OWN_CODE
from medassay.core.records.score import score_record
from medassay.core.records.sealed_object import ScoreObject
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial, TrialKey
from medassay.kinds.catalog import measures_of, scorer_of
from medassay.storage.records import read_trials


class TaskScorer:
    """The scorers of a task, applied to one answer at a time."""

    def __init__(self, task: Task) -> None:
        self._scorers = {form: scorer_of(task, form) for form in task.readers}
        self._own_parser = "" if task.own is None else task.own.parser_name
        self._measures = {form: measures_of(task, form) for form in task.readers}

    def record(self, item: Item, place: TrialKey, answer: Answer, text: str) -> ScoreObject:
        """Return the line of scores.jsonl for a trial: its key, its score, why, by which scorer,
        and its parts; `text` is the whole reply.
        """
        with caught() as errors:
            return self._record(item, place, answer, text)
        if not self._own_parser:
            raise errors[0]
        # What a parser of the user read need not be what our scorer takes.
        why = f"{OWN_CODE} {self._own_parser}: {self._scorers[item.form].name} cannot score it"
        return score_record(place, None, why, self._scorers[item.form].id)

    def _record(self, item: Item, place: TrialKey, answer: Answer, text: str) -> ScoreObject:
        scorer = self._scorers[item.form]
        [score] = scorer.score([item], [answer])
        record = score_record(place, score.value, score.because, scorer.id)
        if answer.outcome != "failed":
            parts: dict[str, Any] = dict(score.parts)
            for measure in self._measures[item.form]:
                parts |= measure.parts(item, answer, text)
            if parts:
                record |= {"parts": parts}
        return record


def score_trials(folder: Path, items: RunItems, task: Task) -> Iterator[tuple[Trial, ScoreObject]]:
    """Yield every trial of a run with its score record, in the order of trials.jsonl."""
    scorer = TaskScorer(task)
    for trial in read_trials(folder):
        item = items.get(trial.domain, trial.item)
        yield trial, scorer.record(item, trial.place, trial.answer, trial.text or "")
