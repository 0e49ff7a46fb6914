"""The stage that judges: a unit is a batch of answers before one seat.

Every verdict kept, a failing judge never guessed for.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.catch import caught
from medassay.core.records.completion import Completion, Reply, TokenLogprob
from medassay.core.records.model import ModelSpec
from medassay.core.records.own_code import OWN_CODE
from medassay.core.records.prompt import Prompt
from medassay.core.records.sealed_object import VerdictObject
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import Case, Grader, StoredVerdict, Verdict, verdict_of_body
from medassay.core.reply.thoughts import strip_thoughts
from medassay.errors import NotAsked
from medassay.judging.assignment import JudgeAssignment
from medassay.judging.queue import Answers, JudgingQueue, spot_check_graders
from medassay.kinds.graders import graders_of
from medassay.own_code.grader import OwnGrader
from medassay.own_code.process import close_all, run_beside
from medassay.runner.ask import Asker
from medassay.runner.progress import Progress
from medassay.storage.journal import RecordWriter
from medassay.storage.run import SPOT_CHECK, Run

_APART = 100  # askings of one attempt at most, so that those of the next have keys of their own


class JudgeStage:
    """The verdicts of a judging queue; a unit is a batch of answers before one seat."""

    def __init__(
        self,
        queue: JudgingQueue,
        asker: Asker,
        journal: RecordWriter,
        progress: Progress,
        again: Mapping[int, int] | None = None,
    ) -> None:
        self._queue = queue
        self._again = again or {}  # number of a verdict → how often its judge was asked before
        self._answers = queue.answers
        self._assignment = queue.assignment
        self._asker = asker
        self._journal = journal
        self._progress = progress
        self.specs = queue.assignment.models
        self._beside: ThreadPoolExecutor | None = None

    def units(self, model: str) -> Iterator[int]:
        """Yield the numbers of the batches that a judge has to judge, seat by seat: batch × seats +
        seat.
        """
        n_seats = self._assignment.n_seats
        for batch_number, batch in enumerate(self._queue.batches):
            tested = self._answers.trial(batch[0]).model
            for seat, judge in enumerate(self._assignment.seats[tested]):
                if judge.id == model:
                    yield batch_number * n_seats + seat

    def records(self, unit: int) -> tuple[int, ...]:
        """Return the numbers of the verdicts that a unit leaves in the journal."""
        batch_number, seat = divmod(unit, self._assignment.n_seats)
        batch = self._queue.batches[batch_number]
        return tuple(self._queue.verdict_number(trial_number, seat) for trial_number in batch)

    def length(self, unit: int) -> int:
        """Return how long the answers of a unit are, in bytes."""
        number = unit // self._assignment.n_seats
        return sum(map(self._answers.length, self._queue.batches[number]))

    async def close(self) -> None:
        """End the processes of own code."""
        if self._beside is not None:
            close_all()
            self._beside.shutdown(wait=False)

    async def do(self, spec: ModelSpec, unit: int) -> None:
        """Ask a judge about one batch; nothing is left behind where it may not be asked."""
        number, seat = divmod(unit, self._assignment.n_seats)
        batch = self._queue.batches[number]
        await self._judge(spec, seat, [self._answers.trial(number_) for number_ in batch], batch)

    async def _judge(
        self, spec: ModelSpec, seat: int, trials: list[Trial], numbers: Sequence[int]
    ) -> None:
        grader = self._assignment.graders[trials[0].domain]
        # A batch has one reply: all of it is asked again, or nothing.
        times = max(self._again.get(self._queue.verdict_number(n, seat), 0) for n in numbers)
        judged_cases = [self._answers.case(trial) for trial in trials]
        cases = [case for case, _ in judged_cases]
        prompts: list[Prompt] = []
        replies: list[Reply] = []
        try:
            with caught() as errors:
                step = await self._step(grader, cases, [])
                while isinstance(step, Prompt):
                    columns = {"item": trials[0].item, "judged": trials[0].model}
                    attempt = times * _APART + sum(p.encoded == step.encoded for p in prompts)
                    reply = await self._asker.ask(spec, step, columns, attempt=attempt)
                    if reply is None:
                        return
                    prompts.append(step)
                    replies.append(reply)
                    step = await self._step(grader, cases, [r.completion for r in replies])
        except NotAsked:
            return
        if errors:
            for trial in trials:
                reason = self._asker.tally.fail(errors[0])
                failure = failed_verdict(trial, spec, seat, reason)
                self._journal.append(None, canonical(failure), b"null", {"seconds": 0.0})
                self._progress.advance(spec.id, trial.domain, "failed")
            return
        seconds = round(sum(r.completion.seconds for r in replies), 6)
        request_columns: VerdictObject = {
            "rubric": grader.id,
            "prompt_sha256": [sha256_hex(p.encoded) for p in prompts],
            "responses": [r.key for r in replies],
            "replies": [r.completion.text for r in replies],
            "seconds": [r.completion.seconds for r in replies],
            "usage": [r.completion.usage.to_dict() for r in replies],
        }
        if grader.alternatives:
            request_columns |= {"logprobs": [r.completion.logprobs for r in replies]}
            request_columns |= {"alternatives": [near_digits(r.completion) for r in replies]}
        if times:
            request_columns |= {"attempt": times}
        if len(trials) > 1:
            request_columns |= {"batch": [t.place for t in trials]}
        for number, trial, (case, was_cut), verdict in zip(
            numbers, trials, judged_cases, step, strict=True
        ):
            record: VerdictObject = {
                **_key(trial, spec, seat),
                **request_columns,
                **verdict_fields(verdict),
                "masked": was_cut.masked,
                "cut": was_cut.cut,
                "score": grader.score(case.item, verdict),
            }
            if trial.attempt:
                record |= {"of_attempt": trial.attempt}
            if not verdict.valid:
                own = verdict.reason.startswith(OWN_CODE) or not replies
                why = OWN_CODE if own else why_unusable(replies[-1].completion)
                record |= {"unusable": why}
            verdict_number = self._queue.verdict_number(number, seat)
            # The score of a verdict stands in its record, so the journal's own is none.
            line = canonical(record)
            self._journal.append(verdict_number, line, b"null", {"seconds": seconds})
            self._progress.advance(spec.id, trial.domain, verdict.outcome)

    async def _step(
        self, grader: Grader, cases: Sequence[Case], replies: Sequence[Completion]
    ) -> Prompt | list[Verdict]:
        """Return what a grader does next; one of the user may take its time, and must not hold up
        other judges.
        """
        if not isinstance(grader, OwnGrader):
            return grader.step(cases, replies)
        self._beside = self._beside or ThreadPoolExecutor(1)
        return await run_beside(self._beside, partial(grader.step, cases, replies))


class JudgeStageSpec(msgspec.Struct, frozen=True):
    """What another process needs to give verdicts of a queue: judges are made anew from what the
    run remembers.
    """

    task: Task
    name: str
    numbers: Sequence[int]
    known: "tuple[array[int], array[int]]"
    seats: Mapping[str, tuple[ModelSpec, ...]]
    seed: int
    again: Mapping[int, int]
    majority: Mapping[str, str] = msgspec.field(default_factory=dict)  # no baseline judges
    secret_names: tuple[str, ...] = ()  # judges call no tools

    @classmethod
    def of(cls, queue: JudgingQueue, again: Mapping[int, int]) -> "JudgeStageSpec":
        """Return the specification from which a worker makes the stage of a queue."""
        answers, assignment = queue.answers, queue.assignment
        numbers = array("Q", queue.numbers)
        return cls(
            answers.task,
            queue.name,
            numbers,
            answers.known,
            assignment.seats,
            assignment.seed,
            again,
        )

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""
        return {spec.id: spec for seats in self.seats.values() for spec in seats}

    def open(
        self,
        run: Path,
        asker: Asker,
        journal: RecordWriter,
        progress: Progress,
        secrets: Mapping[str, str],
    ) -> JudgeStage:
        """Return the stage."""
        opened = Run(run)
        graders = graders_of(self.task, opened.manifest)
        items = RunItems(run, opened.manifest.domains)
        answers = Answers(opened, items, self.task, self.known)
        graders = spot_check_graders(graders) if self.name == SPOT_CHECK else graders
        assignment = JudgeAssignment(graders=graders, seats=self.seats, seed=self.seed)
        queue = JudgingQueue(
            name=self.name, answers=answers, numbers=self.numbers, assignment=assignment
        )
        return JudgeStage(queue, asker, journal, progress, self.again)


def reread(answers: Answers, grader: Grader, stored: StoredVerdict) -> VerdictObject | None:
    """Return what the stored replies of a verdict say today; None if more would be asked."""
    if stored.given:  # it came with an import, without replies: only the score follows
        is_valid = stored.outcome == "valid"
        verdict = verdict_of_body(grader, stored.body, valid=is_valid, reason=stored.reason)
        case = answers.case(answers.trial(answers.numbers[stored.place]))[0]
        if not grader.fits(case, verdict):
            return None
        return {**verdict_fields(verdict), "score": grader.score(case.item, verdict)}
    trials = [answers.trial(answers.numbers[place]) for place in stored.answers]
    cases = [answers.case(trial)[0] for trial in trials]
    verdicts = grader.step(cases, stored.completions())
    if isinstance(verdicts, Prompt):
        return None
    at = stored.answers.index(stored.place)
    score = grader.score(cases[at].item, verdicts[at])
    return {**verdict_fields(verdicts[at]), "score": score}


def why_unusable(reply: Completion) -> str:
    """Return of what kind a judge's reply is in which nothing could be read."""
    if reply.finish in ("refusal", "moderation"):
        return "content filter"
    reply_text = strip_thoughts(reply.text)[0].strip()
    if reply.finish == "length":
        return "cut off" if reply_text else "only thoughts, cut off"
    return "unparsed" if reply_text else "empty"


def near_digits(completion: Completion) -> list[tuple[TokenLogprob, ...]] | None:
    """Return the candidates at tokens with a digit and at those behind them: where scores are.

    The others, most of a reply, are left empty; a run would grow tenfold by them.
    """
    if completion.alternatives is None:
        return None
    digits = [any(map(str.isdigit, token)) for token, _ in completion.logprobs or ()]
    flags = (here or before for here, before in zip(digits, [False, *digits], strict=False))
    return [top if keep else () for top, keep in zip(completion.alternatives, flags, strict=False)]


def verdict_fields(verdict: Verdict) -> VerdictObject:
    """Return what a verdict adds to its record."""
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "repaired": verdict.repaired,
        "unsupported_quotes": verdict.unsupported_quotes,
        "body": msgspec.to_builtins(verdict.body),
    }


def failed_verdict(
    trial: Trial,
    spec: ModelSpec,
    seat: int,
    reason: str,
) -> VerdictObject:
    """Return the record of a verdict that never came: the judge's failure, unknown."""
    return {
        **_key(trial, spec, seat),
        "outcome": "failed",
        "reason": reason[:300],
        "score": None,
    }


def _key(trial: Trial, spec: ModelSpec, seat: int) -> VerdictObject:
    return {
        "schema_version": 1,
        "domain": trial.domain,
        "model": trial.model,
        "setting": trial.setting,
        "mode": trial.mode,
        "item": trial.item,
        "repeat": trial.repeat,
        "judge": spec.id,
        "seat": seat,
    }
