"""Secrets never leave this process but in the header that they are meant for: what may hold them is
redacted first.

An endpoint may write the key that it was sent into a reply, a header or an error, whole or in part,
plain or encoded. So each key that is used is learnt here, and every text that is stored, logged or
shown goes through `redact`, before it is cut: half a key cut off is no longer recognised as one.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

STAND_IN = "***"
_SHORTEST = 6  # characters of a key that is looked for at all
_PART = 12  # characters of a key, of whatever kind, that are taken for a part of it
_MIXED_PART = 8  # the same where they are no plain word: see `_mixed`
_CODED = re.compile("[A-Za-z0-9+/_-]{12}")  # at least, where a part stands in base64
_LONG_NUMBER = 6  # digits, or capitals, that stand together by chance in no text
# Every part holds one whole block of so many characters: 2 × _BLOCK - 1 <= _MIXED_PART.
_BLOCK = 4


class _Key:
    """One key: the parts of it, in all the ways to write it, by which it is recognised."""

    def __init__(self, key: str) -> None:
        self._plain, self._coded = [*_plainly(key)], [*_in_base64(key)]
        self._blocks = _blocks(self._plain)
        self._coded_blocks = _blocks(self._coded)
        self._parts = {
            size: {part for text in (*self._plain, *self._coded) for part in _parts(text, size)}
            for size in (_MIXED_PART, _PART)
        }
        self._short = key if len(key) < _PART else ""
        self.sure = len(key) >= _PART or (len(key) >= _MIXED_PART and _mixed(key))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where this key and its parts stand in a text."""
        # Most texts hold no block of it, and are looked through no further.
        coded = _CODED.search(text) is not None
        blocks = [b for b in self._coded_blocks if b in text] if coded else []
        blocks += [block for block in self._blocks if block in text]
        if not blocks:
            return
        if self._short:
            for hit in re.finditer(re.escape(self._short), text):
                yield hit.span()
        yield from self._parts_in(text, blocks)

    def _parts_in(self, text: str, blocks: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Yield where parts of the key stand, those that overlap or touch as one."""
        start = end = -1
        looked = 0
        for hit in re.finditer("|".join(map(re.escape, blocks)), text):
            for at in range(max(looked, hit.start() - _PART), hit.end()):
                for size, parts in self._parts.items():
                    if text[at : at + size] in parts:
                        if at > end:
                            if end >= 0:
                                yield start, end
                            start = at
                        end = max(end, at + size)
            looked = max(looked, hit.end())
        if end >= 0:
            yield start, end


class Secrets:
    """The keys that this process uses; empty until one is learnt."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}

    def learn(self, keys: Iterable[str]) -> None:
        """Take note of keys; those of fewer than 6 characters can be told from no other text."""
        for key in keys:
            if len(key) >= _SHORTEST and key not in self._keys:
                self._keys[key] = _Key(key)

    def forget(self) -> None:
        """Know no keys."""
        self._keys.clear()

    def redact(self, text: str) -> str:
        """Return a text with `***` for every key, and for every part of one.

        A part is 12 characters or more of a key, or 8 that are no plain word; plain,
        percent-encoded, escaped as in JSON, or in base64 at whatever place of what was encoded.
        """
        return _without(text, self._keys.values())

    def redact_reply(self, text: str) -> str:
        """Return what a model said without the keys that no model says by chance.

        A key such as `ollama` or `password`, set where a server asks for some, is a word that an
        answer may hold by right.
        """
        return _without(text, (key for key in self._keys.values() if key.sure))

    def quote(self, text: str, most: int) -> str:
        """Return what somebody else said, for a message: redacted, on one line, then cut."""
        return " ".join(self.redact(text).split())[:most]


def _without(text: str, keys: Iterable[_Key]) -> str:
    """Return a text with `***` where keys and parts of them stand.

    All are looked for in the text as it was: of two keys with a part in common, the first that is
    taken out would leave a rest of the other.
    """
    pieces, at = [], 0
    for start, end in sorted(span for key in keys for span in key.spans(text)):
        if start >= at:
            pieces += [text[at:start], STAND_IN]
        at = max(at, end)
    return "".join([*pieces, text[at:]]) if pieces else text


def _parts(text: str, size: int) -> Iterator[str]:
    for at in range(len(text) - size + 1):
        part = text[at : at + size]
        if size >= _PART or _mixed(part):
            yield part


def _mixed(part: str) -> bool:
    """Return whether a text is more than plain words and numbers, so that no other text holds it by
    chance.
    """
    return not all(map(_plain, filter(None, re.split("[^A-Za-z0-9]+", part))))


def _plain(word: str) -> bool:
    """Return whether a piece may be a word or a number that a text holds by chance: no letters with
    digits, no row of capitals.
    """
    if word.isdigit():
        return len(word) < _LONG_NUMBER or len(set(word)) <= 2
    return word.isalpha() and (word.islower() or word.istitle() or len(word) < _LONG_NUMBER)


def _blocks(texts: Iterable[str]) -> tuple[str, ...]:
    """Return blocks of texts, of which every part of theirs holds at least one."""
    cut = (t[at : at + _BLOCK] for t in texts for at in range(0, len(t) - _BLOCK + 1, _BLOCK))
    return tuple(dict.fromkeys(cut))


def _plainly(key: str) -> Iterator[str]:
    """Yield the key itself, percent-encoded, and escaped as in JSON."""
    yield from dict.fromkeys((key, quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1]))


def _in_base64(key: str) -> Iterator[str]:
    """Yield the key in base64, at each of the three places that it may have in what was encoded."""
    raw = key.encode()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw + bytes(2)).decode()
        # Characters that the key alone decides, whatever stands before and behind it.
        core = encoded[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
        yield from dict.fromkeys((core, core.replace("+", "-").replace("/", "_")))


secrets = Secrets()
