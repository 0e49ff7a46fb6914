"""Ten scripted models for the demonstration board: a spread of quality, two pairs that nobody can
tell apart, and the odd reply in which no answer is read.
"""

import math
import random
import re
from collections.abc import Iterable
from typing import Any

from medassay.core.records.item import Item
from medassay.core.records.target import Choice, Pattern, Range

# Name → how good it is, in logits above an item of middling difficulty.
QUALITY = {
    "scripted-a": 2.9,
    "scripted-b": 2.2,
    "scripted-c": 2.1,
    "scripted-d": 1.6,
    "scripted-e": 1.0,
    "scripted-f": 0.9,
    "scripted-g": 0.5,
    "scripted-h": 0.0,
    "scripted-i": -0.4,
    "scripted-j": -1.0,
}
_UNREAD = 0.01  # share of replies that say nothing


def scripted_models(items: Iterable[Item], seed: int) -> list[dict[str, Any]]:
    """Return the entries of ten scripted models with a reply to each item.

    Whether a reply is right follows from the model's quality and the item's difficulty (one
    parameter each, as in a Rasch model), so that models err on the same hard items.

    Parameters
    ----------
    items : closed ones with a target; others get no reply
    """
    rng = random.Random(seed)
    replies: dict[str, dict[str, str]] = {name: {} for name in QUALITY}
    for item in items:
        difficulty = rng.gauss(0.0, 1.2)
        for name, quality in QUALITY.items():
            chance = 1 / (1 + math.exp(difficulty - quality))
            right, unread = rng.random() < chance, rng.random() < _UNREAD
            text = _reply(item, rng, right=right)
            if text is not None:
                replies[name][item.id] = "That depends on the patient." if unread else text
    return [
        {
            "id": name,
            "provider": "fake",
            "family": "scripted",
            "location": "local",
            "script": {"replies": replies[name]},
        }
        for name in QUALITY
    ]


def _reply(item: Item, rng: random.Random, *, right: bool) -> str | None:
    target = item.target
    if isinstance(target, Choice):
        others = [letter for letter in target.letters if letter != target.expected]
        return target.expected if right else rng.choice(others)
    if isinstance(target, Range):
        value = (target.lo + target.hi) / 2 if right else 3 * target.hi + 1
        return f"{value:g}".replace(".", "," if target.locale == "de" else ".")
    if isinstance(target, Pattern):
        # The rationale of an item of the demo bank names what its pattern looks for.
        match = re.search(target.regex, item.rationale or "")
        return match[0] if right and match else "I do not know the name."
    return None
