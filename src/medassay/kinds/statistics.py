"""Trials and scores of a run → its statistics: one set of rankings for each metric."""

from typing import Any

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.protocols import JudgingSummary
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.statistics import FURTHER
from medassay.core.records.statistics_object import StatisticsObject
from medassay.core.records.target import Choice
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial
from medassay.kinds.catalog import summaries_of
from medassay.summary.leaderboard import leaderboard_document
from medassay.summary.scores import RunScores


class TaskPart(msgspec.Struct, frozen=True):
    """One task of a run with its items, and the manifest as if the run had no other."""

    task: Task
    items: RunItems
    manifest: Manifest


def parts_of(items: RunItems, manifest: Manifest, task: Task) -> list[TaskPart]:
    """Return the tasks of a run that have items, each with its own; one task has them all."""
    if not task.parts:
        return [TaskPart(task, items, manifest)]
    parts = [(part, items.of_forms(forms)) for part, forms in task.single_tasks]
    return [
        TaskPart(part, own_items, _own_manifest(manifest, own_items, part))
        for part, own_items in parts
        if len(own_items)
    ]


class TaskStatistics:
    """What the trials of one task come to."""

    def __init__(self, items: RunItems, manifest: Manifest, task: Task) -> None:
        self._manifest, self._task = manifest, task
        self._scores = RunScores(items, manifest, task.scale, task.harmful)
        self._summaries = summaries_of(items, manifest, task)

    @property
    def empty(self) -> bool:
        """Return whether nothing was taken."""
        return not self._scores.modes

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record."""
        self._scores.add_trial(trial, score.score)
        for summary in self._summaries:
            summary.add(trial, score)

    def document(self, judgements: JudgingSummary | None) -> StatisticsObject:
        """Return all rankings of these trials."""
        return leaderboard_document(
            self._scores, self._manifest, self._task, judgements, self._summaries
        )


class RunStatistics:
    """What the trials of a run come to: as many sets of rankings as it has metrics.

    Scores of two metrics stand side by side, and in no mean together.
    """

    def __init__(self, items: RunItems, manifest: Manifest, task: Task) -> None:
        self._items, self._manifest = items, manifest
        self._parts = {
            part.task.name: (part.task, TaskStatistics(part.items, part.manifest, part.task))
            for part in parts_of(items, manifest, task)
        }
        self._of_forms = {
            form: self._parts[part.name][1]
            for form, part in task.parts.items()
            if part.name in self._parts
        }
        self._choosing = self._of_forms.get(Choice.form)

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record."""
        if not self._of_forms:
            [(_, statistics)] = self._parts.values()
            statistics.add(trial, score)
            return
        statistics = self._of_forms[self._items.own_form(trial.domain, trial.item)]
        # A baseline chooses options, and has nothing to say where there are none to choose.
        if self._manifest.provider_of(trial.model) == "baseline" and (
            self._choosing not in (None, statistics)
        ):
            return
        statistics.add(trial, score)

    def document(self, judgements: JudgingSummary | None) -> StatisticsObject:
        """Return `statistics.json`: that of the first metric, with the rows of all; what else is
        said of each further metric stands under `further`.
        """
        parts = [*self._parts.values()]
        # Baselines alone answer nothing where there is nothing to choose.
        filled = [(task, statistics) for task, statistics in parts if not statistics.empty]
        documents = [
            statistics.document(judgements if task.graders else None)
            for task, statistics in filled or parts[:1]
        ]
        if len(documents) == 1:
            return documents[0]
        domains: dict[str, list[dict[str, Any]]] = {}
        for document in documents:
            for name, rows in document["domains"].items():
                domains.setdefault(name, []).extend(rows)
        for document in documents[1:]:
            del document["domains"]
        return {**documents[0], "domains": domains, FURTHER: documents[1:]}


def _own_manifest(manifest: Manifest, items: RunItems, task: Task) -> Manifest:
    """Return the manifest of a run as if it had one of its tasks alone."""
    own_domains = {name: manifest.domains[name] for name in items.domains}
    judges = manifest.judges if task.graders else []
    return msgspec.structs.replace(
        manifest, task=task.name, tasks={}, domains=own_domains, judges=judges
    )
