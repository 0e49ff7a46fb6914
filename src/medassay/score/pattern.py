"""1 when the item's regular expression is found in the reply."""

from medassay.core.item import Item
from medassay.core.trial import Answer

_LIMIT = 1.0  # seconds; patterns are tried at validation, a hostile reply may still be worse


def pattern(item: Item, answer: Answer) -> tuple[float | None, str]:
    """Return 1 when the pattern is found; null when it could not be decided in one second."""
    import regex

    try:
        found = regex.search(item.regex or "", answer.value or "", timeout=_LIMIT)
    except TimeoutError:
        return None, "pattern timeout"
    return float(found is not None), "found" if found else "not found"
