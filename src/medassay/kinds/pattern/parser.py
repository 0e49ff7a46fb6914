"""A reply to a question for a number → that number."""

from medassay.core.parser import Extraction
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.kinds.pattern.number import extract_number


def read_number(item: Item, prompt: Prompt, text: str, mode: Extraction) -> tuple[str | None, str]:
    """Return the number stated, as text that Python reads back exactly."""
    number, reason = extract_number(text, extract=item.extract, locale=item.locale)
    return (None if number is None else repr(number)), reason
