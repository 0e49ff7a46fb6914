"""From a journal to the sealed order: items, trials, verdicts and scores of a run."""

import shutil
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import groupby, islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from medassay.bank.folder import bank_record
from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.files import write_lines
from medassay.core.records.answer import Answer
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.errors import InputError
from medassay.judging.judgements import judged_score
from medassay.judging.queue import Answers, JudgingQueue, spot_check_graders
from medassay.kinds.catalog import task_of_run
from medassay.kinds.scoring import TaskScorer, score_trials
from medassay.runner.answer_stage import failed_record, trial_place
from medassay.runner.engine.stage import Engine
from medassay.runner.judge_stage import failed_verdict, reread
from medassay.runner.schedule import Schedule
from medassay.storage.journal import VERDICTS, Journal, JournalLine
from medassay.storage.jsonl import line_parts, read_jsonl
from medassay.storage.object_store import localize, mirror_of
from medassay.storage.records import read_stored_verdicts, read_trials
from medassay.storage.run import SPOT_CHECK, Run

NOT_ASKED = "not asked"  # the reason of what was never sent; never that of another item
_PART = 20_000  # trials that one process scores at once


def write_items(run: Run, schedule: Schedule) -> RunItems:
    """Write the items of a run where they are not there yet, and index them."""
    items_file = run.path / "items.jsonl"
    was_there = items_file.exists()
    if not was_there:
        part = items_file.with_suffix(".part")
        write_lines(part, (bank_record(bank, position) for bank, position in schedule.items()))
        part.rename(items_file)
    return RunItems(run.path, run.manifest.domains, check=was_there)


def write_trials(run: Run, schedule: Schedule, journal: Journal) -> None:
    """Write trials, scores and timings in sealed order; what never succeeded is `failed`."""
    scoring = TaskScorer(schedule.task)
    with (
        _rewrite(run.path / "trials.jsonl") as trials,
        _rewrite(run.path / "scores.jsonl") as scores,
        _rewrite(run.path / "timings.jsonl") as timings,
    ):
        done = journal.lines()
        following = next(done, None)
        is_complete = journal.done == schedule.n_trials
        failures = {} if is_complete else journal.failures(schedule.number_of)
        for number in range(schedule.n_trials):
            if following is not None and following.number == number:
                line, following = following, next(done, None)
            else:
                reason = failures.get(number, NOT_ASKED)
                line = _failed(schedule, scoring, number, reason)
            trials.write(line.record + b"\n")
            scores.write(line.score + b"\n")
            timings.write(line.timing + b"\n")


def _failed(schedule: Schedule, scoring: TaskScorer, number: int, reason: str) -> JournalLine:
    cell, item, repeat = schedule.trial(number)
    trial = failed_record(cell, item.id, repeat, reason)
    answer = Answer(item_id=item.id, outcome="failed", value=None, reason=reason)
    score = scoring.record(item, trial_place(cell, item.id, repeat), answer, "")
    return JournalLine(number=number, record=canonical(trial), score=canonical(score), timing=b"{}")


def copy_answers(source: Run, run: Run) -> None:
    """Copy items, trials and timings of a sealed run into a new one that judges them again, but for
    what was deleted by law.
    """
    deleted = run.manifest.deleted_items
    for name in ("items.jsonl", "trials.jsonl", "timings.jsonl"):
        target = run.path / name
        if not target.exists():
            part = target.with_suffix(".part")
            part.unlink(missing_ok=True)
            if deleted:
                _copy_present(source.path, name, part)
            else:
                shutil.copyfile(source.path / name, part)
            part.rename(target)


def _copy_present(folder: Path, name: str, target: Path) -> None:
    """Copy the lines of a file that are not of a deleted item.

    Timings stand beside the trials, line by line.
    """
    told_by = "trials.jsonl" if name == "timings.jsonl" else name
    with (folder / name).open("rb") as lines, target.open("wb") as copy:
        for line, record in zip(lines, read_jsonl(folder / told_by), strict=True):
            if "tombstone" not in record:
                copy.write(line)


def write_verdicts(queue: JudgingQueue, journal: Journal) -> None:
    """Write the verdicts of a queue in sealed order; one that never came is `failed`."""
    with _rewrite(queue.file) as verdicts:
        done = journal.lines()
        following = next(done, None)
        failures = journal.failures(queue.number_of)
        for number in queue.numbers:
            trial = queue.answers.trial(number)
            for seat, spec in enumerate(queue.assignment.seats[trial.model]):
                place = queue.verdict_number(number, seat)
                if following is not None and following.number == place:
                    line, following = following.record, next(done, None)
                else:
                    reason = failures.get(place, NOT_ASKED)
                    line = canonical(failed_verdict(trial, spec, seat, reason))
                verdicts.write(line + b"\n")


def write_judged_scores(
    run: Run, answers: Answers, graders: Mapping[str, Grader], n_seats: int
) -> None:
    """Write the scores anew, those of judged trials from their verdicts; null where one failed."""
    stored = (verdict for verdict, _ in read_stored_verdicts(run.path / "verdicts.jsonl"))
    verdicts_by_trial = groupby(stored, key=lambda verdict: verdict.place)
    part = run.path / "scores.jsonl.part"
    open_trials = set(answers.open)
    with part.open("wb") as scores:
        for number, unjudged in enumerate(read_jsonl(run.path / "scores.jsonl")):
            score = unjudged
            if number in open_trials:
                place, verdicts = next(verdicts_by_trial)
                item = answers.items.get(place[0], place[4])
                parts = unjudged.get("parts", {})
                score = judged_score(place, parts, item, [*verdicts], graders[place[0]], n_seats)
            scores.write(canonical(score) + b"\n")
    part.replace(run.path / "scores.jsonl")


def rescore_verdicts(source: Run, run: Run, items: RunItems, graders: Mapping[str, Grader]) -> None:
    """Write the verdicts of another run, scored by `graders`, and the scores of the answers."""
    answers = Answers(run, items, task_of_run(run.manifest))
    _reread_all(source, run.path / f"{VERDICTS}.jsonl", answers, graders)
    if run.manifest.audited:
        _reread_all(source, run.path / f"{SPOT_CHECK}.jsonl", answers, spot_check_graders(graders))
    n_seats = max(len(seats) for seats in (run.manifest.bench or {}).values())
    write_judged_scores(run, answers, graders, n_seats)


def _reread_all(source: Run, target: Path, answers: Answers, graders: Mapping[str, Grader]) -> None:
    with _rewrite(target) as verdicts:
        for verdict, record in read_stored_verdicts(source.path / target.name):
            if verdict.tombstone is not None:
                continue
            # Judged together with an answer that was deleted since: it stays as it was read, only
            # its score follows.
            stays = any(place not in answers.numbers for place in verdict.batch)
            stored = msgspec.structs.replace(verdict, given=True) if stays else verdict
            line = {**record, "given": True} if stays else record
            if stored.outcome != "failed":
                grader = graders[stored.domain]
                verdict_again = reread(answers, grader, stored)
                if verdict_again is None:
                    raise InputError(
                        f"run {source.id}: today's reader of judge '{stored.judge}' would ask"
                        " again; judge the answers anew with `medassay judge`"
                    )
                line |= {**verdict_again, "rubric": grader.id}
            verdicts.write(canonical(line) + b"\n")


def write_scores(run: Run, task: Task, items: RunItems, engine: Engine | None = None) -> None:
    """Score the trials of a run whose answers came without scores."""
    if engine is None or not engine.elsewhere:
        with _rewrite(run.path / "scores.jsonl") as scores:
            for _, score in score_trials(run.path, items, task):
                scores.write(canonical(score) + b"\n")
        return
    mirror = mirror_of(run.path)
    if mirror is not None:
        mirror.push_new(mirror.name(run.path))
    place = str(run.path.resolve()) if mirror is None else mirror.called(run.path)
    part = run.path / "scores.jsonl.part"
    with part.open("wb") as scores:
        task_of_parts = partial(_scored_part, place, run.manifest.domains, task)
        parts = line_parts(run.path / "trials.jsonl", _PART)
        for lines in engine.spread(task_of_parts, parts):
            scores.write(lines)
    part.replace(run.path / "scores.jsonl")


def _scored_part(
    place: str, domains: Mapping[str, str], task: Task, part: tuple[int, int]
) -> bytes:
    """Return the lines of scores.jsonl for so many trials of a run from an offset on, in any
    process that sees the run.
    """
    folder, items = _run_and_items(place, tuple(sorted(domains.items())))
    scoring, offset, count = TaskScorer(task), *part
    lines = []
    for trial in islice(read_trials(folder, offset=offset), count):
        item = items.get(trial.domain, trial.item)
        score = scoring.record(item, trial.place, trial.answer, trial.text or "")
        lines.append(canonical(score) + b"\n")
    return b"".join(lines)


@lru_cache(maxsize=1)
def _run_and_items(place: str, domains: tuple[tuple[str, str], ...]) -> tuple[Path, RunItems]:
    """Return a run's folder on this machine and its items.

    The last one is kept for the next part.
    """
    folder = localize(place)
    return folder, RunItems(folder, dict(domains))


def _rewrite(path: Path) -> BinaryIO:
    """Open a file of an unsealed run afresh: a sealing that was interrupted is redone."""
    path.unlink(missing_ok=True)
    return path.open("xb")
