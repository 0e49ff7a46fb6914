"""HEAD-QA, Spanish health exams, in Spanish and English. Verified on data."""

from functools import partial
from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, find_file, read_document, whole_number
from medassay.core.records.item import Bank
from medassay.errors import InputError


class _HeadQaOption(msgspec.Struct):
    aid: Cell
    atext: Cell


class _HeadQaQuestion(msgspec.Struct):
    qid: Cell
    qtext: Cell
    ra: Cell
    answers: list[_HeadQaOption]
    image: Cell = None


class _Exam(msgspec.Struct):
    data: list[_HeadQaQuestion]
    category: Cell = None
    year: Cell = None


class _Exams(msgspec.Struct):
    exams: dict[str, _Exam]
    language: str | None = None


def _load(root: Path, language: str, folder: str) -> Bank:
    """Return a test set; the English one is machine-translated."""
    draft = BankBuilder(
        f"headqa_{language}",
        licence="MIT",
        source="HEAD-QA, exams of the Spanish Ministry of Health",
        title=f"HEAD-QA ({language})",
        limits="The English text is machine-translated." if language == "en" else "",
    )
    path = find_file(root, f"test_{folder}.json", f"{folder}/test_{folder}.json")
    document = read_document(path, _Exams)
    if (document.language or language) != language:
        raise InputError(
            f"{path.name}: its language is '{document.language}', expected '{language}'"
        )
    for name, exam in document.exams.items():
        for question in exam.data:
            if question.image:
                draft.drop("needs a picture")
                continue
            numbers = [whole_number(answer.aid) for answer in question.answers]
            right = whole_number(question.ra)
            draft.choice(
                f"headqa-{language}-{name}-{question.qid}",
                question.qtext,
                [answer.atext for answer in question.answers],
                numbers.index(right) if right in numbers else None,
                domain=str(exam.category or "exam"),
                language=language,
                year=whole_number(exam.year),
            )
    return draft.bank()


load_en = partial(_load, language="en", folder="HEAD_EN")
load_es = partial(_load, language="es", folder="HEAD")
