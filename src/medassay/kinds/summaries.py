"""What some tasks tell besides rankings: one line each."""

from medassay.bank.run_items import RunItems
from medassay.core.protocols import Summary
from medassay.core.records.manifest import Manifest
from medassay.core.records.task import Task
from medassay.kinds.diagnoses.summary import DdxCases
from medassay.kinds.likelihood.summary import LikelihoodScores
from medassay.kinds.record.summary import TASKS as OF_RECORDS
from medassay.kinds.record.summary import RecordScores
from medassay.kinds.reference.summary import TextScores
from medassay.summary.tool_use import lookups_of


def summaries_of(items: RunItems, manifest: Manifest, task: Task) -> list[Summary]:
    """Return what a run tells besides its rankings: its task, and what its models looked up."""
    return [*_of_task(items, manifest, task), *lookups_of(items, manifest)]


def _of_task(items: RunItems, manifest: Manifest, task: Task) -> list[Summary]:
    if manifest.ddx is not None:
        return [DdxCases(items, manifest)]
    if task.asks != "reply":
        return [LikelihoodScores(items, manifest, task)]
    if task.metrics:
        return [TextScores(items, manifest, task)]
    return [RecordScores(items, manifest)] if task.name in OF_RECORDS else []
