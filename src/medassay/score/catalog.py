"""Every scorer: one line each."""

from collections.abc import Callable
from typing import Any

from medassay.core.item import Form, Item
from medassay.core.trial import PERPLEXITY, Answer
from medassay.score.bertscore import BertScore
from medassay.score.bge import BgeM3
from medassay.score.choice import choice
from medassay.score.given import given
from medassay.score.health_record import record_parts, record_similarity, unreferenced
from medassay.score.key import key
from medassay.score.legacy import client
from medassay.score.likeliest import likeliest_parts
from medassay.score.metric import TextMetric
from medassay.score.moverscore import MoverScore
from medassay.score.pattern import pattern
from medassay.score.perplexity import bits_per_byte, perplexity_parts
from medassay.score.range import in_range
from medassay.score.relaxed_perplexity import relaxed_parts, relaxed_perplexity
from medassay.score.scorer import Scorer, per_item
from medassay.score.text import likeness_to_reference

SCORERS: dict[str, Scorer] = {
    "bits_per_byte": Scorer(
        "bits_per_byte", bits_per_byte, revision=1, scale=PERPLEXITY, missing_is_worst=False
    ),
    "choice": per_item("choice", choice, revision=1),
    "chrf": per_item("chrf", likeness_to_reference, revision=1),
    "given": per_item("given", given, revision=1),
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


# Metrics of two texts that need a model: name → what makes one from the place of its model.
METRICS: dict[str, Callable[[str], TextMetric]] = {
    "bertscore": BertScore,
    "bge_m3": BgeM3,
    "bleurt": client.bleurt,
    "chexbert": client.chexbert,
    "f1_radgraph": client.f1_radgraph,
    "moverscore": MoverScore,
}


def open_parts(item: Item, answer: Answer, text: str) -> dict[str, Any]:
    """Return what is told of an open answer that was no reply: perplexities of its reference, or of statements in completions."""
    return relaxed_parts(item, answer, text) or perplexity_parts(item, answer, text)


# What is told of an answer, and of the whole reply, besides the score, whoever gives it: one line each form.
PARTS: dict[Form, Callable[[Item, Answer, str], dict[str, Any]]] = {
    "choice": likeliest_parts,
    "open": open_parts,
    "record": record_parts,
    "report": record_parts,
    "text": open_parts,
}
