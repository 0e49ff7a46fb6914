"""1 when the number stated lies in the accepted range, ends included."""

from medassay.core.item import Item
from medassay.core.trial import Answer
from medassay.errors import InputError


def in_range(item: Item, answer: Answer) -> tuple[float, str]:
    """Return 1 when lo <= number <= hi."""
    if item.range is None or answer.value is None:
        raise InputError(f"item '{item.id}': field 'range': absent; the range scorer needs it")
    inside = item.range.lo <= float(answer.value) <= item.range.hi
    return float(inside), "in range" if inside else "out of range"
