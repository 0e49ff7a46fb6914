"""Asking judges about the answers of a run: every verdict kept, a failing judge never guessed for.

A verdict is a number: trial × seat. Batches are cut from one seeded order of all answers, so that
they are the same after a resume, and models follow each other in no order a judge could learn.
"""

import math
import os
import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import msgspec

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.item import Item
from medassay.core.jsontext import parse_json
from medassay.core.model import ModelSpec
from medassay.core.plan import Plan
from medassay.core.trial import Completion, Likely, Prompt
from medassay.core.verdict import Case, Judge, Verdict
from medassay.errors import InputError
from medassay.judge.panel import PANEL_SIZE, check_panel, check_seats, check_substitute, seated
from medassay.judge.shown import Shown, show, speaker_pattern
from medassay.model.spec import named
from medassay.runner.asking import Asker, Reply
from medassay.runner.progress import Progress
from medassay.storage.journal import Journal, Writing
from medassay.storage.run import AUDIT, VERDICTS, Run
from medassay.task.judged import TRIAL_KEY, judges_of
from medassay.task.scoring import RunItems, must_judge
from medassay.task.task import Task

RULE = ModelSpec(id="rule", provider="rule", family="none", location="local", concurrency=1)
AUDITED = 0.05  # of the answers that judges take in batches, judged once more singly


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Who judges: a judge (rubric and reader) for each domain, the seats for each tested model.

    `rules` are those of the plan that the judges were made with, as a run remembers them: `steps` of
    evaluation, `ddx`.
    """

    judges: Mapping[str, Judge]
    seats: Mapping[str, tuple[ModelSpec, ...]]
    seed: int
    rules: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_seats(self) -> int:
        """Return the number of judges of one answer."""
        return max(len(seated) for seated in self.seats.values())

    @property
    def models(self) -> dict[str, ModelSpec]:
        """Return all judging models by id."""
        return {spec.id: spec for seated in self.seats.values() for spec in seated}


def seat(
    plan: Plan,
    task: Task,
    tested: Mapping[str, ModelSpec],
    specs: Mapping[str, ModelSpec],
    rubrics: Mapping[str, Judge],
    rules: Mapping[str, Any] | None = None,
) -> Bench | None:
    """Return the bench of a plan, None for a task that needs no judge.

    `rules` are those that `rubrics` were made with.

    Raises
    ------
    InputError
        When judges are named where none sit, are missing, unknown, of one family, or would grade
        themselves.
    """
    if not task.judges:
        if plan.judges:
            raise InputError(f"plan: task '{task.name}' has no judges; leave 'judges' out")
        return None
    if not task.n_judges:
        if plan.judges or plan.substitute:
            raise InputError(
                f"plan: task '{task.name}' compares names by rule and asks nobody; leave 'judges' out"
            )
        return by_rule(tested, rubrics, plan.seed, rules or {})
    judges = [named(specs, name, "plan: judge", plan.models_file) for name in plan.judges]
    if not judges:
        raise InputError(
            f"plan: task '{task.name}' is scored by judges, and none are named: there is no silent "
            f"default; name {task.n_judges} entries of {plan.models_file} in 'judges'"
        )
    substitute = (
        named(specs, plan.substitute, "plan: judge", plan.models_file)
        if plan.substitute
        else None
    )
    if task.n_judges == PANEL_SIZE:
        check_panel(judges)
        if substitute is not None:
            check_substitute(judges, substitute)
    elif len(judges) != task.n_judges:
        raise InputError(
            f"plan: task '{task.name}' has {task.n_judges} judge(s); {len(judges)} are named"
        )
    seats = {name: seated(judges, substitute, spec) for name, spec in tested.items()}
    check_seats(seats, tested, allow_own=plan.allow_own)
    if any(judge.alternatives for judge in rubrics.values()):
        _check_logprobs(task, seats)
    return Bench(judges=rubrics, seats=seats, seed=plan.seed, rules=rules or {})


def by_rule(
    tested: Iterable[str], rubrics: Mapping[str, Judge], seed: int, rules: Mapping[str, Any]
) -> Bench:
    """Return the bench of a task whose judge is a rule: one seat, and nobody in it to ask."""
    seats = dict.fromkeys(tested, (RULE,))
    return Bench(judges=rubrics, seats=seats, seed=seed, rules=rules)


def _check_logprobs(task: Task, seats: Mapping[str, tuple[ModelSpec, ...]]) -> None:
    for spec in {spec.id: spec for panel in seats.values() for spec in panel}.values():
        if not spec.logprobs:
            raise InputError(
                f"plan: task '{task.name}' weighs scores by probability, and judge '{spec.id}' gives "
                'none; set "logprobs": true in its entry if its endpoint has them, or take a task '
                "without weights"
            )


class Answers:
    """The trials of a run, each read when it is asked for; `open` are those that judges decide on.

    The names of the run's models are masked where an answer gives them as its own.
    """

    def __init__(
        self,
        run: Run,
        items: RunItems,
        task: Task,
        known: "tuple[array[int], array[int]] | None" = None,
    ) -> None:
        self.task = task
        self._file = os.open(run.path / "trials.jsonl", os.O_RDONLY)
        self.run = run
        entries = [*run.manifest["models"].values(), *run.manifest["judges"]]
        self._speaker = speaker_pattern(
            {n for e in entries for n in (e["id"], e.get("model", ""))}
        )
        self.items = items
        if known is not None:  # found by another process
            self._starts, self.open = known
            return
        self._starts = array("Q", [0])
        self.open = array("Q")  # numbers of the trials that judges decide on
        with (run.path / "trials.jsonl").open("rb") as lines:
            for number, line in enumerate(lines):
                self._starts.append(self._starts[-1] + len(line))
                if must_judge(task, parse_json(line, f"trials.jsonl line {number + 1}"), items):
                    self.open.append(number)

    def __del__(self) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def known(self) -> "tuple[array[int], array[int]]":
        """Return where the trials begin and which are open: what another process need not find again."""
        return self._starts, self.open

    def trial(self, number: int) -> dict[str, Any]:
        """Return one trial record."""
        start = self._starts[number]
        line = os.pread(self._file, self._starts[number + 1] - start, start)
        record: dict[str, Any] = parse_json(line, f"trials.jsonl line {number + 1}")
        return record

    def length(self, number: int) -> int:
        """Return how long one trial record is, in bytes."""
        return self._starts[number + 1] - self._starts[number]

    @cached_property
    def numbers(self) -> dict[tuple[Any, ...], int]:
        """Return trial key → number, of the trials that need judges."""
        return {tuple(self.trial(n)[k] for k in TRIAL_KEY): n for n in self.open}

    def case(self, trial: Mapping[str, Any]) -> tuple[Case, Shown]:
        """Return what a judge is shown of a trial."""
        shown = show(trial["value"], self._speaker)
        item = self.items.get(trial["domain"], trial["item"])
        return Case(item=item, text=shown.text, template=trial.get("template", "")), shown


@dataclass(frozen=True, kw_only=True)
class Docket:
    """What is judged in one pass: which answers (numbers of trials, ascending), and by whom.

    `name` is that of its journal and, with `.jsonl`, of its file in the run.
    """

    name: str
    answers: Answers
    numbers: Sequence[int]
    bench: Bench

    @property
    def file(self) -> Path:
        """Return the file of its verdicts."""
        return self.answers.run.path / f"{self.name}.jsonl"

    @cached_property
    def batches(self) -> "Batches":
        """Return the answers in the batches in which they are judged."""
        return Batches(self)

    @cached_property
    def wanted(self) -> frozenset[int]:
        """Return the numbers as a set."""
        return frozenset(self.numbers)

    def place(self, number: int, seat: int) -> int:
        """Return the number of a verdict."""
        return number * self.bench.n_seats + seat

    def place_of(self, record: Mapping[str, Any]) -> int | None:
        """Return the number of a stored verdict, None if it is not wanted."""
        number = self.answers.numbers.get(tuple(record[k] for k in TRIAL_KEY))
        seats = self.bench.seats.get(record["model"], ())
        seat = int(record["seat"])
        if number not in self.wanted or not 0 <= seat < len(seats):
            return None
        return self.place(number, seat) if seats[seat].id == record["judge"] else None

    def sizes(
        self, journal: Journal
    ) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """Return how many verdicts there are to give, and are given, by judge and domain."""
        sizes: Counter[tuple[str, str]] = Counter()
        done: Counter[tuple[str, str]] = Counter()
        for number in self.numbers:
            trial = self.answers.trial(number)
            for seat, spec in enumerate(self.bench.seats[trial["model"]]):
                key = (spec.id, trial["domain"])
                sizes[key] += 1
                done[key] += journal.is_done(self.place(number, seat))
        return sizes, done


def dockets(answers: Answers, bench: Bench) -> Iterator[Docket]:
    """Yield what is to be judged: all open answers, then what is judged once more.

    Where judges take answers in batches, a seeded sample of them is judged again, one by one.
    """
    yield Docket(name=VERDICTS, answers=answers, numbers=answers.open, bench=bench)
    audits = auditors(bench.judges)
    if audits:
        numbers = audited(answers.open, bench.seed)
        again = replace(bench, judges=audits)
        yield Docket(name=AUDIT, answers=answers, numbers=numbers, bench=again)


def auditors(judges: Mapping[str, Judge]) -> dict[str, Judge]:
    """Return what judges a sample again, by domain; empty if no judge takes answers in batches."""
    return {d: judge.audit for d, judge in judges.items() if judge.audit is not None}


def audited(numbers: Sequence[int], seed: int) -> list[int]:
    """Return the seeded sample of answers that are judged again, ascending."""
    size = math.ceil(AUDITED * len(numbers))
    return sorted(random.Random(f"{seed}\x1faudit").sample(numbers, size))


class Judging:
    """The verdicts of a docket; a unit is a batch of answers before one seat."""

    def __init__(
        self, docket: Docket, asker: Asker, journal: Writing, progress: Progress
    ) -> None:
        self._docket = docket
        self._answers = docket.answers
        self._bench = docket.bench
        self._asker = asker
        self._journal = journal
        self._progress = progress
        self.specs = docket.bench.models

    def units(self, model: str) -> Iterator[int]:
        """Yield the numbers of the batches that a judge has to judge, seat by seat: batch × seats + seat."""
        n_seats = self._bench.n_seats
        for number, batch in enumerate(self._docket.batches):
            tested = self._answers.trial(batch[0])["model"]
            for seat, judge in enumerate(self._bench.seats[tested]):
                if judge.id == model:
                    yield number * n_seats + seat

    def records(self, unit: int) -> tuple[int, ...]:
        """Return the numbers of the verdicts that a unit leaves in the journal."""
        number, seat = divmod(unit, self._bench.n_seats)
        return tuple(self._docket.place(one, seat) for one in self._docket.batches[number])

    def length(self, unit: int) -> int:
        """Return how long the answers of a unit are, in bytes."""
        number = unit // self._bench.n_seats
        return sum(map(self._answers.length, self._docket.batches[number]))

    async def close(self) -> None:
        """Nothing to close."""

    async def do(self, spec: ModelSpec, unit: int) -> None:
        """Ask a judge about one batch; nothing is left behind where the budget forbids the call."""
        number, seat = divmod(unit, self._bench.n_seats)
        batch = self._docket.batches[number]
        await self._judge(spec, seat, [self._answers.trial(one) for one in batch], batch)

    async def _judge(
        self, spec: ModelSpec, seat: int, trials: list[dict[str, Any]], numbers: Sequence[int]
    ) -> None:
        judge = self._bench.judges[trials[0]["domain"]]
        seen = [self._answers.case(trial) for trial in trials]
        cases = [case for case, _ in seen]
        prompts: list[Prompt] = []
        replies: list[Reply] = []
        try:
            step = judge.step(cases, [])
            while isinstance(step, Prompt):
                columns = {"item": trials[0]["item"], "judged": trials[0]["model"]}
                attempt = sum(p.encoded == step.encoded for p in prompts)
                reply = await self._asker.ask(spec, step, columns, attempt=attempt)
                if reply is None:
                    return
                prompts.append(step)
                replies.append(reply)
                step = judge.step(cases, [r.completion for r in replies])
        except Exception as error:  # noqa: BLE001 -- as for trials: a verdict fails, the run goes on
            for trial in trials:
                reason = self._asker.tally.fail(spec.id, error)
                record = failed_verdict(trial, spec, seat, reason)
                self._journal.append(None, canonical(record), b"null", {"seconds": 0.0})
                self._progress.advance(spec.id, trial["domain"], "failed")
            return
        seconds = round(sum(r.completion.seconds for r in replies), 6)
        asked: dict[str, Any] = {
            "rubric": judge.id,
            "prompt_sha256": [sha256_hex(p.encoded) for p in prompts],
            "responses": [r.key for r in replies],
            "replies": [r.completion.text for r in replies],
            "seconds": [r.completion.seconds for r in replies],
        }
        if judge.alternatives:
            asked["logprobs"] = [r.completion.logprobs for r in replies]
            asked["alternatives"] = [near_digits(r.completion) for r in replies]
        if len(trials) > 1:
            asked |= {"batch": [[t[k] for k in TRIAL_KEY] for t in trials]}
        for number, trial, (case, shown), verdict in zip(
            numbers, trials, seen, step, strict=True
        ):
            record = _key(trial, spec, seat) | asked | verdict_fields(verdict)
            record |= {"masked": shown.masked, "cut": shown.cut}
            record["score"] = judge.score(case.item, verdict)
            place = self._docket.place(number, seat)
            self._journal.append(place, canonical(record), b"null", {"seconds": seconds})
            self._progress.advance(spec.id, trial["domain"], record["outcome"])


@dataclass(frozen=True)
class PortableVerdicts:
    """What another process needs to give verdicts of a docket: judges are made anew from what the run remembers."""

    task: Task
    name: str
    numbers: Sequence[int]
    known: "tuple[array[int], array[int]]"
    seats: Mapping[str, tuple[ModelSpec, ...]]
    seed: int
    majority: Mapping[str, str] = field(default_factory=dict)  # no baseline judges

    @classmethod
    def of(cls, docket: Docket) -> "PortableVerdicts":
        """Return a docket as it travels."""
        answers, bench = docket.answers, docket.bench
        numbers = array("Q", docket.numbers)
        return cls(answers.task, docket.name, numbers, answers.known, bench.seats, bench.seed)

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""
        return {spec.id: spec for seats in self.seats.values() for spec in seats}

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Return nothing: judges call no tools."""
        return ()

    def open(
        self,
        run: Path,
        asker: Asker,
        journal: Writing,
        progress: Progress,
        secrets: Mapping[str, str],
    ) -> Judging:
        """Return the stage."""
        found = Run(run)
        judges = judges_of(self.task, found.manifest)
        items = RunItems(run, found.manifest["domains"])
        answers = Answers(found, items, self.task, self.known)
        judges = auditors(judges) if self.name == AUDIT else judges
        bench = Bench(judges=judges, seats=self.seats, seed=self.seed)
        docket = Docket(name=self.name, answers=answers, numbers=self.numbers, bench=bench)
        return Judging(docket, asker, journal, progress)


class Batches(Sequence[Sequence[int]]):
    """The answers of a docket in batches, in one seeded order over all models: two arrays, whatever their number.

    A batch holds answers of one domain and language, since it has one prompt.
    """

    def __init__(self, docket: Docket) -> None:
        answers, bench = docket.answers, docket.bench
        order = array("Q", docket.numbers)
        random.Random(f"{bench.seed}\x1fjudges").shuffle(order)
        self._numbers, self._ends = array("Q"), array("Q")
        if all(judge.batch == 1 for judge in bench.judges.values()):
            self._numbers, self._ends = order, array("Q", range(1, len(order) + 1))
            return
        gathered: dict[tuple[Any, ...], list[int]] = {}
        for number in order:
            trial = answers.trial(number)
            size = bench.judges[trial["domain"]].batch
            if size == 1:
                self._add([number])
                continue
            item = answers.items.get(trial["domain"], trial["item"])
            alike = gathered.setdefault(alike_key(item), [])
            alike.append(number)
            if len(alike) == size:
                self._add(alike)
                alike.clear()
        for rest in gathered.values():
            self._add(rest)

    def _add(self, batch: Sequence[int]) -> None:
        if batch:
            self._numbers.extend(batch)
            self._ends.append(len(self._numbers))

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> Sequence[int]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sequence[int]]: ...
    def __getitem__(self, at: int | slice) -> Sequence[int] | Sequence[Sequence[int]]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._numbers[self._ends[at - 1] if at else 0 : self._ends[at]]


def alike_key(item: Item) -> tuple[Any, ...]:
    """Return what items of one batch must share: it has one prompt, and one reply is on all of it.

    So a reply on a synthetic item, which stays private, never stands beside one on a public item.
    """
    return (item.domain, item.language, bool(item.path), item.kind)


def reread(answers: Answers, judge: Judge, stored: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the stored replies of a verdict say today; None if more would be asked."""
    if stored.get("given"):  # it came with an import, without replies: only the score follows
        told = stored["outcome"] == "valid"
        verdict = Verdict(valid=told, reason=stored["reason"], body=stored["body"])
        number = answers.numbers[tuple(stored[k] for k in TRIAL_KEY)]
        case = answers.case(answers.trial(number))[0]
        if not judge.fits(case, verdict):
            return None
        return verdict_fields(verdict) | {"score": judge.score(case.item, verdict)}
    own = [stored[k] for k in TRIAL_KEY]
    batch = stored.get("batch", [own])
    trials = [answers.trial(answers.numbers[tuple(key)]) for key in batch]
    cases = [answers.case(trial)[0] for trial in trials]
    verdicts = judge.step(cases, list(_heard(stored)))
    if isinstance(verdicts, Prompt):
        return None
    at = batch.index(own)
    return verdict_fields(verdicts[at]) | {"score": judge.score(cases[at].item, verdicts[at])}


def near_digits(completion: Completion) -> list[tuple[Likely, ...]] | None:
    """Return the candidates at tokens with a digit and at those behind them: where scores are.

    The others, most of a reply, are left empty; a run would grow tenfold by them.
    """
    if completion.alternatives is None:
        return None
    digits = [any(map(str.isdigit, token)) for token, _ in completion.logprobs or ()]
    kept = (here or before for here, before in zip(digits, [False, *digits], strict=False))
    return [
        top if keep else () for top, keep in zip(completion.alternatives, kept, strict=False)
    ]


def _heard(stored: Mapping[str, Any]) -> Iterator[Completion]:
    """Yield the replies of a stored verdict as far as a judge reads them."""
    nothing = [None] * len(stored["replies"])
    likely = [stored.get(name, nothing) for name in ("logprobs", "alternatives")]
    for text, logprobs, alternatives in zip(stored["replies"], *likely, strict=True):
        plain = {"text": text, "logprobs": logprobs, "alternatives": alternatives}
        yield msgspec.convert(plain, Completion)


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """Return what a verdict adds to its record."""
    return {
        "outcome": "valid" if verdict.valid else "invalid",
        "reason": verdict.reason,
        "repaired": verdict.repaired,
        "unsupported_quotes": verdict.unsupported_quotes,
        "body": dict(verdict.body),
    }


def failed_verdict(
    trial: Mapping[str, Any],
    spec: ModelSpec,
    seat: int,
    reason: str = "no verdict; sealed with --accept-failures",
) -> dict[str, Any]:
    """Return the record of a verdict that never came: the judge's failure, unknown."""
    return _key(trial, spec, seat) | {
        "outcome": "failed",
        "reason": reason[:300],
        "score": None,
    }


def _key(trial: Mapping[str, Any], spec: ModelSpec, seat: int) -> dict[str, Any]:
    return {
        "schema_version": 1,
        **{k: trial[k] for k in TRIAL_KEY},
        "judge": spec.id,
        "seat": seat,
    }
