"""A structured record from a reply: as JSON for scores by likeness, or the whole reply for judges
that look at its form.
"""

from medassay.core.parser import Reading
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.reply.json_value import read_json_reply
from medassay.core.reply.refusal import SAID, only_declines
from medassay.core.reply.thoughts import strip_thoughts
from medassay.kinds.record.reply import read_record_reply


def read_record(item: Item, prompt: Prompt, text: str, mode: str, *, cut: bool = False) -> Reading:
    """Return the JSON text of the record and how it was read, or None and why there is none.

    `truncated` is a reply that ended before its object, or the fence around it, closed. With the
    published rules ("paper") the longest JSON value counts, whatever it is.
    """
    if mode == "paper":
        reply = read_json_reply(text)
        if reply.value is None:
            return Reading(None, reply.reason)
        return Reading(reply.text, "json, keys twice" if reply.duplicate_keys else "json")
    record = read_record_reply(text, cut=cut)
    if record.value is None:
        return Reading(None, record.reason, "truncated" if record.truncated else "answered")
    return Reading(record.text, record.reason)


def read_record_text(
    item: Item, prompt: Prompt, text: str, mode: str, *, cut: bool = False
) -> Reading:
    """Return the reply without thoughts, for judges that decide what a damaged form is worth.

    One that was cut off inside its record is none.
    """
    answer_text = strip_thoughts(text)[0].strip()
    if not answer_text:
        return Reading(None, "blank")
    record = read_record_reply(text, cut=cut)
    if mode != "paper" and record.truncated:
        return Reading(None, record.reason, "truncated")
    if only_declines(answer_text):
        return Reading(None, SAID)
    return Reading(answer_text, f"text: {record.reason}")
