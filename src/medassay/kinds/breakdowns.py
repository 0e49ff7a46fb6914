"""Scores of a run by a property of its items, metric by metric."""

from collections.abc import Sequence

from medassay.bank.run_items import RunItems
from medassay.core.records.statistics import OVERALL
from medassay.kinds.catalog import task_of_run
from medassay.kinds.statistics import parts_of
from medassay.storage.run import Run
from medassay.summary.breakdown import GroupScore, breakdown


def breakdowns(run: Run, fields: Sequence[str]) -> dict[str, list[GroupScore]]:
    """Return field → the scores of rows by group, metric by metric; see
    `summary.breakdown.breakdown`.
    """
    items = RunItems(run.path, run.manifest.domains)
    parts = parts_of(items, run.manifest, task_of_run(run.manifest))
    groups: dict[str, list[GroupScore]] = {}
    for part in parts:
        metric = part.task.metric if len(parts) > 1 else ""
        shown = {row.key for row in run.statistics.rows(OVERALL) if metric in ("", row.metric)}
        for field, rows in breakdown(run, fields, part.task.scale, part.items, metric).items():
            # A baseline has no row where there is nothing to choose.
            groups.setdefault(field, []).extend(
                row for row in rows if not metric or (row.model, row.setting) in shown
            )
    return groups
