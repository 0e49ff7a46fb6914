"""What a bank holds, in numbers: counts, lengths, vocabulary, keys, decision paths."""

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from medassay.core.item import Bank, Item

TOKENIZER = r"words and marks: \w+|[^\w\s]"
_TOKEN = re.compile(r"\w+|[^\w\s]")


def _question(item: Item) -> str:
    return " ".join([item.context or "", item.question, *item.options]).strip()


def _answer(item: Item) -> str:
    if item.form == "choice" and item.expected:
        return item.options[item.letters.index(item.expected)]
    return item.reference or item.target


def _lengths(lengths: list[int]) -> dict[str, float]:
    return {"longest": max(lengths), "mean": round(fmean(lengths), 2)}


def bank_stats(bank: Bank) -> dict[str, Any]:
    """Return the statistics of `medassay bank stats` as plain JSON values."""
    return {
        "schema_version": 1,
        "bank": bank.name,
        "version": bank.version,
        "content_sha256": bank.content_hash,
        "licence": bank.licence,
        **item_stats(bank.items),
        "kept": bank.kept,
        "dropped": dict(sorted(bank.dropped.items())),
    }


def item_stats(items: Sequence[Item]) -> dict[str, Any]:
    """Return counts, lengths, vocabulary, keys and decision paths of some items.

    Token counts name their tokenizer, since lengths differ between tokenizers.
    """
    by: dict[str, Counter[str]] = {
        name: Counter()
        for name in (
            "domain",
            "category",
            "year",
            "language",
            "kind",
            "answer_type",
            "form",
            "split",
        )
    }
    keys: Counter[str] = Counter()
    vocabulary: set[str] = set()
    conditions: set[str] = set()
    leaves: set[tuple[str, str]] = set()
    paths: set[str] = set()
    clusters: Counter[str] = Counter()
    question_lengths: list[int] = []
    answer_lengths: list[int] = []
    for item in items:
        for name, counter in by.items():
            value = getattr(item, name)
            if value is not None:
                counter[str(value)] += 1
        if item.form == "choice" and item.expected:
            keys[item.expected] += 1
        question, answer = _TOKEN.findall(_question(item)), _TOKEN.findall(_answer(item))
        question_lengths.append(len(question))
        answer_lengths.append(len(answer))
        vocabulary.update(token.casefold() for token in question + answer)
        if item.condition:
            conditions.add(item.condition)
        if item.path:
            paths.add(item.path)
            leaf = item.leaf or item.path.rsplit("->", 1)[-1].strip()
            leaves.add((item.condition or "", leaf))
        if item.cluster:
            clusters[item.cluster] += 1
    return {
        "items": len(items),
        "by": {name: dict(sorted(counter.items())) for name, counter in by.items() if counter},
        "tokens": {
            "tokenizer": TOKENIZER,
            "question": _lengths(question_lengths),
            "answer": _lengths(answer_lengths),
            "vocabulary": len(vocabulary),
        },
        "keys": dict(sorted(keys.items())),
        "clusters": len(clusters),
        "clustered_items": sum(clusters.values()),
        "conditions": len(conditions),
        "leaves": len(leaves),
        "paths": len(paths),
    }
