"""JSON as models write it: with trailing commas, remarks, single quotes, Python's words, or cut off
in the middle.

What is read here is marked as repaired, and where the text ended inside the value, as cut off: what
stood last is then left out rather than guessed. One pass from left to right, no second look:
hostile text costs time in proportion to its length. Nothing here decides whether a reply counts as
JSON; `core.reply.json_value` does that, strictly.
"""

import json
import re
from typing import Any

import msgspec

MOST_LEVELS = 200  # of nesting
_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/|#[^\n]*|,)+", re.DOTALL)
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»"}
# What may stand behind a quote that ends a text; any other quote is part of it ("Behçet"s
# disease").
_AFTER = re.compile(r"\s*(?:[,:}\]]|//|/\*|#|$|\n|[\"'“„{\[])")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\W\d][\w-]*")
_WORDS = {
    **{"true": True, "false": False, "null": None, "True": True, "False": False, "None": None},
    **dict.fromkeys(("NaN", "Infinity", "nan", "undefined")),
}
_BARE_KEY = re.compile(r"[^\W\d][\w \-/]{0,60}(?=\s*:)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class LenientValue(msgspec.Struct, frozen=True):
    """An object or array read from a text, the place after it, and what was wrong with it.

    `faults` names each departure from JSON once, in the order of the text: "cut off" (the text
    ended inside the value), "open text" (inside a text), "quotes", "remark", "trailing comma",
    "word" (True, None, NaN), "key without quotes", "escape", "bracket".
    """

    value: Any
    end: int
    faults: tuple[str, ...] = ()

    @property
    def cut_off(self) -> bool:
        """Return whether the text ended before the value did."""
        return "cut off" in self.faults

    @property
    def open_text(self) -> bool:
        """Return whether it ended inside a text, so that the reply cannot have been meant to end
        there.
        """
        return "open text" in self.faults


class _NoValueError(Exception):
    """Say that no value stands at a place."""


class _Reader(msgspec.Struct):
    text: str
    position: int
    faults: dict[str, None] = msgspec.field(default_factory=dict)

    def fault(self, name: str) -> None:
        self.faults[name] = None

    def skip(self) -> None:
        """Go past blanks, commas and remarks; they tell values apart, wherever they stand."""
        if match := _SPACE.match(self.text, self.position):
            gap = match[0]
            if "/" in gap or "#" in gap:
                self.fault("remark")
            if "," in gap and self.text[match.end() : match.end() + 1] in ("}", "]"):
                self.fault("trailing comma")
            self.position = match.end()

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def value(self, level: int) -> Any:
        """Return the value that begins here; raises where there is none."""
        first = self.peek()
        if not first:
            raise _CutError
        if first in ("{", "["):
            if level >= MOST_LEVELS:
                raise _NoValueError
            self.position += 1
            return self.members(level) if first == "{" else self.elements(level)
        if first in _QUOTES:
            return self.string()
        if number := _NUMBER.match(self.text, self.position):
            self.position = number.end()
            return _number(number[0])
        word = _WORD.match(self.text, self.position)
        if word is None or word[0] not in _WORDS:
            raise _NoValueError
        if word[0] not in ("true", "false", "null"):
            self.fault("word")
        self.position = word.end()
        return _WORDS[word[0]]

    def elements(self, level: int) -> list[Any]:
        listed: list[Any] = []
        try:
            while True:
                self.skip()
                if self._closed("]", "}"):
                    return listed
                listed.append(self.value(level + 1))
        except _CutError as cut:
            raise _CutError([*listed, cut.part] if cut.part else listed) from None

    def members(self, level: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        key = ""
        try:
            while True:
                self.skip()
                if self._closed("}", "]"):
                    return members
                key = self._key()
                self.skip()
                if not self.peek():
                    raise _CutError
                if self.peek() != ":":
                    raise _NoValueError
                self.position += 1
                self.skip()
                members[key] = self.value(level + 1)
        except _CutError as cut:
            raise _CutError({**members, key: cut.part} if cut.part else members) from None

    def _closed(self, closing: str, other: str) -> bool:
        """Go past the bracket that closes; the other kind of bracket closes too, as a fault."""
        mark = self.peek()
        if not mark:
            raise _CutError
        if mark not in (closing, other):
            return False
        if mark == closing:
            self.position += 1
        else:
            self.fault("bracket")  # left to the value around this one
        return True

    def _key(self) -> str:
        if self.peek() in _QUOTES:
            return self.string()
        place = (self.text, self.position)
        bare = _BARE_KEY.match(*place) or _NUMBER.match(*place)
        if bare is None:
            raise _NoValueError
        self.fault("key without quotes")
        self.position = bare.end()
        return bare[0].strip()

    def string(self) -> str:
        opening = self.peek()
        closing = _QUOTES[opening]
        if opening != '"':
            self.fault("quotes")
        stop = re.compile(rf"[\\{re.escape(closing)}]") if closing != '"' else _STOP
        parts: list[str] = []
        position = self.position + 1
        while match := stop.search(self.text, position):
            parts.append(self.text[position : match.start()])
            position = match.end()
            if match[0] == "\\":
                text, position = self._escape(position)
                parts.append(text)
            elif _AFTER.match(self.text, position):
                self.position = position
                return _join(parts)
            else:
                self.fault("quotes")
                parts.append(match[0])
        self.position = len(self.text)
        self.fault("open text")
        raise _CutError

    def _escape(self, position: int) -> tuple[str, int]:
        letter = self.text[position : position + 1]
        if letter == "u":
            try:
                return chr(int(self.text[position + 1 : position + 5], 16)), position + 5
            except ValueError:
                self.fault("escape")
                return "", position + 1
        if letter not in _ESCAPES and letter not in '"\\/':
            self.fault("escape")
        return _ESCAPES.get(letter, letter), position + 1


class _CutError(Exception):
    """Say that the text ended inside a value, and hold what was whole of it."""

    def __init__(self, part: Any = None) -> None:
        super().__init__()
        self.part = part


def _join(parts: list[str]) -> str:
    """Return parts as one text.

    Two halves of a character, each escaped for itself, become that character.
    """
    text = "".join(parts)
    if any("\ud800" <= character <= "\udfff" for character in text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_STOP = re.compile(r'[\\"]')


def _number(text: str) -> float | int:
    try:
        # A number by its pattern.
        return json.loads(text.lstrip("+"))  # type: ignore[no-any-return]
    except ValueError:
        return float(text)


def read_lenient(text: str, position: int) -> LenientValue | None:
    r"""Return the object or array that begins at `position`, None where what stands there is none.

    Of a value that the text ends in, what was whole is returned: a text that was not closed is left
    out.

    Examples
    --------
    >>> lenient = read_lenient("[{'name': 'Wilson's disease',}, // next", 0)
    >>> lenient.value, lenient.end
    ([{'name': "Wilson's disease"}], 39)
    >>> lenient.faults
    ('quotes', 'trailing comma', 'remark', 'cut off')
    >>> read_lenient("[see above]", 0) is None
    True
    """
    reader = _Reader(text, position)
    if reader.peek() not in ("{", "["):
        return None
    try:
        value = reader.value(0)
    except _NoValueError:
        return None
    except _CutError as cut:
        reader.fault("cut off")
        return LenientValue(cut.part, len(text), tuple(reader.faults))
    return LenientValue(value, reader.position, tuple(reader.faults))
