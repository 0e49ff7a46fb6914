"""Whether an order is right, and how much of it."""

from itertools import combinations
from typing import Any

from medassay.kinds.ordering.target import Ordering

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item


def exact_order(item: Item, answer: Answer) -> tuple[float, str]:
    """Return 1 where every step stands in its place."""
    is_right = (answer.value or "").split() == list(item.target_as(Ordering).order)
    return float(is_right), "right" if is_right else "wrong"


def order_parts(item: Item, answer: Answer, text: str) -> dict[str, Any]:
    """Return the share of pairs of steps that stand in their order, and of steps named."""
    order = item.target_as(Ordering).order
    places = {letter: at for at, letter in enumerate((answer.value or "").split())}
    pairs = list(combinations(order, 2))
    kept = sum(a in places and b in places and places[a] < places[b] for a, b in pairs)
    return {
        "pairs_in_order": kept / len(pairs),
        "steps_named": sum(letter in places for letter in order) / len(order),
    }
