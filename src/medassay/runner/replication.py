"""A plan run again with fresh calls, held against its stored run: what differs, and within
tolerance or not.

Hosted models promise no equal replies; what they must keep is the numbers. Source: specification of
bank versions, "Runs".
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.records.rerun import Rerun, RerunCell, RerunOf, Tolerance
from medassay.core.records.task import Task
from medassay.core.records.trial import TRIAL_KEY
from medassay.errors import IntegrityError
from medassay.statistic.draws import number_clusters
from medassay.statistic.interval.effective import effective_interval
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import RERUN, Run, read_document, runs_of_plan, write_new

IDENTICAL = 0.98  # of the closed trials of a cell
POINT = 0.01  # of the scale's width, for a cell's mean
_FIELDS = ("outcome", "value", "text")


_Scores = list[
    tuple[float, int]
]  # of each trial with a score: it, and the number of its item's cluster


@dataclass
class _Cell:
    trials: int = 0
    identical: int = 0
    closed: int = 0
    closed_identical: int = 0
    same_text: int = 0
    old: _Scores = field(default_factory=list)
    new: _Scores = field(default_factory=list)


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
    stored: Run | None, fresh: Run, task: Task, items: RunItems, *, opened: str
) -> list[dict[str, Any]]:
    """Return what a fresh run found; [] for a run that is held against no other."""
    if stored is None:
        return []
    return compare_with_stored(stored, fresh, task, items, opened=opened)


def compare_with_stored(
    stored: Run, run: Run, task: Task, items: RunItems, *, opened: str
) -> list[dict[str, Any]]:
    """Return a finding for every trial that differs, and write the summary by cell into the run.

    Parameters
    ----------
    opened : the time that the findings bear
    """
    cells: dict[tuple[str, ...], _Cell] = {}
    findings: list[dict[str, Any]] = []
    for old, new in zip(_scored(stored), _scored(run), strict=True):
        key = tuple(new[0][k] for k in ("domain", "model", "setting", "mode"))
        cell = cells.setdefault(key, _Cell())
        cell.trials += 1
        form = items.form(new[0]["domain"], new[0]["item"])
        closed = form not in task.graders
        for side, (_, score) in ((cell.old, old), (cell.new, new)):
            if score["score"] is not None:
                place = items.place(new[0]["domain"], new[0]["item"])
                side.append((score["score"], items.clusters[new[0]["domain"]][place]))
        cell.same_text += old[0].get("text") == new[0].get("text")
        alike = old[1]["score"] == new[1]["score"]
        if closed:
            alike = alike and all(old[0].get(k) == new[0].get(k) for k in ("outcome", "value"))
        cell.identical += alike
        cell.closed += closed
        cell.closed_identical += closed and alike
        findings += _differences(run.id, old, new, opened, closed=closed)
    summary = [
        _summary(key, cell, _interval(stored, key), task) for key, cell in sorted(cells.items())
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
    try:
        return msgspec.convert(read_document(run.path / RERUN), Rerun)
    except msgspec.ValidationError as error:
        raise IntegrityError(f"{RERUN}: {error}") from None


def _scored(run: Run) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    return zip(
        read_jsonl(run.path / "trials.jsonl"),
        read_jsonl(run.path / "scores.jsonl"),
        strict=True,
    )


def _differences(
    run: str,
    old: tuple[dict[str, Any], dict[str, Any]],
    new: tuple[dict[str, Any], dict[str, Any]],
    opened: str,
    *,
    closed: bool,
) -> Iterator[dict[str, Any]]:
    """Yield the finding on one trial: of its score, else of the first field that differs."""
    before, after = old[1]["score"], new[1]["score"]
    pairs = [("score", before, after), *((k, old[0].get(k), new[0].get(k)) for k in _FIELDS)]
    for name, first, other in pairs:
        if first != other:
            numbers = name == "score" and first is not None and other is not None
            yield {
                "schema_version": 1,
                "run": run,
                "trial": [new[0][k] for k in TRIAL_KEY],
                "field": name,
                "old": first,
                "new": other,
                "delta": other - first if numbers else None,
                "cause": _cause(old[0], new[0], closed=closed),
                "opened": opened,
                "note": "a fresh call against the stored run",
            }
            return


def _cause(old: Mapping[str, Any], new: Mapping[str, Any], *, closed: bool) -> str:
    """Return what made a difference, where the records tell: the same words cannot score otherwise,
    other findings lead elsewhere.
    """
    if _tools_answered_otherwise(old, new):
        return "tool"
    if old.get("text") != new.get("text"):
        return "unknown"
    return "bug" if closed else "judge"


def _tools_answered_otherwise(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether the first thing that differs on the way to two answers is what the same call
    of a tool gave.
    """
    for old_call, other in zip(old.get("trace", ()), new.get("trace", ()), strict=False):
        if any(old_call[key] != other[key] for key in ("turn", "tool", "arguments")):
            return False
        if old_call["sha256"] != other["sha256"]:
            return True
    return False


def _interval(run: Run, key: tuple[str, ...]) -> tuple[float, float] | None:
    rows = run.statistics.rows(key[0]) if key[0] in run.statistics.domains else []
    for row in rows:
        if (*row.key, row.mode) == key[1:] and row.lo is not None and row.hi is not None:
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
    key: tuple[str, ...], cell: _Cell, interval: tuple[float, float] | None, task: Task
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
