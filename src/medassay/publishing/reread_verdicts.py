"""Recomputing judged scores: the stored replies are read again, and the scores follow from them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.records.sealed_object import ScoreObject, VerdictObject
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import Grader, StoredVerdict
from medassay.judging.grader_text import hashed_id
from medassay.judging.judgements import judged_score
from medassay.judging.queue import Answers, spot_check_graders, spot_check_sample
from medassay.kinds.graders import graders_of
from medassay.publishing.report import Mismatch
from medassay.publishing.tombstone import read_tombstones
from medassay.runner.judge_stage import reread
from medassay.storage.records import read_stored_verdicts
from medassay.storage.run import SPOT_CHECK, Run


class VerdictReader:
    """Reads the verdicts of a run beside its trials, in the same order."""

    def __init__(self, run: Run, items: RunItems, task: Task) -> None:
        self._bench = run.manifest.bench or {}
        self._answers = Answers(run, items, task)
        manifest = run.manifest
        self._graders = graders_of(task, run.manifest)
        self._imported = {judge.id for judge in manifest.judges if judge.provider == "import"}
        self._deleted = read_tombstones(run.path).items | {
            (item.domain, item.item) for item in manifest.deleted_items
        }
        lines = read_stored_verdicts(run.path / "verdicts.jsonl")
        self._said = _by_trial(line for line in lines if line[0].tombstone is None)
        self._rubrics = manifest.rubrics
        self.other: str | None = None  # by what else than this code judges, verdicts were read

    @property
    def graders(self) -> list[Grader]:
        """Return the graders of the domains, as this code makes them."""
        return list(self._graders.values())

    def compare(self, other: str | None, *, this_code: bool) -> None:
        """Compare the graders of the run with those of this code.

        `other` are parts whose revisions differ.

        Raises
        ------
        Mismatch
            When revisions are the same and graders are not, or this very commit made the run.
        """
        manifest = self._answers.run.manifest
        if manifest.revisions is not None:
            same = {domain: grader.id for domain, grader in self._graders.items()} == self._rubrics
            prompts = {domain: list(grader.prompts) for domain, grader in self._graders.items()}
            if other is None and same and prompts != manifest.judge_prompts:
                other = "other prompts"
        else:
            same = {
                domain: hashed_id(grader) for domain, grader in self._graders.items()
            } == self._rubrics
            other = other if same else "other code"
        if (other is None or this_code) and not same:
            raise Mismatch("manifest.json: 'rubrics' are not those that this code judges by")
        self.other = other

    def score(self, trial: Trial, parts: Mapping[str, Any]) -> ScoreObject:
        """Return the score record of a trial as its verdicts give it.

        `parts` are those of the record without them.

        Raises
        ------
        Mismatch
            When a verdict is absent, given by another judge, or not what its replies say.
        """
        where = f"verdicts.jsonl: item '{trial.item}' of '{trial.model}'"
        lines = next(self._said, [])
        verdicts = [verdict for verdict, _ in lines]
        seats = self._bench[trial.model]
        if [(v.place, v.judge) for v in verdicts] != [(trial.place, name) for name in seats]:
            raise Mismatch(f"{where}: not one verdict of each judge in its place")
        grader = self._graders[trial.domain]
        for verdict, document in lines:
            if verdict.outcome == "failed":
                continue
            # A run that was begun before there were revisions names its grader in two ways.
            if verdict.rubric not in (self._rubrics[trial.domain], grader.id):
                raise Mismatch(f"{where}: judged by a rubric that the manifest does not name")
            self._reread(grader, verdict, document, where)
        item = self._answers.items.get(trial.domain, trial.item)
        return judged_score(trial.place, parts, item, verdicts, grader, len(seats))

    def check_end(self) -> None:
        """Check that no verdict is left when all trials are scored: agreement counts each line.

        Raises
        ------
        Mismatch
            Naming the answer of the first that is left.
        """
        if lines := next(self._said, None):
            first = lines[0][0]
            raise Mismatch(
                f"verdicts.jsonl: item '{first.item}' of '{first.model}': verdicts on an answer"
                " that no judge was to be asked about"
            )

    def check_spot_check(self) -> None:
        """Check the verdicts that were given a second time, singly: which, by whom, and what.

        Raises
        ------
        Mismatch
            As `score` does.
        """
        answers, run = self._answers, self._answers.run
        present = (run.path / f"{SPOT_CHECK}.jsonl").exists()
        if present != run.manifest.audited:
            state = "not there" if not present else "there, and the manifest knows of none"
            raise Mismatch(f"{SPOT_CHECK}.jsonl: {state}")
        if not present:
            return
        readers = spot_check_graders(self._graders)
        numbers = iter(spot_check_sample(answers.open, int(run.manifest.plan.seed)))
        for lines in _by_trial(read_stored_verdicts(run.path / f"{SPOT_CHECK}.jsonl")):
            first = lines[0][0]
            where = f"{SPOT_CHECK}.jsonl: item '{first.item}' of '{first.model}'"
            number = next(numbers, None)
            trial = None if number is None else answers.trial(number)
            judges = [verdict.judge for verdict, _ in lines]
            place = None if trial is None else trial.place
            if trial is None or first.place != place or self._bench.get(trial.model) != judges:
                raise Mismatch(f"{where}: not the sample that the seed draws")
            for verdict, document in lines:
                if verdict.outcome != "failed":
                    self._reread(readers[trial.domain], verdict, document, where)
        if next(numbers, None) is not None:
            raise Mismatch(f"{SPOT_CHECK}.jsonl: not the whole sample that the seed draws")

    def _reread(
        self, grader: Grader, stored: StoredVerdict, document: VerdictObject, where: str
    ) -> None:
        # A verdict on several answers, one of them deleted since, cannot be read again.
        together = any((place[0], place[4]) in self._deleted for place in stored.batch)
        if stored.given and stored.judge not in self._imported and not together:
            raise Mismatch(
                f"{where}, judge '{stored.judge}': given, by a judge that was not imported"
            )
        if together:
            stored = msgspec.structs.replace(stored, given=True)
        expected = reread(self._answers, grader, stored)
        if expected is None:
            what = "not of this answer" if stored.given else "replies are missing"
            raise Mismatch(f"{where}, judge '{stored.judge}': {what}")
        for name, value in json.loads(canonical(expected)).items():
            if name not in document or document.get(name) != value:
                raise Mismatch(f"{where}, judge '{stored.judge}': {name} is not what was said")


_Line = tuple[StoredVerdict, VerdictObject]


def _by_trial(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Yield the verdicts of each trial, which stand one after the other, with their lines."""
    for _, group in groupby(lines, key=lambda line: line[0].place):
        yield list(group)
