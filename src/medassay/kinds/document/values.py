"""Values of a record in one form, so that what says the same is the same text.

A record is gone through beside its schema: entries of arrays with a key are put under that key,
numbers, dates and codes are written in one way, and a number within the tolerance of an expected
one becomes that one. What is left is compared as JSON.

Both records may be hostile: units are read by a short grammar before any library sees them.
"""

import datetime as dt
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from medassay.core.catch import caught
from medassay.core.records.document_schema import (
    UNKNOWN,
    DocumentSchema,
    FieldRule,
    SchemaNode,
)

Path = tuple[str | int, ...]  # names of fields and entries, and places in lists
ENTRY = "#"  # before the name of an entry, which no field has
_DIGITS = 30  # of a number at most; more is no measurement
_NUMBER = re.compile(
    r"([-+−]?)(\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE]([-+]?\d{1,2}))?(?![\d.,])\s*(.*)\Z", re.DOTALL
)
_GROUPED = re.compile(r"[1-9]\d{0,2}[.,]\d{3}\Z")  # 1,000 or 1.000: a thousand, or one?
_WORD = r"[A-Za-zµμΩ°%]{1,12}(?:\^?-?\d|[²³])?"
_UNIT = re.compile(rf"{_WORD}(?: ?[/·*] ?{_WORD}){{0,3}}\Z")
_ISO = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ]\d{1,2}:\d{2}.{0,20})?)?)?\Z")
_DOTTED = re.compile(r"(?:(\d{1,2})\.\s?)?(\d{1,2})\.\s?(\d{4})\Z")
_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})\Z")
_EQUAL = 1e-9  # relative, of converted quantities


class Plain(msgspec.Struct):
    """A record in one form.

    Attributes
    ----------
    value : JSON
    numbers : numbers by the path of their field, for tolerances: place in the record → (number,
        unit)
    """

    value: Any = None
    numbers: dict[str, dict[Path, tuple[float, str]]] = msgspec.field(default_factory=dict)


def plain_record(record: Any, schema: DocumentSchema) -> Plain:
    """Return a record in one form, whatever shape it has."""
    plain = Plain()
    plain.value = _plain(record, schema.root, (), (), plain)
    return plain


def near(expected: Plain, reply: Plain, schema: DocumentSchema) -> tuple[Any, Any]:
    """Return two records as they are compared: of the given one each number that is near an
    expected one of its field is that one, and of entries with one key those that are equal come
    first.

    A number is compared with the expected one in its place; in lists, whose entries have not found
    each other yet, with all of that list, and the nearest counts.
    """
    value = reply.value
    rules = {part.path: part.rule for part in schema.fields if part.rule is not None}
    for path, numbers in reply.numbers.items():
        golds: dict[Path, list[Path]] = {}
        for at in expected.numbers.get(path, {}):
            golds.setdefault(_without_places(at), []).append(at)
        for place, number in numbers.items():
            fitting = []
            for at in golds.get(_without_places(place), []):
                gold = expected.numbers[path][at]
                converted = _converted(number, gold[1])
                if converted is not None and _within(converted, gold[0], rules[path]):
                    fitting.append((abs(gold[0] - converted), str(at), at))
            if fitting:
                value = _with(value, place, _at(expected.value, min(fitting)[2]))
    return _equal_first(expected.value, value), value


def _without_places(place: Path) -> Path:
    return tuple("[]" if isinstance(step, int) else step for step in place)


def _equal_first(gold: Any, reply: Any) -> Any:
    """Return an expected record whose lists begin with the entries that the given one has."""
    if isinstance(gold, dict) and isinstance(reply, dict):
        return {key: _equal_first(part, reply.get(key)) for key, part in gold.items()}
    if isinstance(gold, list) and isinstance(reply, list):
        return sorted(gold, key=lambda entry: entry not in reply)
    return gold


def _within(number: float, gold: float, rule: FieldRule) -> bool:
    reach = rule.tolerance * abs(gold) if rule.relative else rule.tolerance
    return abs(number - gold) <= reach + _EQUAL * max(abs(number), abs(gold))


def _plain(value: Any, node: SchemaNode, path: tuple[str, ...], place: Path, out: Plain) -> Any:
    """Return a value in one form.

    Parameters
    ----------
    path : of the field, without places and entries
    place : where the value is put
    """
    fields, entry = node.fields, node.entry
    if isinstance(value, dict) and fields is not None:
        return {
            key: _plain(part, fields.get(key, UNKNOWN), (*path, key), (*place, key), out)
            for key, part in value.items()
        }
    if isinstance(value, list) and entry is not None:
        if not node.key:
            return [_plain(v, entry, path, (*place, i), out) for i, v in enumerate(value)]
        return {
            name: [_plain(v, entry, path, (*place, name, i), out) for i, v in enumerate(entries)]
            for name, entries in _named(value, node.key).items()
        }
    # A value of another shape than the schema says has no rule, nor has an object or array.
    if node.rule is None or value is None or isinstance(value, dict | list):
        return value
    return _leaf(value, node.rule, path, place, out)


def _named(entries: Sequence[Any], key: str) -> dict[str, list[Any]]:
    """Return name → the entries whose key says it; several may say the same."""
    named: dict[str, list[Any]] = {}
    for entry in entries:
        name = entry.get(key) if isinstance(entry, dict) else None
        text = str(name) if isinstance(name, str | int | float) else ""
        named.setdefault(ENTRY + (_code(text) or text.strip()), []).append(entry)
    return named


def _leaf(value: Any, rule: FieldRule, path: tuple[str, ...], place: Path, out: Plain) -> Any:
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    if rule.compare == "code":
        return _code(text)
    if rule.compare == "exact":
        return " ".join(text.split()).casefold()
    if rule.compare == "date":
        return _date(text)
    if rule.compare == "number":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        quantity = _of_number(value, rule.unit) if is_number else _quantity(text, rule.unit)
        if quantity is None:
            return " ".join(text.split()).casefold()
        out.numbers.setdefault(".".join(path), {})[place] = quantity
        return f"{quantity[0]!r} {quantity[1]}".strip()
    return value


def _code(text: str) -> str:
    """Return a code without blanks and marks, but for a sign at its end.

    Examples
    --------
    >>> _code("I10.9"), _code("i 10.9"), _code("Rh+"), _code("Rh-")
    ('i109', 'i109', 'rh+', 'rh-')
    """
    bare = text.strip()
    sign = bare[-1] if bare and bare[-1] in "+-" else ""
    return "".join(c for c in bare.casefold() if c.isalnum()) + sign


def _date(text: str) -> str:
    """Return a date as YYYY-MM-DD, or as much of it as there is; what is none as it is.

    Examples
    --------
    >>> _date("5.1.2026"), _date("2026-01-05T10:00:00"), _date("01.2026"), _date("2026-13-45")
    ('2026-01-05', '2026-01-05', '2026-01', '2026-13-45 is no date')
    """
    bare = " ".join(text.split())
    if match := _ISO.match(bare) or _SLASHED.match(bare):
        parts = [match[1], match[2], match[3]]
    elif match := _DOTTED.match(bare):
        parts = [match[3], match[2], match[1]]
    else:
        return bare.casefold()
    year, month, day = (int(part) if part else 1 for part in parts)
    try:
        dt.date(year, month, day)
    except ValueError:
        return f"{bare.casefold()} is no date"
    return "-".join(part.zfill(2) for part in parts if part)


def _of_number(value: float, unit: str) -> tuple[float, str] | None:
    with caught() as errors:
        return float(value), unit
    return None if errors else (0.0, unit)


def _quantity(text: str, unit: str) -> tuple[float, str] | None:
    """Return number and unit; None where there is no number, or one that may be read in two ways.

    Examples
    --------
    >>> _quantity("0,5 g", "mg"), _quantity("12", "mg"), _quantity("1,000.5 mg", "")
    ((0.5, 'g'), (12.0, 'mg'), (1000.5, 'mg'))
    >>> _quantity("1,000 mg", ""), _quantity("none", ""), _quantity("500 mg (1 tablet", "")
    (None, None, None)
    """
    match = _NUMBER.match(text.strip())
    if match is None or len(match[2]) > _DIGITS:
        return None
    sign, digits, exponent, rest = match.groups()
    own_unit = rest.strip()
    if _GROUPED.match(digits) or (own_unit and not _UNIT.match(own_unit)):
        return None
    number = _plain_digits(digits)
    if number is None:
        return None
    value = float(f"{number}e{exponent or 0}")
    return -value if sign in ("-", "−") else value, own_unit or unit


def _plain_digits(digits: str) -> str | None:
    """Return digits with a point alone: groups of three are told by two kinds of marks, or by one
    kind that stands twice.
    """
    marks = [c for c in digits if c in ".,"]
    if len(marks) < 2:
        return digits.replace(",", ".")
    last = marks[-1] if len(set(marks)) == 2 and marks.count(marks[-1]) == 1 else ""
    integer, _, part = digits.rpartition(last) if last else (digits, "", "")
    groups = re.split("[.,]", integer)
    if not 1 <= len(groups[0]) <= 3 or any(len(group) != 3 for group in groups[1:]):
        return None
    return "".join(groups) + (f".{part}" if part else "")


def _converted(quantity: tuple[float, str], unit: str) -> float | None:
    """Return a number in another unit, None where it is of another kind."""
    number, own_unit = quantity
    if own_unit == unit:
        return number
    if not own_unit or not unit or not (_UNIT.match(own_unit) and _UNIT.match(unit)):
        return None
    factor = _by_factor(number, own_unit, unit)
    if factor is None and not (_is_known(own_unit) and _is_known(unit)):
        return number if own_unit.casefold() == unit.casefold() else None
    return factor


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


@cache
def _is_known(unit: str) -> bool:
    with caught():
        _registry().Unit(unit)
        return True
    return False


def _by_factor(number: float, own_unit: str, unit: str) -> float | None:
    # Whatever the library says of a foreign text, there is no conversion then.
    with caught():
        return float(_registry().Quantity(number, own_unit).to(unit).magnitude)
    return None


def _at(value: Any, place: Path) -> Any:
    for step in place:
        value = value[step]
    return value


def _with(value: Any, place: Path, leaf: Any) -> Any:
    """Return a record with another value in one place."""
    if not place:
        return leaf
    step, rest = place[0], place[1:]
    if isinstance(value, list):
        return [_with(v, rest, leaf) if i == step else v for i, v in enumerate(value)]
    return {key: _with(v, rest, leaf) if key == step else v for key, v in value.items()}
