"""A reply → the JSON object in it."""

from medassay.core.parser import Reading
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.reply.json_value import is_json_alone, json_values
from medassay.core.reply.lenient_json import read_lenient
from medassay.core.reply.thoughts import strip_thoughts

_LOOKED_AT = 200_000  # characters, for whether a reply ended within its record


def read_document(
    item: Item, prompt: Prompt, text: str, mode: str, *, cut: bool = False
) -> Reading:
    """Return the longest JSON object of a reply as it was written, the first of equally long ones.

    A reply that ended by its token limit, or within the object that it began, is truncated,
    whatever fragments of it are JSON.
    """
    answer_text, unfinished = strip_thoughts(text)
    if unfinished:
        return Reading(None, "thought not ended", "truncated")
    objects = [value for value in json_values(text) if isinstance(value.value, dict)]
    at = answer_text.find("{")
    lenient = read_lenient(answer_text[:_LOOKED_AT], at) if at >= 0 else None
    if lenient is not None and lenient.cut_off and (cut or lenient.open_text):
        return Reading(None, "cut off inside the record", "truncated")
    if not objects:
        return Reading(None, "no complete JSON object")
    longest = max(objects, key=lambda value: len(value.text))
    reason = "json" if is_json_alone(text) else "json in prose"
    if longest.duplicate_keys:
        reason += ", keys twice"
    return Reading(longest.text, reason)
