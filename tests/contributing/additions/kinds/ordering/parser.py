"""A reply that names steps by their letters → the letters in order."""

import re

from medassay.core.parser import Extraction
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt

_LETTER = re.compile(r"\b[A-Z]\b")


def read_order(item: Item, prompt: Prompt, text: str, mode: Extraction) -> tuple[str | None, str]:
    """Return the capital letters that stand alone, in their order."""
    letters = _LETTER.findall(text)
    return (" ".join(letters), "letters") if letters else (None, "no letters")
