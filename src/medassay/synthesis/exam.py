"""Exam items: official questions as they are, and as open questions that two models agree on.

Open: questions that ask for what is wrong are left out; two prompts rephrase each; another model
chooses the better version or none; in a second iteration it keeps only questions whose key is the
only right answer; people vote (`bank votes`).

Source: specification of bank synthesis, 10.4 (CareQA).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError
from medassay.judging.sanitize import delimit
from medassay.synthesis.author import Author
from medassay.synthesis.exam_paper import (
    NEGATIVE,
    ExamQuestion,
    asks_for_wrong,
    read_exam_table,
    read_exam_text,
    read_keys,
)
from medassay.synthesis.plan import Exam, SynthesisPlan
from medassay.synthesis.project import Event, Place, Step, Workshop, basis_of
from medassay.synthesis.question import checked_text, contains, reply_record
from medassay.synthesis.records import OnlyAnswer, OpenVersion, VersionChoice
from medassay.synthesis.source import read_source
from medassay.synthesis.steps import Stage, SynthesisStep, decision_on, event_of, register, value_of

_VERSIONS = ("direct", "answer_first")
_LONGEST = 6000


class ExamMaker:
    """Makes the items of an exam; see `synthesis.jobs.Maker`."""

    def __init__(
        self, plan: SynthesisPlan, base: Path, workshop: Workshop, authors: Mapping[str, Author]
    ) -> None:
        exam_plan = plan.exam
        if exam_plan is None:
            raise InputError("a plan without the table [exam]")
        if exam_plan.open_versions and plan.language != "en":
            raise InputError(
                f"open versions of questions in '{plan.language}': what asks for wrong answers is"
                " told in English only; make a [translation] to en first"
            )
        self._plan = plan
        self._exam_plan: Exam = exam_plan
        self._base = base
        self._workshop = workshop
        self._authors = authors
        self._questions: dict[str, ExamQuestion] = {}
        self._cited = ""
        self._jobs: dict[str, SynthesisStep] = {}
        self.ended: list[Event] = []

    def stages(self) -> Iterator[Stage]:
        """Yield rephrasings, choices, and the second iteration; closed items need nobody."""
        self._read()
        if not self._exam_plan.open_versions:
            return
        asked_questions = []
        for question in self._usable:
            if asks_for_wrong(question.question):
                self._drop("rephrase", question, NEGATIVE)
            else:
                asked_questions.append(question)
        rephrasings = (self._rephrase_job(q, v) for q in asked_questions for v in _VERSIONS)
        yield "open versions", register(rephrasings, self._jobs)
        tried = [q for q in asked_questions if all(self._has_ended(q, v) for v in _VERSIONS)]
        for question in tried:
            if not self._versions(question):
                self._drop("rephrase", question, "not convertible into an open question")
        several = [q for q in tried if self._versions(q)]
        yield "choices", register(map(self._choice_job, several), self._jobs)
        chosen = [q for q in several if self._chosen(q) is not None]
        for question in several:
            if self._choice(question) is not None and question not in chosen:
                self._drop("choice", question, "no open version is good")
        yield "second iteration", register(map(self._only_job, chosen), self._jobs)
        for question in chosen:
            if self._only(question) is not None and not self._is_only(question):
                self._drop("only", question, "the key is not the only right answer")

    @property
    def _usable(self) -> list[ExamQuestion]:
        return [question for question in self._questions.values() if not question.dropped]

    def _read(self) -> None:
        path = self._base / self._exam_plan.file
        if path.suffix.lower() == ".csv":
            if not path.is_file():
                raise InputError(f"{path}: no such file; 'exam.file' names a CSV or a PDF")
            self._cited = f"{path.name} (sha256 {sha256_hex(path.read_bytes())[:16]})"
            questions = list(read_exam_table(path, self._exam_plan.columns))
        else:
            source = read_source(path, self._workshop.folder / "sources" / path.stem)
            self._cited = source.cited
            if not self._exam_plan.key:
                raise InputError(
                    f"{path}: an exam in a document needs its keys; 'exam.key' names a CSV with"
                    " number, cop"
                )
            questions = list(read_exam_text(source, read_keys(self._base / self._exam_plan.key)))
        years = [self._exam_plan.year or question.year for question in questions]
        latest_year = str(max((year for year in years if year), default=""))
        record = {
            "file": path.name,
            "cited": self._cited,
            "questions": len(questions),
            "made": latest_year,
        }
        self._workshop.note_latest("source", path.stem, record)
        for question in questions:
            self._note_question(path.stem, question)

    def _note_question(self, source: str, question: ExamQuestion) -> None:
        name = question.exam_id
        self._questions[name] = question
        event = self._workshop.note_once(
            "exam",
            name,
            "dropped" if question.dropped else "made",
            basis=basis_of(question.to_dict()),
            sources=[("source", source)],
            result=question.to_dict(),
            note=question.dropped,
        )
        if question.dropped:
            self.ended.append(event)

    def _drop(self, step: Step, question: ExamQuestion, why: str) -> None:
        event = self._workshop.note_once(
            step,
            f"{question.exam_id}/ended",
            "dropped",
            basis=basis_of(why),
            sources=[("exam", question.exam_id)],
            note=why,
        )
        self.ended.append(event)

    def _item_text(self, question: ExamQuestion) -> str:
        option_lines = [f"{LETTERS[at]}. {text}" for at, text in enumerate(question.options)]
        lines = [f"Question: {question.question}", *option_lines, f"Answer: {question.right}"]
        return delimit("\n".join(lines), "item")

    def _rephrase_job(self, question: ExamQuestion, version: str) -> SynthesisStep:
        return SynthesisStep(
            step="rephrase",
            subject=f"{question.exam_id}/{version}",
            author=self._authors[self._plan.generator],
            part=f"make_open_{version}",
            holes={"item": self._item_text(question), "code": self._plan.language},
            read=lambda reply: read_version(reply, question),
            sources=[("exam", question.exam_id)],
        )

    def _version(self, question: ExamQuestion, version: str) -> OpenVersion | None:
        job = self._jobs.get(f"rephrase:{question.exam_id}/{version}")
        return value_of(self._workshop, job, OpenVersion)

    def _choice(self, question: ExamQuestion) -> VersionChoice | None:
        return value_of(self._workshop, self._jobs.get(f"choice:{question.exam_id}"), VersionChoice)

    def _only(self, question: ExamQuestion) -> OnlyAnswer | None:
        return value_of(self._workshop, self._jobs.get(f"only:{question.exam_id}"), OnlyAnswer)

    def _has_ended(self, question: ExamQuestion, version: str) -> bool:
        """Return whether a version was made, or a person has given it up."""
        job = self._jobs[f"rephrase:{question.exam_id}/{version}"]
        event = event_of(self._workshop, job)
        given_up = event is not None and event.status == "queued"
        return event is not None and not (given_up and decision_on(self._workshop, event) is None)

    def _versions(self, question: ExamQuestion) -> list[str]:
        versions = [self._version(question, version) for version in _VERSIONS]
        return [
            version.question
            for version in versions
            if version is not None and version.convertible and version.question
        ]

    def _choice_job(self, question: ExamQuestion) -> SynthesisStep:
        versions = self._versions(question)
        listing = "\n".join(f"{at}. {text}" for at, text in enumerate(versions, 1))
        return SynthesisStep(
            step="choice",
            subject=question.exam_id,
            author=self._authors[self._exam_plan.selector],
            part="make_choice",
            holes={"item": self._item_text(question), "versions": delimit(listing, "versions")},
            read=lambda reply: read_choice(reply, len(versions)),
            sources=[("rephrase", f"{question.exam_id}/{v}") for v in _VERSIONS],
        )

    def _chosen(self, question: ExamQuestion) -> str | None:
        choice = self._choice(question)
        versions = self._versions(question)
        return (
            versions[choice.choice - 1] if choice and 1 <= choice.choice <= len(versions) else None
        )

    def _only_job(self, question: ExamQuestion) -> SynthesisStep:
        prompt_text = f"Question: {self._chosen(question)}\nAnswer: {question.right}"
        return SynthesisStep(
            step="only",
            subject=question.exam_id,
            author=self._authors[self._exam_plan.selector],
            part="make_only_answer",
            holes={"item": delimit(prompt_text, "item")},
            read=read_only,
            sources=[("choice", question.exam_id)],
        )

    def _is_only(self, question: ExamQuestion) -> bool:
        verdict = self._only(question)
        return verdict is not None and verdict.only

    def records(self) -> Iterator[tuple[ItemObject, Sequence[Place]]]:
        """Yield each question as it is, and as an open one where two models agree on it."""
        for question in self._usable:
            name, item = question.exam_id, self._common(question)
            meta: dict[str, object] = {"maker": "exam", "question": name}
            closed = item.copy()
            closed.update(
                {
                    "answer_type": "closed",
                    "question": question.question,
                    "options": list(question.options),
                    "expected": LETTERS[question.options.index(question.right)],
                    "meta": meta,
                }
            )
            yield closed, [("exam", name)]
            chosen = self._chosen(question)
            if chosen is not None and self._is_only(question):
                generator = self._authors[self._plan.generator].spec
                item.update(
                    {
                        "id": f"{name}-open",
                        "answer_type": "open",
                        "question": chosen,
                        "reference": question.right,
                        "meta": meta | {"generator": generator.id, "family": generator.family},
                    }
                )
                places: list[Place] = [("only", name), ("choice", name), ("exam", name)]
                yield item, places

    def _common(self, question: ExamQuestion) -> ItemObject:
        category = question.category or self._exam_plan.category
        year = question.year or self._exam_plan.year
        item: ItemObject = {
            "id": question.exam_id,
            "kind": "public",
            "domain": category or self._plan.name,
            "language": self._plan.language,
            "licence": self._plan.licence,
            "source": self._cited,
            "cluster": question.exam_id,
        }
        if category:
            item |= {"category": category}
        if year:
            item |= {"year": year}
        return item


class _VersionReply(msgspec.Struct, frozen=True):
    convertible: Any
    question: Any = None


class _ChoiceReply(msgspec.Struct, frozen=True):
    choice: Any
    reason: Any = ""


class _OnlyReply(msgspec.Struct, frozen=True):
    only: Any
    other: Any = []


def read_version(reply: str, question: ExamQuestion | None = None) -> OpenVersion:
    """Return an open version of a question, or that there can be none.

    Raises
    ------
    ValueError
        Saying which rule is broken.
    """
    value = reply_record(reply, _VersionReply)
    if value.convertible is False:
        return OpenVersion(convertible=False)
    if value.convertible is not True:
        raise ValueError("convertible is neither true nor false")
    text = checked_text(value.question, "question", _LONGEST)
    is_own = question is not None and not contains(question.question, question.right)
    if question is not None and is_own and contains(text, question.right):
        raise ValueError("the question contains its answer")
    return OpenVersion(convertible=True, question=text)


def read_choice(reply: str, n_versions: int = len(_VERSIONS)) -> VersionChoice:
    """Return which of some versions is the better one, 0 for none.

    Anything else raises ValueError.
    """
    value = reply_record(reply, _ChoiceReply)
    if type(value.choice) is not int or not 0 <= value.choice <= n_versions:
        raise ValueError(f"choice {value.choice!r:.20}; expected a number from 0 to {n_versions}")
    return VersionChoice(choice=value.choice, reason=str(value.reason)[:2000])


def read_only(reply: str) -> OnlyAnswer:
    """Return whether a key is the only right answer, and what others are.

    Anything else raises ValueError.
    """
    value = reply_record(reply, _OnlyReply)
    others = value.other
    if type(value.only) is not bool or not isinstance(others, list) or (value.only and others):
        raise ValueError(
            "expected only, true or false, and other right answers exactly where it is false"
        )
    other = [str(text)[:500] for text in others][:20]
    return OnlyAnswer(only=value.only, other=other)
