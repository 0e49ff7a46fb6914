"""HEAD-QA, Spanish health exams, in Spanish and English. Verified on data."""

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


def load_en(root: Path) -> Bank:
    """Return the English (machine-translated) test set."""
    return _load(root, "en", "test_HEAD_EN.json", "HEAD_EN/test_HEAD_EN.json")


def load_es(root: Path) -> Bank:
    """Return the Spanish test set."""
    return _load(root, "es", "test_HEAD.json", "HEAD/test_HEAD.json")


def _load(root: Path, language: str, *names: str) -> Bank:
    draft = BankBuilder(
        f"headqa_{language}",
        licence="MIT",
        source="HEAD-QA, exams of the Spanish Ministry of Health",
        title=f"HEAD-QA ({language})",
        limits="The English text is machine-translated." if language == "en" else "",
    )
    path = find_file(root, *names)
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
