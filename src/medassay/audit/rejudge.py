"""Recomputing judged scores: the stored replies are read again, and the scores follow from them."""

import json
from collections.abc import Mapping
from typing import Any

from medassay.core.canonical import canonical
from medassay.runner.judging import Answers, reread
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run
from medassay.task.judged import TRIAL_KEY, by_trial, judged_score, judges_of
from medassay.task.scoring import RunItems
from medassay.task.task import Task


class Mismatch(Exception):
    """Says which record differs."""


class Rejudging:
    """Reads the verdicts of a run beside its trials, in the same order."""

    def __init__(self, run: Run, items: RunItems, task: Task) -> None:
        self._bench = run.manifest["bench"]
        self._answers = Answers(run, items, task)
        self._judges = judges_of(task, run.manifest["banks"], run.manifest["domains"])
        self._said = by_trial(read_jsonl(run.path / "verdicts.jsonl"))
        self._same = {d: j.id for d, j in self._judges.items()} == run.manifest["rubrics"]

    def score(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        """Return the score record of a trial as its verdicts give it.

        Raises
        ------
        Mismatch
            When a verdict is absent, given by another judge, or not what its replies say.
        """
        where = f"verdicts.jsonl: item '{trial['item']}' of '{trial['model']}'"
        key, verdicts = next(self._said, ((), []))
        seats = self._bench[trial["model"]]
        if key != tuple(trial[k] for k in TRIAL_KEY) or [v["judge"] for v in verdicts] != seats:
            raise Mismatch(f"{where}: not one verdict of each judge in its place")
        judge = self._judges[trial["domain"]]
        for verdict in verdicts:
            if self._same and verdict["outcome"] != "failed":
                self._reread(trial, verdict, where)
        return judged_score(trial, verdicts, judge, len(seats))

    def _reread(self, trial: Mapping[str, Any], stored: Mapping[str, Any], where: str) -> None:
        expected = reread(self._answers, self._judges[trial["domain"]], stored)
        if expected is None:
            raise Mismatch(f"{where}, judge '{stored['judge']}': replies are missing")
        for name, value in json.loads(canonical(expected)).items():
            if stored[name] != value:
                raise Mismatch(
                    f"{where}, judge '{stored['judge']}': {name} is not what was said"
                )
