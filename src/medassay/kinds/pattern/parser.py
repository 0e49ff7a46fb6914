"""A reply to a question for a number → that number."""

import math

from medassay.core.parser import Extraction
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Range
from medassay.kinds.pattern.number import extract_number

_ANY = Range(lo=-math.inf, hi=math.inf)  # of other items, how numbers are usually written


def read_number(item: Item, prompt: Prompt, text: str, mode: Extraction) -> tuple[str | None, str]:
    """Return the number stated, as text that Python reads back exactly."""
    accepted = item.target if isinstance(item.target, Range) else _ANY
    number, reason = extract_number(text, extract=accepted.extract, locale=accepted.locale)
    return (None if number is None else repr(number)), reason
