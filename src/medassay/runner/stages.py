"""The two stages of a run that ask: answers, then verdicts; each resumes after an
interruption.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing

import msgspec
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.again import Again
from medassay.core.log import log
from medassay.core.records.context_config import ToolRules
from medassay.core.records.model import ModelSpec
from medassay.core.records.task import Task
from medassay.errors import IncompleteError, InputError, ModelError, OverBudget
from medassay.judging.assignment import JudgeAssignment
from medassay.judging.queue import Answers, JudgingQueue, queues
from medassay.model.connection import why_elsewhere
from medassay.runner.answer_stage import AnswerStageSpec
from medassay.runner.ask import Asker, Tally
from medassay.runner.engine.stage import Engine, Stage, StageJob, StageSpec
from medassay.runner.judge_stage import JudgeStage, JudgeStageSpec
from medassay.runner.progress import Progress, ProgressFactory, Stop, raise_if_interrupted, watching
from medassay.runner.retrying import (
    journalled,
    refuse_unusable,
    sealed,
    trials_again,
    verdicts_again,
)
from medassay.runner.write import write_judged_scores, write_trials, write_verdicts
from medassay.storage.journal import JOURNAL, Journal, NumberOf
from medassay.storage.object_store import mirror_of
from medassay.storage.run import Run


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage needs: who asks, which engine spreads it, who watches, and whether
    failures are accepted.

    `again` is what is asked once more: of a sealed run, `source`, or of the unfinished one itself.
    """

    asker: Asker
    engine: Engine
    watch: ProgressFactory | None = None
    accept_failures: bool = False
    in_doubt: Callable[[], bool] = lambda: False
    again: Again | None = None
    source: Run | None = None

    def job(
        self,
        run: Run,
        stage: Stage,
        stage_spec: StageSpec,
        journal: Journal,
        progress: Progress,
        number_of: NumberOf,
    ) -> StageJob:
        """Return one pass over a stage of a run."""
        return StageJob(
            stage=stage,
            stage_spec=stage_spec,
            journal=journal,
            asker=self.asker,
            progress=progress,
            stop=Stop(),
            run=run.path,
            number_of=number_of,
            in_doubt=self.in_doubt,
        )


def ask(
    run: Run, stage_spec: AnswerStageSpec, context: RunContext, secrets: Mapping[str, str]
) -> None:
    """Ask what was not asked yet, and write the trials with their scores.

    Raises
    ------
    ModelError
        When every model is given up.
    IncompleteError
        When trials failed or the budget ended.
    """
    schedule, tally = stage_spec.schedule, context.asker.tally
    journal = Journal(run.path / JOURNAL, schedule.n_trials)
    journal.resume(schedule.number_of)
    stage_spec = _spec_with_repeats(stage_spec, journal, context)
    if schedule.contexts is not None and journal.done < schedule.n_trials:
        items_asked = (bank.items[at] for bank, at in schedule.items())
        try:
            schedule.contexts.find(
                items_asked, stage_spec.models_file, secrets, context.watch, context.asker.budget
            )
        except OverBudget as over:
            raise IncompleteError(f"run {run.id}: {over}; the same command resumes") from None
    _ask_trials(run, stage_spec, journal, context, secrets)
    n_left = schedule.n_trials - journal.done
    if not (context.accept_failures and journal.done):
        models = {name for name, spec in schedule.specs.items() if not spec.is_baseline}
        refuse_if_all_gave_up(run, "model", n_left, models, tally)
    refuse_incomplete(run, "trials have no answer", n_left, tally, context.accept_failures)
    write_trials(run, schedule, journal)


def _spec_with_repeats(
    stage_spec: AnswerStageSpec, journal: Journal, context: RunContext
) -> AnswerStageSpec:
    """Return the stage with the trials that are asked once more.

    In the journal they are no longer done.
    """
    if context.again is None:
        return stage_spec
    if context.source is not None:
        path = context.source.path / "trials.jsonl"
        attempts, _ = trials_again(sealed(path, stage_spec.schedule.number_of), context.again)
    else:
        attempts, chosen = trials_again(journalled(journal), context.again)
        for number in chosen:
            journal.forget(number)
    return msgspec.structs.replace(stage_spec, again=attempts)


def _ask_trials(
    run: Run,
    stage_spec: AnswerStageSpec,
    journal: Journal,
    context: RunContext,
    secrets: Mapping[str, str],
) -> None:
    schedule, asker = stage_spec.schedule, context.asker
    sizes: Counter[tuple[str, str]] = Counter()
    done: Counter[tuple[str, str]] = Counter()
    for cell in schedule.cells:
        numbers = range(cell.base, cell.base + schedule.size(cell))
        sizes[cell.model, cell.domain] += len(numbers)
        done[cell.model, cell.domain] += sum(map(journal.is_done, numbers))
    with watching(context.watch, "trials", sizes, done) as progress, closing(journal):
        progress.money = lambda: asker.budget.booked.money
        stage = stage_spec.stage(asker, journal, progress, secrets)
        job = context.job(run, stage, stage_spec, journal, progress, schedule.number_of)
        work(run, "trials", context, job)
    raise_if_interrupted(job.stop, "trials are answered", journal.done, schedule.n_trials)


def work(run: Run, what: str, context: RunContext, job: StageJob) -> None:
    """Let the engine do a pass, and tell whoever operates the run how it went."""
    began, cpu, before = time.monotonic(), time.process_time(), job.journal.done
    tally, earlier = context.asker.tally, replace(context.asker.tally)
    log.tell("stage_began", run=run.id, stage=what, done=before)
    try:
        mirror = mirror_of(run.path)
        if mirror is None:
            context.engine.work(job)
        else:  # replies before what is said of them
            mirror.push_new(mirror.name(run.path))
            mirror.catch_up(mirror.name(job.journal.folder))
            with mirror.following(
                lambda: context.asker.budget.growing,
                lambda: context.asker.growing,
                lambda: job.journal.growing,
            ):
                context.engine.work(job)
        if context.asker.broken is not None:
            raise context.asker.broken
    finally:
        log.tell(
            "stage_ended",
            run=run.id,
            stage=what,
            done=job.journal.done,
            new=job.journal.done - before,
            called=tally.called - earlier.called,
            replayed=tally.replayed - earlier.replayed,
            failed=tally.failed - earlier.failed,
            over_budget=bool(tally.over_budget),
            seconds=round(time.monotonic() - began, 3),
            cpu=round(time.process_time() - cpu, 3),
        )


def judge(
    run: Run, task: Task, assignment: JudgeAssignment, items: RunItems, context: RunContext
) -> None:
    """Ask for the verdicts that are not there yet, and write verdicts and scores."""
    answers = Answers(run, items, task)
    for queue in queues(answers, assignment):
        journal = _ask_verdicts(queue, context)
        write_verdicts(queue, journal)
    write_judged_scores(run, answers, assignment.graders, assignment.n_seats)


def _ask_verdicts(queue: JudgingQueue, context: RunContext) -> Journal:
    """Ask for the verdicts of a queue that are missing; return their journal."""
    run, n_seats, asker = queue.answers.run, queue.assignment.n_seats, context.asker
    journal = Journal(run.path / queue.name, len(queue.answers) * n_seats)
    journal.resume(queue.number_of)
    again = _verdicts_again(queue, journal, context)
    sizes, done = queue.sizes(journal)
    before = asker.tally.failed
    with watching(context.watch, queue.name, sizes, done) as progress, closing(journal):
        progress.money = lambda: asker.budget.booked.money
        stage = JudgeStage(queue, asker, journal, progress, again)
        stage_spec = JudgeStageSpec.of(queue, again)
        job = context.job(run, stage, stage_spec, journal, progress, queue.number_of)
        work(run, queue.name, context, job)
    total = sizes.total()
    raise_if_interrupted(job.stop, "verdicts are there", journal.done, total)
    tally = replace(asker.tally, failed=asker.tally.failed - before)  # of this queue alone
    n_left = total - journal.done
    names = {name for name, _ in sizes}
    if not (context.accept_failures and journal.done):
        refuse_if_all_gave_up(run, "judge", n_left, names, tally)
    refuse_incomplete(run, "verdicts are missing", n_left, tally, context.accept_failures)
    if not context.accept_failures:
        seats: Counter[str] = Counter()
        for (name, _), size in sizes.items():
            seats[name] += size
        refuse_unusable(run, journal, seats)
    return journal


def _verdicts_again(queue: JudgingQueue, journal: Journal, context: RunContext) -> dict[int, int]:
    """Return which attempt of each verdict counts, where that is not the first.

    Those that are asked again are no longer done.
    """
    if context.again is None:
        return {}
    if context.source is not None:
        path = context.source.path / queue.file.name
        return verdicts_again(sealed(path, queue.number_of), context.again)[0]
    attempts, chosen = verdicts_again(journalled(journal), context.again)
    for place in chosen:
        journal.forget(place)
    return attempts


def refuse_if_all_gave_up(
    run: Run, who: str, n_left: int, names: Collection[str], tally: Tally
) -> None:
    """Raise `ModelError` where something is left to ask and all who could be asked are given up."""
    if n_left and names and tally.given_up.keys() >= set(names):
        why = "; ".join(tally.given_up[name] for name in sorted(names))
        raise ModelError(f"run {run.id}: no {who} answers: {why}; the same command resumes")


def refuse_incomplete(
    run: Run, what: str, n_left: int, tally: Tally, accept_failures: bool
) -> None:
    """Raise `IncompleteError`, saying what is left and why, unless failures are accepted."""
    # A unit that failed before its worker was lost is asked again, so that it may have failed
    # twice.
    is_known = (n_left <= tally.failed or bool(tally.given_up)) and not tally.over_budget
    if not n_left or (accept_failures and is_known):
        return
    whys = list(tally.given_up.values())
    if tally.over_budget:
        whys = [tally.over_budget, *whys]
    if tally.failures:
        reasons = sorted(tally.failures.items(), key=lambda pair: -pair[1])
        reasons_text = "; ".join(f"{count} × {reason}" for reason, count in reasons[:3])
        whys.append(f"{tally.failed} failed ({reasons_text})")
    raise IncompleteError(
        f"run {run.id}: {n_left} {what}: {'; '.join(whys)}; the same command resumes, "
        "--accept-failures seals the run with them null and counted"
    )


def refuse_leaving(
    banks: Iterable[tuple[str, bool]],
    specs: Iterable[ModelSpec],
    tools: ToolRules | None = None,
) -> None:
    """Refuse to send a bank that may not leave to an endpoint elsewhere or into a search, before
    any call.

    Parameters
    ----------
    banks : name of each bank, and whether it may leave; two may bear one name
    """
    specs = list(specs)
    searches = [name for name in (tools.use if tools else ()) if name != "doc_retrieval"]
    for name in [name for name, may_leave in banks if not may_leave]:
        if searches:
            raise InputError(
                f"bank '{name}' may not leave this place (may_leave = false), but what a"
                f" model looks up by {', '.join(searches)} does; leave these out of 'tools.use', no"
                " call was made"
            )
        for spec in specs:
            if spec.is_scripted:
                continue
            if spec.location == "external":
                why = "is at an external endpoint"
            elif (elsewhere := why_elsewhere(spec)) is not None:
                why = (
                    f"is marked local, but {elsewhere}, nor is it named in 'trusted_hosts' of the"
                    " models file"
                )
            else:
                continue
            raise InputError(
                f"bank '{name}' may not leave this place (may_leave = false), but model "
                f"'{spec.id}' {why}; no call was made"
            )
