"""What a bank holds, in numbers: counts, lengths, vocabulary, keys, decision paths."""

import re
from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import Any

import msgspec

from medassay.core.records.item import Bank, Item
from medassay.core.records.target import Choice
from medassay.core.wording import as_seen

TOKENIZER = r"words and marks: \w+|[^\w\s]"
_TOKEN = re.compile(r"\w+|[^\w\s]")


class TextLengths(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of texts in tokens."""

    longest: int
    mean: float


class TokenStats(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths and vocabulary; `tokenizer` says what a token is."""

    tokenizer: str = TOKENIZER
    question: TextLengths
    answer: TextLengths
    vocabulary: int


class CategoryPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Decision paths of one category.

    At most two paths are kept to a leaf: more questions than `most_by_leaves` cannot have been made
    so, which `exceeds_bound` says.
    """

    questions: int
    conditions: int
    leaves: int
    paths: int
    most_by_leaves: int
    exceeds_bound: bool


class ItemStats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What some items are, in numbers.

    Attributes
    ----------
    by : property of items → its values with their counts
    keys : letter of the right option → items
    clusters, clustered_items : groups of items, and the items in them
    categories : of items with decision paths
    """

    items: int
    by: dict[str, dict[str, int]]
    tokens: TokenStats
    keys: dict[str, int]
    clusters: int
    clustered_items: int
    conditions: int
    leaves: int
    paths: int
    categories: dict[str, CategoryPaths] = {}


def items_with_twin_options(bank: Bank) -> list[str]:
    """Return the ids of items of which two options read alike: nobody can tell a right from a wrong
    one by what they say.
    """
    return [
        item.id
        for item in bank.items
        if len({" ".join(as_seen(option).split()) for option in item.options}) < len(item.options)
    ]


def _question(item: Item) -> str:
    return " ".join([item.context or "", item.question, *item.options]).strip()


def _answer(item: Item) -> str:
    if isinstance(item.target, Choice) and item.target.expected:
        return item.options[item.target.place]
    return item.reference or item.target_text


def _lengths(lengths: list[int]) -> TextLengths:
    return TextLengths(longest=max(lengths), mean=round(fmean(lengths), 2))


def bank_stats(bank: Bank, statistics: ItemStats | None = None) -> dict[str, Any]:
    """Return the statistics of `medassay bank stats` as plain JSON values.

    Parameters
    ----------
    statistics : of its items, where they were computed before
    """
    return {
        "schema_version": 1,
        "bank": bank.name,
        "version": bank.version,
        "content_sha256": bank.content_hash,
        "licence": bank.licence,
        **msgspec.to_builtins(statistics or item_stats(bank.items)),
        "kept": bank.kept,
        "dropped": dict(sorted(bank.dropped.items())),
    }


def item_stats(items: Iterable[Item]) -> ItemStats:
    """Return counts, lengths, vocabulary, keys and decision paths of some items, at least one.

    Token counts name their tokenizer, since lengths differ between tokenizers. Items are read once,
    since those of a large run come from its file.
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
    path_counts = PathCounts()
    clusters: Counter[str] = Counter()
    question_lengths: list[int] = []
    answer_lengths: list[int] = []
    for item in items:
        for name, counter in by.items():
            value = getattr(item, name)
            if value is not None:
                counter[str(value)] += 1
        if isinstance(item.target, Choice) and item.target.expected:
            keys[item.target.expected] += 1
        question, answer = _TOKEN.findall(_question(item)), _TOKEN.findall(_answer(item))
        question_lengths.append(len(question))
        answer_lengths.append(len(answer))
        vocabulary.update(map(str.casefold, question + answer))
        if item.condition:
            conditions.add(item.condition)
        if item.path:
            paths.add(item.path)
            leaves.add((item.condition or "", leaf_of(item)))
        path_counts.add(item)
        if item.cluster:
            clusters[item.cluster] += 1
    return ItemStats(
        items=len(question_lengths),
        by={name: dict(sorted(counter.items())) for name, counter in by.items() if counter},
        tokens=TokenStats(
            question=_lengths(question_lengths),
            answer=_lengths(answer_lengths),
            vocabulary=len(vocabulary),
        ),
        keys=dict(sorted(keys.items())),
        clusters=len(clusters),
        clustered_items=sum(clusters.values()),
        conditions=len(conditions),
        leaves=len(leaves),
        paths=len(paths),
        categories=path_counts.by_category() if paths else {},
    )


def leaf_of(item: Item) -> str:
    """Return the end of an item's decision path, its name as it is told apart: without case and
    doubled blanks.
    """
    leaf = item.leaf or (item.path or "").rsplit("->", 1)[-1]
    return " ".join(leaf.casefold().split())


class PathCounts:
    """Category → questions, conditions, leaves, paths of items with decision paths.

    The quiz and the open form of a question are one question; leaves are distinct within their
    condition. Published tables that count leaves by category have rows that exceed the bound.
    """

    def __init__(self) -> None:
        self._questions: dict[str, set[str]] = {}
        self._conditions: dict[str, set[str]] = {}
        self._leaves: dict[str, set[tuple[str, str]]] = {}
        self._paths: dict[str, set[tuple[str, str]]] = {}

    def add(self, item: Item) -> None:
        """Count an item; one without a path counts nothing."""
        if item.path is None:
            return
        category, condition = item.category or item.domain, item.condition or ""
        self._questions.setdefault(category, set()).add(item.question)
        self._conditions.setdefault(category, set()).add(condition)
        self._leaves.setdefault(category, set()).add((condition, leaf_of(item)))
        self._paths.setdefault(category, set()).add((condition, item.path))

    def by_category(self) -> dict[str, CategoryPaths]:
        """Return category → its counts, in the order of their names."""
        return {
            category: CategoryPaths(
                questions=len(questions),
                conditions=len(self._conditions[category]),
                leaves=len(self._leaves[category]),
                paths=len(self._paths[category]),
                most_by_leaves=most_by_leaves(len(self._leaves[category])),
                exceeds_bound=len(questions) > most_by_leaves(len(self._leaves[category])),
            )
            for category, questions in sorted(self._questions.items())
        }


def most_by_leaves(leaves: int) -> int:
    """Return how many questions two paths a leaf allow."""
    return 2 * leaves
