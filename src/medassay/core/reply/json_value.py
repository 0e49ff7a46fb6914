"""The one JSON value of a reply: the longest that stands in it, whatever prose, fences or thoughts
surround it.

Replies are hostile: partners of brackets are remembered over all starts, and what is read in all is
bounded, so that neither a million brackets nor a million unclosed strings cost more than a few
times their length.

Source: specification of JSON structural similarity, "Extract".
"""

import json
import re
from collections import Counter
from typing import Any

import msgspec

from medassay.core.reply.thoughts import strip_thoughts

REVISION = 1

MOST_CHARACTERS = 1_000_000
MOST_LEVELS = 200  # of nesting
# What may be read of a reply in all, in characters: more than any that is not made to cost time.
_MOST_READ = 8  # times its own length
_SPAN = 100  # characters that a pair of brackets costs besides what it holds
_MOST_SPANS = 50
_ALWAYS = 20_000 * _SPAN
_FENCE = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)[ \t]*+[\w+.-]*+[ \t]*+$\n?", re.MULTILINE)
_OPENING = re.compile(r"[{\[]")
# Outside of strings: a bracket, or a whole string; a string that never ends runs to the end.
_TOKEN = re.compile(r'[{}\[\]]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_CLOSES = {"{": "}", "[": "]"}


class JsonReply(msgspec.Struct, frozen=True):
    """A JSON object or array read from a reply, or None and the reason why there is none.

    `duplicate_keys` are keys that one object has twice; the last one counts. `text` is the span
    that was read.
    """

    value: dict[str, Any] | list[Any] | None
    reason: str = ""
    duplicate_keys: tuple[str, ...] = ()
    text: str = ""


def is_json_alone(text: str) -> bool:
    r"""Return whether a reply is one JSON object or array and nothing else.

    Thoughts and code fences left out.

    Examples
    --------
    >>> is_json_alone('```json\n{"a": 1}\n```'), is_json_alone('I cannot; see [1].')
    (True, False)
    """
    if len(text) > MOST_CHARACTERS:
        return False
    try:
        value = json.loads(_FENCE.sub("", strip_thoughts(text)[0]), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


class _HostileError(Exception):
    """Say why a reply is not read further."""


def read_json_reply(text: str) -> JsonReply:
    r"""Return the longest JSON object or array in a reply; the first of equally long ones.

    Strict JSON only: no trailing commas, single quotes, NaN or infinities. Where brackets match but
    what stands between them is no JSON, the brackets within are tried. Never raises.

    Examples
    --------
    >>> read_json_reply('Use {curly} braces:\n```json\n{"a": [1, 2]}\n```').value
    {'a': [1, 2]}
    >>> read_json_reply('{"a": 1').reason
    'no complete JSON object or array'
    """
    values = json_values(text)
    return max(values, key=lambda reply: len(reply.text))


def json_values(text: str) -> list[JsonReply]:
    """Return the JSON objects and arrays of a reply that no other holds, in their order.

    Where there is none, one that says why.

    Never raises.
    """
    if len(text) > MOST_CHARACTERS:
        return [JsonReply(None, f"longer than {MOST_CHARACTERS:,} characters")]
    answer, unfinished = strip_thoughts(text)
    read = _read(answer)
    if read[0].value is not None or unfinished or answer == text:
        return read
    # A reply that begins with its JSON does not begin with a thought: the tag was part of a value.
    return _read(text) if _FENCE.sub("", text).lstrip()[:1] in ("{", "[") else read


def _read(text: str) -> list[JsonReply]:
    try:
        spans = _spans(_FENCE.sub("", text))
    except _HostileError as error:
        return [JsonReply(None, str(error))]
    return list(map(_parsed, spans)) or [JsonReply(None, "no complete JSON object or array")]


def _spans(text: str) -> list[str]:
    """Return the texts of the outermost spans that are JSON; of very many the longest."""
    brackets = _Brackets(text)
    spans: list[str] = []
    longest = ""
    position = 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        end = brackets.end(start)
        position = start + 1
        if end is None:
            continue
        span = text[start:end]
        if longest and not brackets.affords(len(span) + _SPAN):
            break  # a good value, and junk without end after it
        brackets.spend(len(span) + _SPAN)
        if end - start == 2 or _is_json(span):
            position = end
            longest = max(longest, span, key=len)
            if len(spans) < _MOST_SPANS:
                spans.append(span)
    return spans if not spans or longest in spans else [*spans[:-1], longest]


class _Brackets:
    """Where each bracket that is not within a string has its partner.

    What was learned from one start serves all later ones.
    """

    def __init__(self, text: str) -> None:
        self._left = _MOST_READ * len(text) + _ALWAYS
        self._text = text
        self._ends: dict[int, int | None] = {}

    def end(self, start: int) -> int | None:
        """Return the place after the partner of the bracket at `start`, or None where it has
        none.
        """
        if start not in self._ends:
            self.spend(self._match(start) - start)
        return self._ends[start]

    def affords(self, characters: int) -> bool:
        """Return whether so much may still be read."""
        return self._left >= characters

    def spend(self, characters: int) -> None:
        """Count what was read; refuse to go on when it is more than any honest reply needs."""
        self._left -= characters
        if self._left < 0:
            raise _HostileError("too many brackets that hold no JSON")

    def _match(self, start: int) -> int:
        text, ends, search = self._text, self._ends, _TOKEN.search
        open_at: list[int] = []
        position = start
        while token := search(text, position):
            at, position = token.span()
            kind = text[at]
            if kind == '"':
                continue
            if kind in _CLOSES:
                if at not in ends:
                    open_at.append(at)
                    if len(open_at) > MOST_LEVELS:
                        raise _HostileError(f"nested deeper than {MOST_LEVELS} levels")
                elif (end := ends[at]) is not None:
                    position = end
                else:
                    break
            elif _CLOSES[text[open_at[-1]]] == kind:
                ends[open_at.pop()] = position
                if not open_at:
                    return position
            else:
                break
        ends |= dict.fromkeys(open_at)
        return position


def _is_json(span: str) -> bool:
    try:
        json.loads(span, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _parsed(span: str) -> JsonReply:
    twice: dict[str, None] = {}

    def last_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            counted = Counter(key for key, _ in pairs)
            twice.update(dict.fromkeys(key for key, n in counted.items() if n > 1))
        return members

    value = json.loads(span, object_pairs_hook=last_of)
    return JsonReply(value, duplicate_keys=tuple(twice), text=span)
