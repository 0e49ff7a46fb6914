"""Synthetic items become public as commitments and numbers, never as text.

Redaction works by allow-list: of a record about a synthetic item just the fields named here are
published, whatever else it holds. What is withheld is committed to: SHA-256 over a secret salt and
the canonical record, so that the text can be proved later and cannot be guessed before.

Source: specification of bank versions, "Public and private".
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from medassay.bank.check import build_item
from medassay.core.canonical import canonical
from medassay.core.json import record_as
from medassay.core.records.item_object import ItemObject
from medassay.core.records.sealed_object import (
    ScoreObject,
    TrialKeys,
    TrialObject,
    VerdictObject,
    place_of,
)
from medassay.core.records.target import Form
from medassay.core.records.trial import TRIAL_KEY

Line = TypeVar("Line", bound=Mapping[str, Any])  # of a run's files: the object of a line
ITEM_FIELDS = ("id", "revision", "kind", "domain", "answer_type", "harm", "severity")
TRIAL_FIELDS = (
    "schema_version",
    *TRIAL_KEY,
    "outcome",
    "own_source",
    "tool_use",
    "attempt",
    "again",
    "cut_off",
)
TOOL_FIELDS = ("calls", "failed", "unavailable")
SCORE_FIELDS = ("schema_version", *TRIAL_KEY, "score", "scorer", "parts", "measured")
# Of a record in the form that the specification's golden file has.
PUBLIC_FIELDS = (
    "run_id",
    "model",
    "item_id",
    "kind",
    "domain",
    "mode",
    "score",
    "panel_scores",
    "extra_false_claim_count",
    "contradict_count",
    "agreement",
)
FINDING_FIELDS = (
    "schema_version",
    "run",
    "trial",
    "field",
    "old",
    "new",
    "delta",
    "cause",
    "opened",
)


def select_fields(record: Line, fields: Iterable[str]) -> Line:
    """Return a record with the allowed fields it has, and no other.

    Examples
    --------
    >>> select_fields({"model": "m", "score": 0.5, "answer": "secret"}, PUBLIC_FIELDS)
    {'model': 'm', 'score': 0.5}
    """
    return cast(Line, {name: record[name] for name in fields if name in record})


class NamedFinding(msgspec.Struct):
    """What names a change that was found when verdicts or replies were read again."""

    trial: tuple[str, str, str, str, str, int]
    field: str

    @property
    def place(self) -> tuple[str, str]:
        """Return the domain and the item of the trial."""
        return self.trial[0], self.trial[4]


def item_of(line: TrialKeys) -> tuple[str, str]:
    """Return domain and item of a line about an answer."""
    return line["domain"], line["item"]


def place_of_item(item: ItemObject) -> tuple[str, str]:
    """Return domain and id of an item."""
    return item["domain"], item["id"]


def counted_still(trial: TrialObject) -> TrialObject:
    """Return what is counted of an answer though its text is withheld or deleted."""
    counts: TrialObject = {}
    if trial.get("reason") == "ambiguous":  # a word of our parsers, counted apart
        counts |= {"reason": "ambiguous"}
    if trial.get("finish") == "length":
        counts |= {"cut_off": True}
    return counts


def numbers_of(item: ItemObject) -> ItemObject:
    """Return what may be known of an item without its text: bounds need the lowest score it
    allows.
    """
    numbers = select_fields(item, ITEM_FIELDS)
    if (lowest := build_item(item).target.lowest) is not None:
        numbers |= {"lowest": lowest}
    return numbers


def form_of(item: ItemObject) -> Form:
    """Return the form of an item, also of one that is deleted and says it: without it nobody could
    tell which of several metrics its scores are of.
    """
    return item.get("form") or build_item(item).form


class Redactor:
    """Makes public records of private ones; `secret` is the run's own and never published, `parts`
    are those of scores that are.
    """

    def __init__(self, secret: str, parts: Sequence[str]) -> None:
        self._secret = bytes.fromhex(secret)
        self._parts = parts

    def salt(self, *names: str | int) -> str:
        """Return the salt of one record, 32 bytes in hexadecimal; it tells nothing of any other."""
        message = "\x1f".join(map(str, names)).encode()
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def commitment(self, record: ItemObject | TrialObject, *names: str | int) -> str:
        """Return the commitment to a record with its own salt."""
        return commitment(self.salt(*names), record)

    def item(self, record: ItemObject, cluster: str | None) -> ItemObject:
        """Return what is published of an item; `cluster` is the public name of its cluster."""
        public = numbers_of(record)
        if cluster is not None:
            public |= {"cluster": cluster}
        public |= {"commitment": self.commitment(record, *item_key(record))}
        return public

    def trial(self, record: TrialObject) -> TrialObject:
        """Return what is published of an answer."""
        public: TrialObject = {**select_fields(record, TRIAL_FIELDS), **counted_still(record)}
        if "tool_use" in public:
            public |= {"tool_use": select_fields(public["tool_use"], TOOL_FIELDS)}
        public |= {"commitment": self.commitment(record, *trial_key(record))}
        return public

    def score(self, record: ScoreObject, verdicts: Iterable[VerdictObject]) -> ScoreObject:
        """Return what is published of a score: numbers, those of the panel among them."""
        public: ScoreObject = {
            **select_fields(record, SCORE_FIELDS),
            **_panel_numbers(list(verdicts)),
        }
        if "parts" in public:
            public |= {"parts": select_fields(public["parts"], self._parts)}
        return public


def commitment(salt: str, record: ItemObject | TrialObject) -> str:
    """Return SHA-256 over the salt's bytes and the canonical record."""
    return hashlib.sha256(bytes.fromhex(salt) + canonical(record)).hexdigest()


def item_key(item: ItemObject) -> tuple[str, str, str]:
    """Return what names an item among salts."""
    return ("item", *place_of_item(item))


def trial_key(trial: TrialKeys) -> tuple[str | int, ...]:
    """Return what names an answer among salts."""
    return ("trial", *place_of(trial))


def _panel_numbers(verdicts: Sequence[VerdictObject]) -> ScoreObject:
    if not verdicts:
        return {}
    from medassay.judging.panel import agreement

    numbers: ScoreObject = {"panel_scores": [verdict["score"] for verdict in verdicts]}
    # Of a deleted item's verdicts the scores are left, and nothing that was said.
    bodies = [
        record_as(verdict["body"], _PanelBody, "verdicts.jsonl: a body")
        for verdict in verdicts
        if verdict.get("outcome") == "valid" and "body" in verdict
    ]
    facts = [body.facts for body in bodies if body.facts is not None]
    if not facts or len(facts) < len(bodies):
        return numbers
    verdict_lists = [[fact.verdict for fact in facts_of_body] for facts_of_body in facts]
    contradictions = sum(verdict_list.count("contradict") for verdict_list in verdict_lists)
    numbers |= {"extra_false_claim_count": sum(len(body.claims) for body in bodies)}
    numbers |= {"contradict_count": contradictions}
    if len(bodies) == len(verdicts) > 1:
        numbers |= {"agreement": agreement(verdict_lists).pairwise}
    return numbers


class _JudgedFact(msgspec.Struct):
    verdict: str


class _PanelBody(msgspec.Struct):
    """What is counted of a verdict on a withheld item."""

    facts: list[_JudgedFact] | None = None
    claims: list[Any] = []
