"""MEDIQA 2019, task 3: consumers' questions with answers ranked by systems and graded by people.

Verified on data.

The published protocol takes the answer that the system ranked first, whatever people thought of it;
`load_best` takes the one that people ranked first.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from medassay.bank.builder import BankBuilder, find_file, whole_number
from medassay.core.records.item import Bank
from medassay.errors import InputError

_LEAST_GOOD = 3  # grades 3 and 4 count as correct, by the authors
Answer = tuple[int, int, int, str]  # system's rank, people's rank, grade, text


def _load(root: Path, name: str, *, by: int, who: str) -> Bank:
    """Return the questions with the answer that came first by a rank as reference."""
    path = find_file(root, "*Task3*Test*.xml", "*test*.xml", "*.xml")
    questions = list(_questions(path))
    chosen = [
        (number, question, min(answers, key=lambda answer: answer[by]))
        for number, question, answers in questions
        if answers
    ]
    wrong = sum(answer[2] < _LEAST_GOOD for _, _, answer in chosen)
    draft = BankBuilder(
        name,
        licence="unstated",
        source="MEDIQA 2019 task 3, question answering (Ben Abacha et al. 2019)",
        title=f"MEDIQA 2019, reference: ranked first by {who}",
        limits=(
            f"References were ranked first by {who}; people graded {wrong} of {len(chosen)} of them"
            " as not correct."
        ),
    )
    for _ in range(len(questions) - len(chosen)):
        draft.drop("no answer")
    for number, question_text, answer in chosen:
        draft.text(f"mediqa-{number}", question_text, answer[3])
    return draft.bank()


load = partial(_load, name="mediqa_qa2019", by=0, who="the system")  # as the published suite does
load_best = partial(_load, name="mediqa_qa2019_best", by=1, who="people")


def _questions(path: Path) -> Iterator[tuple[str, str, list[Answer]]]:
    """Yield id, text and answers of each question.

    A document type could define entities that explode; these files have none, so one is refused.
    """
    text = path.read_bytes()
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise InputError(f"{path.name}: holds a document type; expected plain elements")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"{path.name}: not readable as XML: {error}") from None
    elements = list(root.iter("Question"))
    if not elements:
        raise InputError(f"{path.name}: no element 'Question'; expected MEDIQA 2019 task 3")
    for question in elements:
        answers = [
            (
                whole_number(answer.get("SystemRank")) or 0,
                whole_number(answer.get("ReferenceRank")) or 0,
                whole_number(answer.get("ReferenceScore")) or 0,
                answer.findtext("AnswerText") or "",
            )
            for answer in question.iter("Answer")
        ]
        yield question.get("QID", ""), question.findtext("QuestionText") or "", answers
