"""What is to be judged: the open answers of a run, in batches that are the same after a resume.

A verdict is a number: trial × seat. Batches are cut from one seeded order of all answers, so that
models follow each other in no order a judge could learn.
"""

import math
import os
import random
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import msgspec
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.records.item import Item
from medassay.core.records.sealed_object import JournalObject, place_of
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial, TrialKey
from medassay.core.records.verdict import Case, Grader
from medassay.judging.assignment import JudgeAssignment
from medassay.judging.sanitize import SanitizedAnswer, sanitize_answer, speaker_pattern
from medassay.storage.journal import VERDICTS, Journal
from medassay.storage.records import decode_trial
from medassay.storage.run import SPOT_CHECK, Run

SPOT_CHECK_SHARE = 0.05  # of the answers that judges take in batches, judged once more singly


def must_judge(task: Task, trial: Trial, items: RunItems) -> bool:
    """Return whether a trial's score is the judges' to give."""
    return (
        bool(task.graders)
        and trial.outcome == "answered"
        and items.form(trial.domain, trial.item) in task.graders
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
        numbers: "tuple[array[int], array[int]] | None" = None,
    ) -> None:
        self.task = task
        self._file = os.open(run.path / "trials.jsonl", os.O_RDONLY)
        self.run = run
        entries = [*run.manifest.models.values(), *run.manifest.judges]
        self._speaker = speaker_pattern({n for e in entries for n in (e.id, e.model)})
        self.items = items
        if numbers is not None:  # found by another process
            self._starts, self.open = numbers
            return
        self._starts = array("Q", [0])
        self.open = array("Q")  # numbers of the trials that judges decide on
        self.attempts: dict[int, int] = {}  # number → attempt, of answers that were asked for again
        with (run.path / "trials.jsonl").open("rb") as lines:
            for number, line in enumerate(lines):
                self._starts.append(self._starts[-1] + len(line))
                trial = decode_trial(line, "trials.jsonl", number + 1)
                if must_judge(task, trial, items):
                    self.open.append(number)
                    if trial.attempt:
                        self.attempts[number] = trial.attempt

    def __del__(self) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def known(self) -> "tuple[array[int], array[int]]":
        """Return where the trials begin and which are open: what another process need not find
        again.
        """
        return self._starts, self.open

    def trial(self, number: int) -> Trial:
        """Return one trial."""
        start = self._starts[number]
        line = os.pread(self._file, self._starts[number + 1] - start, start)
        return decode_trial(line, "trials.jsonl", number + 1)

    def length(self, number: int) -> int:
        """Return how long one trial record is, in bytes."""
        return self._starts[number + 1] - self._starts[number]

    @cached_property
    def numbers(self) -> dict[TrialKey, int]:
        """Return trial key → number, of the trials that need judges."""
        return {self.trial(n).place: n for n in self.open}

    def case(self, trial: Trial) -> tuple[Case, SanitizedAnswer]:
        """Return what a judge is shown of a trial."""
        sanitized = sanitize_answer(trial.value or "", self._speaker)
        item = self.items.get(trial.domain, trial.item)
        return Case(item=item, text=sanitized.text, template=trial.template), sanitized


class JudgingQueue(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is judged in one pass: which answers (numbers of trials, ascending), and by whom.

    `name` is that of its journal and, with `.jsonl`, of its file in the run.
    """

    name: str
    answers: Answers
    numbers: Sequence[int]
    assignment: JudgeAssignment

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

    def verdict_number(self, number: int, seat: int) -> int:
        """Return the number of a verdict."""
        return number * self.assignment.n_seats + seat

    def number_of(self, record: JournalObject) -> int | None:
        """Return the number of a stored verdict, None if it is not wanted."""
        number = self.answers.numbers.get(place_of(record))
        seats = self.assignment.seats.get(record["model"], ())
        seat = int(record["seat"])
        if number not in self.wanted or not 0 <= seat < len(seats):
            return None
        if record.get("of_attempt", 0) != self.answers.attempts.get(number, 0):
            return None  # of an answer that was asked for again since
        return self.verdict_number(number, seat) if seats[seat].id == record["judge"] else None

    def sizes(self, journal: Journal) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        """Return how many verdicts there are to give, and are given, by judge and domain."""
        sizes: Counter[tuple[str, str]] = Counter()
        done: Counter[tuple[str, str]] = Counter()
        for number in self.numbers:
            trial = self.answers.trial(number)
            for seat, spec in enumerate(self.assignment.seats[trial.model]):
                key = (spec.id, trial.domain)
                sizes[key] += 1
                done[key] += journal.is_done(self.verdict_number(number, seat))
        return sizes, done


def queues(answers: Answers, assignment: JudgeAssignment) -> Iterator[JudgingQueue]:
    """Yield what is to be judged: all open answers, then what is judged once more.

    Where judges take answers in batches, a seeded sample of them is judged again, one by one.
    """
    yield JudgingQueue(name=VERDICTS, answers=answers, numbers=answers.open, assignment=assignment)
    check_graders = spot_check_graders(assignment.graders)
    if check_graders:
        numbers = spot_check_sample(answers.open, assignment.seed)
        again = replace(assignment, graders=check_graders)
        yield JudgingQueue(name=SPOT_CHECK, answers=answers, numbers=numbers, assignment=again)


def spot_check_graders(graders: Mapping[str, Grader]) -> dict[str, Grader]:
    """Return what judges a sample again, by domain; empty if no judge takes answers in batches."""
    return {d: grader.spot_check for d, grader in graders.items() if grader.spot_check is not None}


def spot_check_sample(numbers: Sequence[int], seed: int) -> list[int]:
    """Return the seeded sample of answers that are judged again, ascending."""
    size = math.ceil(SPOT_CHECK_SHARE * len(numbers))
    return sorted(random.Random(f"{seed}\x1faudit").sample(numbers, size))


class Batches(Sequence[Sequence[int]]):
    """The answers of a queue in batches, in one seeded order over all models: two arrays, whatever
    their number.

    A batch holds answers of one domain and language, since it has one prompt.
    """

    def __init__(self, queue: JudgingQueue) -> None:
        answers, assignment = queue.answers, queue.assignment
        order = array("Q", queue.numbers)
        random.Random(f"{assignment.seed}\x1fjudges").shuffle(order)
        self._numbers, self._ends = array("Q"), array("Q")
        if all(judge.batch == 1 for judge in assignment.graders.values()):
            self._numbers, self._ends = order, array("Q", range(1, len(order) + 1))
            return
        gathered: dict[tuple[Any, ...], list[int]] = {}
        for number in order:
            trial = answers.trial(number)
            size = assignment.graders[trial.domain].batch
            if size == 1:
                self._add([number])
                continue
            item = answers.items.get(trial.domain, trial.item)
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
            return [self[position] for position in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._numbers[self._ends[at - 1] if at else 0 : self._ends[at]]


def alike_key(item: Item) -> tuple[str, str, bool, str]:
    """Return what items of one batch must share: it has one prompt, and one reply is on all of it.

    So a reply on a synthetic item, which stays private, never stands beside one on a public item.
    """
    return (item.domain, item.language, bool(item.path), item.kind)
