"""What some tasks tell besides rankings: one line each."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from medassay.statistic.ranking.shared import Bools
from medassay.task.cases import DdxCases
from medassay.task.likelihoods import LikelihoodScores
from medassay.task.lookups import lookups_of
from medassay.task.records import TASKS as OF_RECORDS
from medassay.task.records import RecordScores
from medassay.task.scoring import RunItems
from medassay.task.task import Task
from medassay.task.texts import TextScores


class Further(Protocol):
    """Collects score records as a stream; adds to every row of a ranking, and a document under `key`."""

    key: str

    def add(self, trial: Mapping[str, Any], score: Mapping[str, Any]) -> None:
        """Take one trial with its score record."""

    def row(
        self, domains: Sequence[str], row: tuple[str, str], mode: str, used: Bools
    ) -> dict[str, Any]:
        """Return what is added to a row; `used` are the items that it is ranked on, over the domains."""

    def flags(self, row: Mapping[str, Any]) -> list[str]:
        """Return the marks that a row gets for what was added to it."""

    def document(self, used: Mapping[str, Mapping[tuple[str, str], Bools]]) -> dict[str, Any]:
        """Return what is told over all domains; `used` as in `row`, by mode and row."""


def further_of(items: RunItems, manifest: Mapping[str, Any], task: Task) -> list[Further]:
    """Return what a run tells besides its rankings: its task, and what its models looked up."""
    return [*_of_task(items, manifest, task), *lookups_of(items, manifest)]


def _of_task(items: RunItems, manifest: Mapping[str, Any], task: Task) -> list[Further]:
    if "ddx" in manifest:
        return [DdxCases(items, manifest)]
    if task.asks != "reply":
        return [LikelihoodScores(items, manifest, task)]
    if task.metrics:
        return [TextScores(items, manifest, task)]
    return [RecordScores(items, manifest)] if task.name in OF_RECORDS else []
