"""1 when a reply matches the item's pattern, its number lies in the range, or a prediction equals
the key.
"""

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.target import Key, Pattern, Range

_LIMIT = 1.0  # seconds; patterns are tried at validation, a hostile reply may still be worse


def pattern(item: Item, answer: Answer) -> tuple[float | None, str]:
    """Return 1 when the pattern is found; null when it could not be decided in one second."""
    is_found = fits(item.target_as(Pattern), answer.value or "")
    if is_found is None:
        return None, "pattern timeout"
    return float(is_found), "found" if is_found else "not found"


def fits(target: Pattern, text: str) -> bool | None:
    """Return whether a text holds what a pattern asks for, None where a second does not tell."""
    import regex

    try:
        return regex.search(target.regex, text, timeout=_LIMIT) is not None
    except TimeoutError:
        return None


def in_range(item: Item, answer: Answer) -> tuple[float, str]:
    """Return 1 when lo <= number <= hi."""
    accepted = item.target_as(Range)
    inside = accepted.lo <= float(answer.value or "nan") <= accepted.hi
    return float(inside), "in range" if inside else "out of range"


def key(item: Item, answer: Answer) -> tuple[float, str]:
    """Return 1 when prediction and key are equal, ignoring case and outer blanks."""
    same = (answer.value or "").strip().casefold() == item.target_as(
        Key
    ).expected.strip().casefold()
    return float(same), "right" if same else "wrong"
