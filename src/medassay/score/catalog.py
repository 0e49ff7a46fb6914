"""Every scorer: one line each."""

from collections.abc import Callable
from typing import Any

from medassay.core.item import Form, Item
from medassay.core.trial import Answer
from medassay.score.choice import choice
from medassay.score.given import given
from medassay.score.health_record import record_parts, record_similarity, unreferenced
from medassay.score.key import key
from medassay.score.pattern import pattern
from medassay.score.range import in_range
from medassay.score.scorer import Scorer, per_item

SCORERS: dict[str, Scorer] = {
    "choice": per_item("choice", choice),
    "given": per_item("given", given),
    "key": per_item("key", key),
    "range": per_item("range", in_range),
    "record": per_item("record", record_similarity),
    "regex": per_item("regex", pattern),
    "unreferenced": Scorer("unreferenced", unreferenced, missing_is_worst=False),
}

# What is told of an answer, and of the whole reply, besides the score, whoever gives it: one line each form.
PARTS: dict[Form, Callable[[Item, Answer, str], dict[str, Any]]] = {
    "record": record_parts,
    "report": record_parts,
}
