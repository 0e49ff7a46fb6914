"""A second, lenient reading of a reply: whatever may be meant, by other and simpler rules than
those that score.

It never scores. Where it says something else than the first reading, a person should look: one of
the two is wrong.
"""

import json
import re
from collections.abc import Callable

from medassay.core.records.diagnosis import plain_name
from medassay.core.records.health_record import RECORD
from medassay.core.records.item import Item
from medassay.core.records.target import Choice, Diagnoses, Form, Range, Record, Report
from medassay.core.reply.lenient_json import read_lenient
from medassay.core.reply.thoughts import strip_thoughts
from medassay.kinds.record.reply import read_record_reply

_READ = 20_000  # characters of a reply that are looked at
_NAMES = 5  # of a list that are compared
_LETTER = re.compile(r"(?<![A-Za-z'’])([A-Z])(?![A-Za-z'’])")
_FIRST = re.compile(r"\W*([A-Za-z])(?:[^A-Za-z]|(?=[A-Z][a-z])|$)")
_NUMBER = re.compile(r"[-+−]?\d+(?:[.,]\d+)*")
_LISTED = re.compile(
    r"^[\s>*_#+|(\[-]*(?:\d{1,2}|[a-j])\s?[.):\]|]{1,2}\s*(?P<name>.+)$|"
    r"^\s*[-•*–]\s+(?P<point>.+)$",
    re.MULTILINE,
)
_NAMED = re.compile(
    r"[\"'](?:name|diagnosis|disease|"
    r"condition)[\"']\s*:\s*[\"'](?P<name>[^\"\n]{2,160}?)[\"']\s*[,}\n]"
)
_NAME_ENDS = re.compile(r"\s*(?:[:：;]|\s[-–—]\s|\.\s|\(|\[|\||,\s\"|$)")


def _choice(item: Item, text: str, letters: str, options: tuple[str, ...]) -> str | None:
    """Return the letter at the beginning, else the one option that the reply quotes, else the last
    letter that stands alone.
    """
    first = _FIRST.match(text)
    if first and first[1].upper() in letters:
        return first[1].upper()
    quoted = [
        at
        for at, option in enumerate(options)
        if len(option) > 3 and option.casefold() in text.casefold()
    ]
    if len(quoted) == 1:
        return letters[quoted[0]]
    alone = [match[1] for match in _LETTER.finditer(text) if match[1] in letters]
    return alone[-1] if alone else None


def _number(item: Item, text: str, letters: str, options: tuple[str, ...]) -> str | None:
    numbers = _NUMBER.findall(text)
    if not numbers:
        return None
    number = numbers[-1].replace("−", "-")
    number = (
        number.replace(".", "").replace(",", ".")
        if item.target_as(Range).locale == "de"
        else number.replace(",", "")
    )
    try:
        return repr(float(number))
    except ValueError:
        return None


def _diagnoses(item: Item, text: str, letters: str, options: tuple[str, ...]) -> str | None:
    """Return the first five names behind any mark, or under any key that names a disease."""
    listed_names = [match["name"] for match in _NAMED.finditer(text)]
    listed_names = listed_names or [
        match["name"] or match["point"] for match in _LISTED.finditer(text)
    ]
    names = []
    for name in listed_names:
        plain = plain_name(
            _NAME_ENDS.split(name.strip(" *_\"'`"), maxsplit=1)[0].strip(" *_\"'`.,")
        )
        if plain and plain not in names:
            names.append(plain)
    return json.dumps(names[:_NAMES], ensure_ascii=False) if names else None


def _record(item: Item, text: str, letters: str, options: tuple[str, ...]) -> str | None:
    """Return the record in anything that looks like JSON."""
    at = text.find("{")
    read = read_lenient(text, at) if at >= 0 else None
    if read is None or not isinstance(read.value, dict) or RECORD not in read.value:
        return None
    return json.dumps(read.value, ensure_ascii=False, sort_keys=True, default=str)


def _text(item: Item, text: str, letters: str, options: tuple[str, ...]) -> str | None:
    return "text" if text.strip() else None


_LENIENT: dict[Form, Callable[[Item, str, str, tuple[str, ...]], str | None]] = {
    "choice": _choice,
    "diagnoses": _diagnoses,
    "open": _text,
    "range": _number,
    "record": _record,
    "regex": _text,
    "report": _record,
    "rubric": _text,
    "text": _text,
}


def read_leniently(item: Item, text: str, *, order: tuple[int, ...] | None = None) -> str | None:
    """Return what a reply may mean, in the form of `comparable`.

    None where nothing can be made of it.

    Parameters
    ----------
    order : of a choice whose options were shown in another order than the bank's

    Examples
    --------
    >>> target = Choice(options=("salt", "water"), expected="A")
    >>> item = Item(id="q", domain="d", question="Which?", target=target)
    >>> read_leniently(item, "I would give water.")
    'B'
    """
    answer_text = strip_thoughts(text[:_READ])[0].strip()
    if item.form not in _LENIENT or not answer_text:
        return None
    options = item.options if order is None else tuple(item.options[at] for at in order)
    value = _LENIENT[item.form](item, answer_text, item.letters, options)
    if value is not None and order is not None:
        return item.letters[order[item.letters.index(value)]]
    return value


def comparable(item: Item, value: str | None) -> str | None:
    """Return the first reading's value in the form in which a lenient one is given."""
    if value is None:
        return None
    if isinstance(item.target, Diagnoses):
        names = [plain_name(entry["name"]) for entry in json.loads(value)]
        return json.dumps(names[:_NAMES], ensure_ascii=False) if names else None
    if isinstance(item.target, Record | Report):
        # Of some tasks the value is the whole reply, with the record in it.
        record = read_record_reply(value).value
        dumped = json.dumps(record, ensure_ascii=False, sort_keys=True, default=str)
        return None if record is None else dumped
    return value if isinstance(item.target, Choice | Range) else "text"
