"""PubMedQA, the expert-labelled thousand. Verified on data."""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, find_file, read_document, whole_number
from medassay.core.records.item import Bank

_ANSWERS = ["yes", "no", "maybe"]


class _Article(msgspec.Struct):
    question: Cell = msgspec.field(name="QUESTION")
    contexts: list[str] = msgspec.field(name="CONTEXTS")
    final_decision: Cell
    year: Cell = msgspec.field(name="YEAR", default=None)
    long_answer: Cell = msgspec.field(name="LONG_ANSWER", default=None)


def load(root: Path) -> Bank:
    """Return PubMedQA (PQA-L).

    With `test_ground_truth.json` beside it, only its items are tests.
    """
    draft = BankBuilder("pubmedqa", licence="MIT", source="PubMedQA, PQA-L", title="PubMedQA")
    path = find_file(root, "ori_pqal.json", "*pqal*.json")
    articles = read_document(path, dict[str, _Article])
    truth = path.with_name("test_ground_truth.json")
    tests = set(read_document(truth, dict[str, Cell])) if truth.is_file() else set(articles)
    for number, article in articles.items():
        decision = str(article.final_decision).lower()
        draft.choice(
            f"pubmedqa-{number}",
            article.question,
            list(_ANSWERS),
            _ANSWERS.index(decision) if decision in _ANSWERS else None,
            domain="pubmedqa",
            context="\n".join(article.contexts),
            split="test" if number in tests else "dev",
            year=whole_number(article.year),
            reference=article.long_answer,
        )
    return draft.bank()
