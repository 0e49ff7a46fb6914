"""The structured record in a reply: the object that has the record's envelope, closed, whatever
stands around it.

A reply that ended inside its record is cut off, whatever fragments of it are JSON: the longest of
them says nothing of the whole. The published reading, the longest JSON value of a reply, is
`core.reply.json_value.read_json_reply`.
"""

import re
from typing import Any

import msgspec

from medassay.core.records.health_record import RECORD
from medassay.core.reply.json_value import JsonReply, json_values, read_json_reply
from medassay.core.reply.lenient_json import read_lenient
from medassay.core.reply.thoughts import strip_thoughts

REVISION = 1

CUT_OFF = "cut off inside the record"
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_FAULTS = {  # what is wrong with a record that is no JSON, in the order in which it is told
    "quotes": "quotes as of a Python dict, no JSON",
    "word": "a word that is no JSON (None, True, NaN)",
    "remark": "remarks, no JSON",
    "trailing comma": "a trailing comma, no JSON",
    "key without quotes": "keys without quotes, no JSON",
}
_LOOKED_AT = 200_000  # characters, for what is wrong with a reply


class RecordReply(msgspec.Struct, frozen=True):
    """A record read from a reply, or None and why there is none; `text` is its JSON as written.

    `alone` says that the reply is the record and nothing else, or holds it in its one fenced block;
    `truncated` that the reply ended before the record did.
    """

    value: dict[str, Any] | None
    reason: str
    text: str = ""
    alone: bool = False
    truncated: bool = False


def read_record_reply(text: str, *, cut: bool = False) -> RecordReply:
    """Return the record in a reply.

    Of several objects with the envelope the longest, the first of equally long ones.

    Parameters
    ----------
    cut : whether the reply ended by its token limit: then a fence that is still open says that the
        record is, too

    Examples
    --------
    >>> read_record_reply('{"structured_health_record": {}}').alone, read_record_reply(
    ...     "I cannot; see [1].").reason
    (True, 'no complete JSON object or array')
    >>> read_record_reply('{"structured_health_record": {"diagnosis": ["Hyper').truncated
    True
    """
    answer_text, unfinished = strip_thoughts(text)
    if unfinished:
        return RecordReply(None, "thought not ended", truncated=True)
    if cut and len(_FENCE.findall(answer_text)) % 2:
        return RecordReply(None, CUT_OFF, truncated=True)
    values = json_values(text)
    documents = [
        (value, value.value)
        for value in values
        if isinstance(value.value, dict) and isinstance(value.value.get(RECORD), dict)
    ]
    if not documents:
        return _unread(answer_text, values, cut=cut)
    longest, value = max(documents, key=lambda pair: len(pair[0].text))
    alone = _is_alone(answer_text)
    reason = "json" if alone else "json in prose"
    if longest.duplicate_keys:
        reason += ", keys twice"
    return RecordReply(value, reason, text=longest.text, alone=alone)


def record_value(value: str | None, outcome: str) -> Any:
    """Return the parsed JSON of an answer's value, or the record in a value that is a whole reply.

    None for what is no answer.
    """
    if outcome != "answered" or value is None:
        return None
    reply = read_json_reply(value)
    return reply.value if reply.text.strip() == value.strip() else read_record_reply(value).value


def _is_alone(text: str) -> bool:
    """Return whether a reply without its thoughts is the record and nothing else, or one fenced
    block holds it.
    """
    text = text.strip()
    fences = list(_FENCE.finditer(text))
    if len(fences) == 2:
        text = text[text.find("\n", fences[0].end()) + 1 : fences[1].start()].strip()
    return text.startswith("{") and read_json_reply(text).text.strip() == text


def _unread(text: str, values: list[JsonReply], *, cut: bool) -> RecordReply:
    """Return why no record was read: cut off, written as something else than JSON, other JSON, or
    none at all.
    """
    at = text.find("{")
    lenient = read_lenient(text[:_LOOKED_AT], at) if at >= 0 else None
    if lenient is not None and lenient.cut_off and (cut or lenient.open_text):
        return RecordReply(None, CUT_OFF, truncated=True)
    if lenient is not None and not lenient.cut_off and isinstance(lenient.value, dict):
        fault = next(
            (description for name, description in _FAULTS.items() if name in lenient.faults), ""
        )
        if fault and RECORD in lenient.value:
            return RecordReply(None, fault)
    if any(isinstance(value.value, dict) for value in values):
        return RecordReply(None, f"JSON without {RECORD}")
    return RecordReply(None, "no complete JSON object or array")
