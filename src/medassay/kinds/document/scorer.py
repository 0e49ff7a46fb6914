"""A record against its reference: likeness of the JSON, each field by its rule."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from medassay.core.records.answer import Answer
from medassay.core.records.document_schema import DocumentSchema
from medassay.core.records.item import Item
from medassay.core.records.target import Record
from medassay.core.reply.json_value import is_json_alone, read_json_reply
from medassay.kinds.document.target import DocumentTarget
from medassay.kinds.document.values import ENTRY, near, plain_record
from medassay.score.json_similarity import json_similarity

_NAMED = 8  # fields in the reason of a score
_STEP = re.compile(r'\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[\]]+)')


class RecordComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A record beside its reference; `leaves` are scores by the path of their field."""

    score: float
    leaves: list[tuple[str, float, float]]  # field, score, weight
    missing: int
    extra: int
    reason: str = ""


def reference_of(item: Item) -> Mapping[str, Any]:
    """Return the reference record of an item; a health record is one by its own schema."""
    if isinstance(item.target, Record):
        return item.target.record
    return item.target_as(DocumentTarget).document


def compared(reference: Mapping[str, Any], record: Any, schema: DocumentSchema) -> RecordComparison:
    """Return how far a record agrees with its reference.

    Without rules the score is the published JSON similarity. With them it is the mean over the
    expected values, each by its weight: texts by likeness, all others right or wrong.
    """
    expected, value = reference, record
    if schema.has_rules:
        gold, plain = plain_record(reference, schema), plain_record(record, schema)
        expected, value = near(gold, plain, schema)
    similarity = json_similarity(expected, value)
    rules = {part.path: part.rule for part in schema.fields}
    scored = []
    for path, likeness in similarity.leaf_scores.items():
        name = field_of(path, schema)
        rule = rules.get(name)
        by_text = rule is None or rule.compare == "text"
        score = likeness if by_text else float(likeness == 1.0)
        scored.append((name, score, 1.0 if rule is None else rule.weight))
    total = sum(weight for *_, weight in scored)
    mean = sum(score * weight for _, score, weight in scored) / total if total else 0.0
    return RecordComparison(
        score=mean if schema.has_rules else similarity.overall,
        leaves=scored,
        missing=len(similarity.missing),
        extra=len(similarity.extra),
        reason=similarity.reason,
    )


def field_of(path: str, schema: DocumentSchema) -> str:
    """Return the field of a place in a record: its path without indices, and without the names of
    entries in arrays with a key.
    """
    paths = [part.path.split(".") for part in schema.fields]
    steps: list[str] = []
    for match in _STEP.finditer(path):
        step = next((part for part in match.groups()[1:] if part), "")
        if step.startswith(ENTRY) or match[1]:
            continue
        here = [*steps, step]
        if any(names[: len(here)] == here for names in paths):
            steps = here
    return ".".join(steps)


def value_of(answer: Answer) -> Any:
    """Return the record in an answer, None where there is none."""
    if answer.outcome != "answered" or answer.value is None:
        return None
    return read_json_reply(answer.value).value


def likeness(item: Item, answer: Answer) -> tuple[float, str]:
    """Return the JSON similarity of a record, where no schema says how fields are compared."""
    similarity = json_similarity(reference_of(item), value_of(answer))
    n = len(similarity.leaf_scores)
    return similarity.overall, similarity.reason or f"{len(similarity.missing)} of {n} missing"


class DocumentScorer:
    """The score of a record, and what is told besides, by one schema."""

    def __init__(self, schema: DocumentSchema) -> None:
        self._schema = schema

    def score(self, item: Item, answer: Answer) -> tuple[float, str]:
        """Return the agreement with the reference, in [0, 1]."""
        comparison = compared(reference_of(item), value_of(answer), self._schema)
        n = len(comparison.leaves)
        wrong = sorted({name for name, score, _ in comparison.leaves if score < 1})
        named = f"; not as expected: {', '.join(wrong[:_NAMED])}" if wrong else ""
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        missing = f"{comparison.missing} of {n} values missing{named}{more}"
        return comparison.score, comparison.reason or missing

    def misfit(self, item: Item) -> str | None:
        """Return what of a reference does not fit the schema, or that it has nothing to compare."""
        reference = reference_of(item)
        problem = self._schema.problem(reference, known_fields=True)
        if problem is not None:
            return problem
        weights = [weight for *_, weight in compared(reference, reference, self._schema).leaves]
        return None if sum(weights) else "has no value that counts in the score"

    def parts(self, item: Item, answer: Answer, reply: str) -> dict[str, Any]:
        """Return precision and F1 of values, whether the record fits the schema and the reply is
        nothing else, and the mean of each field.
        """
        value = value_of(answer)
        comparison = compared(reference_of(item), value, self._schema)
        n = len(comparison.leaves)
        held = n - comparison.missing + comparison.extra
        recall = sum(score for _, score, _ in comparison.leaves)
        precision = recall / held if held else 0.0
        share = recall / n if n else 0.0
        total = precision + share
        fields: dict[str, list[float]] = {}
        for name, score, _ in comparison.leaves:
            fields.setdefault(name, []).append(score)
        is_valid = value is not None and self._schema.problem(value) is None
        return {
            "precision": precision,
            "f1": 2 * precision * share / total if total else 0.0,
            "valid": float(is_valid),
            "alone": float(answer.outcome == "answered" and is_json_alone(reply)),
            **{field_column(name): sum(own) / len(own) for name, own in sorted(fields.items())},
        }

    @property
    def columns(self) -> list[str]:
        """Return the names of what is told besides the score: shares, all of them."""
        names = [field_column(part.path) for part in self._schema.fields]
        return ["precision", "f1", "valid", "alone", *names]


def field_column(path: str) -> str:
    """Return the name of the column of a field."""
    return f"field {path}"
