"""What the likelihoods of an item's options tell besides the likeliest one: by length, ties, and by
how much.

Source: specification of tasks and prompts, 14.1. lm-evaluation-harness divides by characters for
its `acc_norm`, and by bytes for its `acc_bytes`; both stand here, `acc_norm` by bytes as specified.
"""

import math

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.likelihood import finite_or_none, likeliest
from medassay.core.records.target import Choice

REVISION = 1
SHARES = ("acc_norm", "acc_norm_characters", "tied")  # parts that are 0 or 1


def likeliest_parts(item: Item, answer: Answer, text: str) -> dict[str, float | None]:
    """Return the parts of a choice by likelihood; {} for a letter that was read in a reply.

    Returns
    -------
    dict
        acc_norm and acc_norm_characters (1 when the likeliest option by byte, or by character, is
        the expected one), tied (1 when options share the highest log-probability: the first of them
        counts as chosen), margin (nats between the likeliest option and the next; None where one is
        impossible), expected (log-probability of the expected option; None for −∞).
    """
    likelihoods = answer.likelihoods
    if len(likelihoods) < 2 or not isinstance(item.target, Choice) or not item.target.expected:
        return {}
    values = [likelihood.total for likelihood in likelihoods]
    key = item.target.place
    by_byte = [likelihood.total / max(1, likelihood.n_bytes) for likelihood in likelihoods]
    by_character = [
        likelihood.total / max(1, likelihood.n_characters) for likelihood in likelihoods
    ]
    first, second = sorted(values, reverse=True)[:2]
    return {
        "acc_norm": float(likeliest(by_byte) == key),
        "acc_norm_characters": float(likeliest(by_character) == key),
        "tied": float(first == second),
        "margin": finite_or_none(first - second) if math.isfinite(second) else None,
        "expected": finite_or_none(values[key]),
    }
