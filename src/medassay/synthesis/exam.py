"""Exam items: official questions as they are, and as open questions that two models agree on.

Open: questions that ask for what is wrong are left out; two prompts rephrase each; another model chooses the better version or
none; in a second iteration it keeps only questions whose key is the only right answer; people vote (`bank votes`).

Source: specification of bank synthesis, 10.4 (CareQA).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medassay.bank.near import plain
from medassay.core.canonical import sha256_hex
from medassay.core.item import LETTERS
from medassay.core.json_reply import read_json_reply
from medassay.errors import InputError
from medassay.judge.shown import fence
from medassay.synthesis.author import Author
from medassay.synthesis.exam_paper import (
    NEGATIVE,
    ExamQuestion,
    asks_for_wrong,
    read_exam_table,
    read_exam_text,
    read_keys,
)
from medassay.synthesis.items import note_items
from medassay.synthesis.jobs import Job, Stage, value_of
from medassay.synthesis.plan import Exam, SynthesisPlan
from medassay.synthesis.question import checked_text
from medassay.synthesis.source import read_source
from medassay.synthesis.workshop import BY_PROGRAM, Place, Step, Workshop, basis_of

_VERSIONS = ("direct", "answer_first")
_LONGEST = 6000


class ExamMaker:
    """Makes the items of an exam; see `synthesis.jobs.Maker`."""

    def __init__(
        self, plan: SynthesisPlan, base: Path, workshop: Workshop, authors: Mapping[str, Author]
    ) -> None:
        wanted = plan.exam
        if wanted is None:
            raise InputError("a plan without the table [exam]")
        if wanted.open_versions and plan.language != "en":
            raise InputError(
                f"open versions of questions in '{plan.language}': what asks for wrong answers is told in English only; "
                "make a [translation] to en first"
            )
        self._plan = plan
        self._wanted: Exam = wanted
        self._base = base
        self._workshop = workshop
        self._authors = authors
        self._questions: dict[str, ExamQuestion] = {}
        self._cited = ""
        self._jobs: dict[str, Job] = {}

    def stages(self) -> Iterator[Stage]:
        """Yield rephrasings, choices, and the second iteration; closed items need nobody."""
        self._read()
        usable = [q for q in self._questions.values() if not q.dropped]
        asked = [
            q for q in usable if self._wanted.open_versions and not asks_for_wrong(q.question)
        ]
        if self._wanted.open_versions:
            for left_out in usable:
                if asks_for_wrong(left_out.question):
                    self._drop("rephrase", left_out.exam_id, NEGATIVE)
            yield "open versions", [self._rephrase_job(q, v) for q in asked for v in _VERSIONS]
            both = [q for q in asked if self._versions(q)]
            for q in asked:
                if q not in both and self._tried(q):
                    self._drop("rephrase", q.exam_id, "not convertible into an open question")
            yield "choices", [self._choice_job(q) for q in both]
            chosen = [q for q in both if self._chosen(q) is not None]
            for q in both:
                if self._answered("select", q) and self._chosen(q) is None:
                    self._drop("select", f"{q.exam_id}/none", "no open version is good")
            yield "second iteration", [self._only_job(q) for q in chosen]
            for q in chosen:
                if self._answered("only", q) and not self._is_only(q):
                    self._drop(
                        "only", f"{q.exam_id}/no", "the key is not the only right answer"
                    )
        note_items(self._workshop, self._records(usable))

    def _read(self) -> None:
        path = self._base / self._wanted.file
        if path.suffix.lower() == ".csv":
            if not path.is_file():
                raise InputError(f"{path}: no such file; 'exam.file' names a CSV or a PDF")
            self._cited = f"{path.name} (sha256 {sha256_hex(path.read_bytes())[:16]})"
            found = list(read_exam_table(path, self._wanted.columns))
        else:
            source = read_source(path, self._workshop.folder / "sources" / path.stem)
            self._cited = source.cited
            if not self._wanted.key:
                raise InputError(
                    f"{path}: an exam in a document needs its keys; 'exam.key' names a CSV with number, cop"
                )
            found = list(read_exam_text(source, read_keys(self._base / self._wanted.key)))
        basis = basis_of(self._cited)
        if self._workshop.done("source", path.stem, basis) is None:
            told = {
                "file": path.name,
                "cited": self._cited,
                "questions": len(found),
                "made": str(self._wanted.year or ""),
            }
            self._workshop.note(
                "source", path.stem, "made", basis=basis, by=BY_PROGRAM, result=told
            )
        for question in found:
            self._note_question(path.stem, question)

    def _note_question(self, source: str, question: ExamQuestion) -> None:
        name = question.exam_id
        self._questions[name] = question
        basis = basis_of(asdict(question))
        if self._workshop.done("question", name, basis) is None:
            self._workshop.note(
                "question",
                name,
                "dropped" if question.dropped else "made",
                basis=basis,
                by=BY_PROGRAM,
                sources=[("source", source)],
                result=asdict(question),
                note=question.dropped,
            )

    def _drop(self, step: Step, subject: str, why: str) -> None:
        basis = basis_of(why)
        if self._workshop.done(step, subject, basis) is None:
            places: list[Place] = [("question", subject.partition("/")[0])]
            self._workshop.note(
                step, subject, "dropped", basis=basis, by=BY_PROGRAM, sources=places, note=why
            )

    def _told(self, question: ExamQuestion, *, options: bool = True) -> str:
        assert question.cop is not None
        lines = [f"Question: {question.question}"]
        if options:
            lines += [f"{LETTERS[at]}. {text}" for at, text in enumerate(question.options)]
        lines.append(f"Answer: {question.options[question.cop - 1]}")
        return fence("\n".join(lines), "item")

    def _rephrase_job(self, question: ExamQuestion, version: str) -> Job:
        answer = self._answer(question)

        def read(reply: str) -> Any:
            found = read_json_reply(reply)
            if not isinstance(found.value, dict) or "convertible" not in found.value:
                raise ValueError(found.reason or "expected one JSON object with convertible")
            if found.value["convertible"] is False:
                return {"convertible": False}
            if found.value["convertible"] is not True:
                raise ValueError("convertible is neither true nor false")
            text = checked_text(found.value.get("question"), "question", _LONGEST)
            if (
                len(answer) >= 12
                and plain(answer) in plain(text)
                and plain(answer) not in plain(question.question)
            ):
                raise ValueError("the question contains its answer")
            return {"convertible": True, "question": text}

        return self._keep(
            Job(
                step="rephrase",
                subject=f"{question.exam_id}/{version}",
                author=self._authors[self._plan.generator],
                part=f"make_open_{version}",
                holes={"item": self._told(question), "code": self._plan.language},
                read=read,
                sources=[("question", question.exam_id)],
            )
        )

    def _keep(self, job: Job) -> Job:
        self._jobs[job.handle] = job
        return job

    def _answer(self, question: ExamQuestion) -> str:
        return question.options[(question.cop or 1) - 1]

    def _value(self, handle: str) -> Any:
        job = self._jobs.get(handle)
        return (
            None if job is None else value_of(self._workshop, job.step, job.subject, job.basis)
        )

    def _tried(self, question: ExamQuestion) -> bool:
        return all(
            self._value(f"rephrase:{question.exam_id}/{v}") is not None for v in _VERSIONS
        )

    def _versions(self, question: ExamQuestion) -> list[str]:
        """Return the open versions that there are, once both were tried."""
        if not self._tried(question):
            return []
        found = [self._value(f"rephrase:{question.exam_id}/{v}") for v in _VERSIONS]
        return [one["question"] for one in found if one["convertible"]]

    def _choice_job(self, question: ExamQuestion) -> Job:
        versions = self._versions(question)
        told = "\n".join(f"{at}. {text}" for at, text in enumerate(versions, 1))

        def read(reply: str) -> Any:
            found = read_json_reply(reply)
            value = found.value
            if not isinstance(value, dict) or type(value.get("choice")) is not int:
                raise ValueError(
                    found.reason or "expected one JSON object with choice, 0, 1 or 2"
                )
            if not 0 <= value["choice"] <= len(versions):
                raise ValueError(f"choice {value['choice']}; expected 0 to {len(versions)}")
            return {"choice": value["choice"], "reason": str(value.get("reason", ""))[:2000]}

        return self._keep(
            Job(
                step="select",
                subject=question.exam_id,
                author=self._authors[self._wanted.selector],
                part="make_choice",
                holes={"item": self._told(question), "versions": fence(told, "versions")},
                read=read,
                sources=[("rephrase", f"{question.exam_id}/{v}") for v in _VERSIONS],
            )
        )

    def _answered(self, step: str, question: ExamQuestion) -> bool:
        return self._value(f"{step}:{question.exam_id}") is not None

    def _chosen(self, question: ExamQuestion) -> str | None:
        found = self._value(f"select:{question.exam_id}")
        return (
            None
            if not found or not found["choice"]
            else self._versions(question)[found["choice"] - 1]
        )

    def _only_job(self, question: ExamQuestion) -> Job:
        def read(reply: str) -> Any:
            found = read_json_reply(reply)
            value = found.value
            if not isinstance(value, dict) or type(value.get("only")) is not bool:
                raise ValueError(
                    found.reason or "expected one JSON object with only, true or false"
                )
            others = value.get("other", [])
            if not isinstance(others, list) or (value["only"] and others):
                raise ValueError(
                    "other right answers beside an only one; expected one or the other"
                )
            return {"only": value["only"], "other": [str(one)[:500] for one in others][:20]}

        told = f"Question: {self._chosen(question)}\nAnswer: {self._answer(question)}"
        return self._keep(
            Job(
                step="only",
                subject=question.exam_id,
                author=self._authors[self._wanted.selector],
                part="make_only_answer",
                holes={"item": fence(told, "item")},
                read=read,
                sources=[("select", question.exam_id)],
            )
        )

    def _is_only(self, question: ExamQuestion) -> bool:
        found = self._value(f"only:{question.exam_id}")
        return found is not None and bool(found["only"])

    def _records(
        self, usable: Sequence[ExamQuestion]
    ) -> Iterator[tuple[dict[str, Any], Sequence[Place]]]:
        for question in usable:
            common = self._common(question)
            yield (
                {
                    "id": question.exam_id,
                    "answer_type": "closed",
                    "question": question.question,
                    "options": list(question.options),
                    "expected": LETTERS[(question.cop or 1) - 1],
                    **common,
                },
                [("question", question.exam_id)],
            )
            chosen = self._chosen(question)
            if chosen is not None and self._is_only(question):
                generator = self._authors[self._plan.generator].spec
                yield (
                    {
                        "id": f"{question.exam_id}-open",
                        "answer_type": "open",
                        "question": chosen,
                        "reference": self._answer(question),
                        **common,
                        "meta": {
                            "maker": "exam",
                            "generator": generator.id,
                            "family": generator.family,
                        },
                    },
                    [
                        ("only", question.exam_id),
                        ("select", question.exam_id),
                        ("question", question.exam_id),
                    ],
                )

    def _common(self, question: ExamQuestion) -> dict[str, Any]:
        category = question.category or self._wanted.category
        year = question.year or self._wanted.year
        return {
            "kind": "public",
            "domain": category or self._plan.name,
            "language": self._plan.language,
            "licence": self._plan.licence,
            "source": self._cited,
            "cluster": question.exam_id,
            **({"category": category} if category else {}),
            **({"year": year} if year else {}),
        }
