"""1 when the chosen option is the expected one."""

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.target import Choice


def choice(item: Item, answer: Answer) -> tuple[float, str]:
    """Return 1 when the letter equals the key."""
    same = answer.value == item.target_as(Choice).expected
    return float(same), "right" if same else "wrong"
