"""Every scorer: one line each."""

from collections.abc import Callable
from typing import Any

from medassay.core.records.answer import Answer
from medassay.core.records.item import Form, Item
from medassay.core.scale import PERPLEXITY
from medassay.kinds.choice.scorer import choice
from medassay.kinds.imported.scorer import imported_score
from medassay.kinds.likelihood.choice_scorer import likeliest_parts
from medassay.kinds.likelihood.perplexity import bits_per_byte, perplexity_parts
from medassay.kinds.likelihood.relaxed_perplexity import relaxed_parts, relaxed_perplexity
from medassay.kinds.pattern.scorer import in_range, key, pattern
from medassay.kinds.record.scorer import record_parts, record_similarity, unreferenced
from medassay.score.scorer import Scorer, per_item
from medassay.score.text import likeness_to_reference

SCORERS: dict[str, Scorer] = {
    "bits_per_byte": Scorer(
        "bits_per_byte", bits_per_byte, revision=1, scale=PERPLEXITY, missing_is_worst=False
    ),
    "choice": per_item("choice", choice, revision=1),
    "chrf": per_item("chrf", likeness_to_reference, revision=1),
    "given": per_item("given", imported_score, revision=1),
    "key": per_item("key", key, revision=1),
    "range": per_item("range", in_range, revision=1),
    "record": per_item("record", record_similarity, revision=1),
    "regex": per_item("regex", pattern, revision=1),
    "relaxed_perplexity": Scorer(
        "relaxed_perplexity",
        relaxed_perplexity,
        revision=1,
        scale=PERPLEXITY,
        missing_is_worst=False,
    ),
    "unreferenced": Scorer("unreferenced", unreferenced, revision=1, missing_is_worst=False),
}


def open_parts(item: Item, answer: Answer, text: str) -> dict[str, Any]:
    """Return what is told of an open answer that was no reply: perplexities of its reference, or of
    statements in completions.
    """
    return relaxed_parts(item, answer, text) or perplexity_parts(item, answer, text)


# What is told of an answer, and of the whole reply, besides the score, whoever gives it: one line
# each form.
PARTS: dict[Form, Callable[[Item, Answer, str], dict[str, Any]]] = {
    "choice": likeliest_parts,
    "open": open_parts,
    "record": record_parts,
    "report": record_parts,
    "text": open_parts,
}
