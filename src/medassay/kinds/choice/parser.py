"""A reply to options → the letter of the bank."""

from medassay.core.parser import Extraction
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.kinds.choice.option import extract_option


def read_choice(item: Item, prompt: Prompt, text: str, mode: Extraction) -> tuple[str | None, str]:
    """Return the bank's letter of the option chosen, undoing the order in which it was shown."""
    letters = prompt.letters or item.letters
    letter, rule = extract_option(text, letters, mode, prompt.options or item.options)
    if letter is None:
        return None, "ambiguous" if rule else "no option found"
    if prompt.order is not None:
        letter = item.letters[prompt.order[letters.index(letter)]]
    return letter, rule or ""
