"""A plan run again with fresh calls, held against its stored run: what differs, and within
tolerance or not.

Hosted models promise no equal replies; what they must keep is the numbers. Source: specification of
bank versions, "Runs".
"""

import math
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.json import record_as
from medassay.core.records.rerun import Rerun, RerunCell, RerunOf, Tolerance
from medassay.core.records.sealed_object import FindingObject
from medassay.core.records.task import Task
from medassay.core.records.trial import CellKey, Trial
from medassay.statistic.draws import number_clusters
from medassay.statistic.interval.effective import effective_interval
from medassay.storage.records import read_scored_trials
from medassay.storage.run import RERUN, Run, read_document, runs_of_plan, write_new

IDENTICAL = 0.98  # of the closed trials of a cell
POINT = 0.01  # of the scale's width, for a cell's mean


_Scores = list[
    tuple[float, int]
]  # of each trial with a score: it, and the number of its item's cluster


class _Cell(msgspec.Struct):
    trials: int = 0
    identical: int = 0
    closed: int = 0
    closed_identical: int = 0
    same_text: int = 0
    old: _Scores = msgspec.field(default_factory=list)
    new: _Scores = msgspec.field(default_factory=list)


def stored_run(runs: Path, plan_hash: str, contents: Collection[str]) -> Run | None:
    """Return the newest sealed run of a plan on the same banks that was not itself a fresh one.

    Parameters
    ----------
    contents : the content hashes of the banks
    """
    stored_runs = []
    for run in runs_of_plan(runs, plan_hash):
        if not run.sealed:
            continue
        same = {bank.content_sha256 for bank in run.manifest.banks} == set(contents)
        if same and "fresh_of" not in run.manifest_document:
            stored_runs.append((run.manifest.created_at, run.path.name))
    return Run(runs / max(stored_runs)[1]) if stored_runs else None


def findings_of(
    stored: Run | None, run: Run, task: Task, items: RunItems, *, opened: str
) -> list[FindingObject]:
    """Return a finding for every trial that differs, and write the summary by cell into the run;
    [] for a run that is held against no other.

    Parameters
    ----------
    opened : the time that the findings bear
    """
    if stored is None:
        return []
    # Scores of two metrics have no mean in common.
    cells: dict[tuple[CellKey, str], _Cell] = {}
    tasks = {part.name: part for part, _ in task.single_tasks}
    findings: list[FindingObject] = []
    pairs = zip(read_scored_trials(stored.path), read_scored_trials(run.path), strict=True)
    for (old, old_score), (new, new_score) in pairs:
        part = task.part(items.form(new.domain, new.item)).name if task.parts else task.name
        cell = cells.setdefault((new.cell, part), _Cell())
        cell.trials += 1
        closed = items.form(new.domain, new.item) not in task.graders
        cluster = items.clusters[new.domain][items.place(new.domain, new.item)]
        for side, score in ((cell.old, old_score.score), (cell.new, new_score.score)):
            if score is not None:
                side.append((score, cluster))
        cell.same_text += old.text == new.text
        alike = old_score.score == new_score.score
        if closed:
            alike = alike and (old.outcome, old.value) == (new.outcome, new.value)
        cell.identical += alike
        cell.closed += closed
        cell.closed_identical += closed and alike
        scores = (old_score.score, new_score.score)
        findings += _differences(run.id, old, new, scores, opened, closed=closed)
    summary = [
        _summary(key, cell, _interval(stored, key, tasks[part].metric), tasks[part])
        for (key, part), cell in sorted(cells.items())
    ]
    if task.parts:
        metrics = [tasks[part].metric for _, part in sorted(cells)]
        summary = [
            msgspec.structs.replace(cell, metric=metric)
            for cell, metric in zip(summary, metrics, strict=True)
        ]
    rerun = Rerun(
        of=RerunOf(run=stored.id, root=stored.seal.root),
        tolerance=Tolerance(identical=IDENTICAL, points=POINT),
        differing=sum(cell.trials - cell.identical for cell in summary),
        trials=sum(cell.trials for cell in summary),
        within=all(cell.within for cell in summary),
        cells=summary,
    )
    (run.path / RERUN).unlink(missing_ok=True)
    write_new(run.path / RERUN, canonical(msgspec.to_builtins(rerun)) + b"\n")
    return findings


def rerun_of(run: Run) -> Rerun | None:
    """Return how a fresh run differs from the stored one; None for other runs."""
    if not (run.path / RERUN).is_file():
        return None
    return record_as(read_document(run.path / RERUN), Rerun, RERUN)


def _differences(
    run: str,
    old: Trial,
    new: Trial,
    scores: tuple[float | None, float | None],
    opened: str,
    *,
    closed: bool,
) -> Iterator[FindingObject]:
    """Yield the finding on one trial: of its score, else of the first field that differs."""
    before, after = scores
    delta = None if before is None or after is None else after - before
    pairs = [
        ("score", before, after),
        ("outcome", old.outcome, new.outcome),
        ("value", old.value, new.value),
        ("text", old.text, new.text),
    ]
    for name, first, other in pairs:
        if first != other:
            yield {
                "schema_version": 1,
                "run": run,
                "trial": list(new.place),
                "field": name,
                "old": first,
                "new": other,
                "delta": delta if name == "score" else None,
                "cause": _cause(old, new, closed=closed),
                "opened": opened,
                "note": "a fresh call against the stored run",
            }
            return


def _cause(old: Trial, new: Trial, *, closed: bool) -> str:
    """Return what made a difference, where the records tell: the same words cannot score otherwise,
    other findings lead elsewhere.
    """
    if _tools_answered_otherwise(old, new):
        return "tool"
    if old.text != new.text:
        return "unknown"
    return "bug" if closed else "judge"


def _tools_answered_otherwise(old: Trial, new: Trial) -> bool:
    """Return whether the first thing that differs on the way to two answers is what the same call
    of a tool gave.
    """
    for call, other in zip(old.trace, new.trace, strict=False):
        if (call.turn, call.tool, call.arguments) != (other.turn, other.tool, other.arguments):
            return False
        if call.sha256 != other.sha256:
            return True
    return False


def _interval(run: Run, key: CellKey, metric: str) -> tuple[float, float] | None:
    rows = run.statistics.rows(key[0]) if key[0] in run.statistics.domains else []
    for row in rows:
        own = (*row.key, row.mode) == key[1:] and row.metric == metric
        if own and row.lo is not None and row.hi is not None:
            return row.lo, row.hi
    return None


def _mean(scores: _Scores, task: Task) -> tuple[float | None, tuple[float, float] | None]:
    """Return the mean of scores with its 95 % interval by the rule of boards.

    Trials of one item or cluster count as related.
    """
    if not scores:
        return None, None
    values = np.array([score for score, _ in scores])
    clusters = number_clusters([cluster for _, cluster in scores])
    interval = effective_interval([(values, clusters)], scale=task.scale)
    return interval.mean, interval.ends


def _summary(
    key: CellKey, cell: _Cell, interval: tuple[float, float] | None, task: Task
) -> RerunCell:
    old, old_ends = _mean(cell.old, task)
    new, new_ends = _mean(cell.new, task)
    near = old == new
    if old is not None and new is not None:
        # Without an end, a point is a hundredth of what was.
        width = task.scale.hi - task.scale.lo if math.isfinite(task.scale.hi) else abs(old)
        near = abs(new - old) <= POINT * width + 1e-12
        near = near or (interval is not None and interval[0] <= new <= interval[1])
    domain, model, setting, mode = key
    return RerunCell(
        domain=domain,
        model=model,
        setting=setting,
        mode=mode,
        trials=cell.trials,
        identical=cell.identical,
        same_text=cell.same_text,
        old=old,
        old_ends=old_ends,
        new=new,
        new_ends=new_ends,
        within=near and cell.closed_identical >= IDENTICAL * cell.closed,
    )
