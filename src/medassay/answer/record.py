"""A structured record from a reply: the longest JSON value in it, by matching brackets."""

from medassay.core.item import Item
from medassay.core.json_reply import read_json_reply
from medassay.core.trial import Prompt


def read_record(item: Item, prompt: Prompt, text: str, mode: str) -> tuple[str | None, str]:
    """Return the JSON text of the record and how it was read, or None and why there is none."""
    found = read_json_reply(text)
    if found.value is None:
        return None, found.reason
    return found.text, "json, keys twice" if found.duplicate_keys else "json"
