"""From trials and scores to statistics and the seal."""

import secrets
import time

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.clock import now
from medassay.core.log import log
from medassay.core.records.sealed_object import FindingObject
from medassay.core.records.target import Criteria
from medassay.core.records.task import Task
from medassay.judging.judgements import Judgements
from medassay.kinds.statistics import RunStatistics
from medassay.storage.journal import VERDICTS
from medassay.storage.records import read_scored_trials, read_trials, read_verdicts_by_trial
from medassay.storage.run import SALT, SPOT_CHECK, Run, seal_run, write_new


def finish(
    run: Run,
    task: Task,
    items: RunItems,
    findings: list[FindingObject],
    *,
    sealed_at: str = "",
    secret: str | None = None,
) -> None:
    """Compute the statistics of a run from its trials and scores, and seal it.

    Parameters
    ----------
    sealed_at : default: now
    secret : what the commitments to synthetic items are salted with; None draws a new one
    """
    sealed_at, began = sealed_at or now(), time.monotonic()
    statistics = RunStatistics(items, run.manifest, task)
    judgements = read_judgements(run, items)
    for trial, score in read_scored_trials(run.path):
        statistics.add(trial, score)
    document = statistics.document(judgements)
    if items.withholding:
        (run.path / SALT).unlink(missing_ok=True)
        salt = {"schema_version": 1, "secret": secret or secrets.token_hex(32)}
        write_new(run.path / SALT, canonical(salt) + b"\n")
    for name in ("statistics.json", "findings.jsonl"):
        (run.path / name).unlink(missing_ok=True)
    write_new(run.path / "statistics.json", canonical(document) + b"\n")
    write_new(run.path / "findings.jsonl", b"".join(canonical(f) + b"\n" for f in findings))
    log.tell("statistics_done", run=run.id, seconds=round(time.monotonic() - began, 3))
    seal_run(run, sealed_at=sealed_at)
    log.tell("run_sealed", run=run.id, seconds=round(time.monotonic() - began, 3))


def read_judgements(run: Run, items: RunItems) -> Judgements | None:
    """Return what the judges of a run said, None for a run without judges."""
    if not (run.path / "verdicts.jsonl").exists():
        return None
    specs = [*run.manifest.models.values(), *run.manifest.judges]
    judgements = Judgements(items, {spec.id: spec.family or "" for spec in specs})
    audit = run.path / f"{SPOT_CHECK}.jsonl"
    again = read_verdicts_by_trial(audit) if audit.exists() else iter(())
    waiting = next(again, None)
    for key, verdicts in read_verdicts_by_trial(run.path / f"{VERDICTS}.jsonl"):
        judgements.add(verdicts)
        if waiting is not None and waiting[0] == key:
            judgements.add_spot_check(verdicts, waiting[1])
            waiting = next(again, None)
    if Criteria.form in items.forms:
        for trial in read_trials(run.path):
            rubric = items.form(trial.domain, trial.item) == Criteria.form
            if rubric and trial.outcome not in ("answered", "failed"):
                judgements.add_unanswered(trial)
    return judgements
