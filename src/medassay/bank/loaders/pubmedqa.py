"""PubMedQA, the expert-labelled thousand. Verified on data."""

from pathlib import Path

from medassay.bank.builder import BankBuilder, find_file, read_json, whole_number
from medassay.core.records.item import Bank
from medassay.errors import InputError

_ANSWERS = ["yes", "no", "maybe"]


def load(root: Path) -> Bank:
    """Return PubMedQA (PQA-L).

    With `test_ground_truth.json` beside it, only its items are tests.
    """
    draft = BankBuilder("pubmedqa", licence="MIT", source="PubMedQA, PQA-L", title="PubMedQA")
    path = find_file(root, "ori_pqal.json", "*pqal*.json")
    articles = read_json(path)
    if not isinstance(articles, dict):
        raise InputError(f"{path.name}: expected an object keyed by PMID")
    truth = path.with_name("test_ground_truth.json")
    tests = set(read_json(truth)) if truth.is_file() else set(articles)
    for number, article in articles.items():
        missing = {"QUESTION", "CONTEXTS", "final_decision"} - article.keys()
        if missing:
            raise InputError(f"{path.name} record {number}: lacks {', '.join(sorted(missing))}")
        decision = str(article["final_decision"]).lower()
        draft.choice(
            f"pubmedqa-{number}",
            article["QUESTION"],
            list(_ANSWERS),
            _ANSWERS.index(decision) if decision in _ANSWERS else None,
            domain="pubmedqa",
            context="\n".join(article["CONTEXTS"]),
            split="test" if number in tests else "dev",
            year=whole_number(article.get("YEAR")),
            reference=article.get("LONG_ANSWER"),
        )
    return draft.bank()
