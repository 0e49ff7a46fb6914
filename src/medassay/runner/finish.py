"""From a journal to a sealed run: trials, scores, statistics, seal."""

from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical
from medassay.runner.engine import failed_record
from medassay.runner.schedule import Schedule
from medassay.storage.journal import Journal
from medassay.storage.run import Run, seal_run, write_new
from medassay.task.scoring import RunItems, score_record, score_trials
from medassay.task.standings import Table, leaderboard_document
from medassay.task.task import Task


def write_trials(run: Run, schedule: Schedule, journal: Journal) -> None:
    """Write trials.jsonl and timings.jsonl in sealed order; what never succeeded is `failed`."""
    with (
        _rewrite(run.path / "trials.jsonl") as trials,
        _rewrite(run.path / "timings.jsonl") as timings,
    ):
        done = journal.lines(iter(range(schedule.n_trials)))
        following = next(done, None)
        for number in range(schedule.n_trials):
            if following is not None and following[0] == number:
                _, trial, timing = following
                following = next(done, None)
            else:
                cell, item, repeat = schedule.trial(number)
                reason = "no answer; sealed with --accept-failures"
                trial, timing = canonical(failed_record(cell, item.id, repeat, reason)), b"{}"
            trials.write(trial + b"\n")
            timings.write(timing + b"\n")


def finish(run: Run, task: Task, findings: list[dict[str, Any]], *, sealed_at: str) -> None:
    """Score the trials of a run, compute its statistics, and seal it."""
    items = RunItems(run.path, run.manifest["domains"])
    table = Table(items)
    with _rewrite(run.path / "scores.jsonl") as scores:
        for trial, score, scorer in score_trials(run.path, items, task):
            table.add(trial, score)
            scores.write(canonical(score_record(trial, score, scorer)) + b"\n")
    document = leaderboard_document(table, run.manifest, task)
    for name in ("statistics.json", "findings.jsonl"):
        (run.path / name).unlink(missing_ok=True)
    write_new(run.path / "statistics.json", canonical(document) + b"\n")
    write_new(run.path / "findings.jsonl", b"".join(canonical(f) + b"\n" for f in findings))
    seal_run(run, sealed_at=sealed_at)


def _rewrite(path: Path) -> Any:
    """Open a file of an unsealed run afresh: an attempt to seal that was cut off is redone."""
    path.unlink(missing_ok=True)
    return path.open("xb")
