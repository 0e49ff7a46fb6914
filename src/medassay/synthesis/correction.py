"""A correction: what a reviewing model found wrong in an item, and the simplest change that mends
it.

Types: 0 complex or ambiguous, no change proposed; 1 key or an option; 2 the question; 3 the
pathway, alone or beside 1 or 2. The types that a model names must be those of what it changed.

Source: specification of bank synthesis, 10.1, flaw detection.
"""

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from medassay.core.records.item_line import item_line
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError
from medassay.synthesis.project import Event
from medassay.synthesis.question import checked_text, reply_record
from medassay.synthesis.records import CorrectableFields, Correction
from medassay.synthesis.refine import read_steps

TYPES = {
    0: "complex or ambiguous, to be rewritten or removed",
    1: "key or an option",
    2: "question",
    3: "pathway",
}
_LONGEST = 8000


class _CorrectionReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a review says; nothing of it is checked yet."""

    sense: Any
    key_right: Any
    also_right: Any
    path_right: Any
    guidelines: Any
    issues: Any
    types: Any
    reasons: Any
    item: Any
    path: Any


def item_text(record: ItemObject) -> str:
    """Return an item as a reviewer reads it, the right option named."""
    item = item_line(record)
    lines = [f"Condition: {item.condition}"] if item.condition else []
    lines += [f"Context: {item.context}"] if item.context else []
    lines.append(f"Question: {item.question}")
    lines += [f"{LETTERS[at]}. {text}" for at, text in enumerate(item.options)]
    lines.append(f"Key: {item.expected}")
    lines += [f"Pathway: {item.path}"] if item.path else []
    return "\n".join(lines)


def read_correction(reply: str, record: ItemObject) -> Correction:
    """Return a review of an item, with the item as it would stand after the change.

    Raises
    ------
    ValueError
        Saying what is missing, or that types and changes do not agree.
    """
    value = reply_record(reply, _CorrectionReply)
    for key in ("sense", "key_right", "path_right"):
        if type(getattr(value, key)) is not bool:
            raise ValueError(f"{key} is {getattr(value, key)!r:.40}; expected true or false")
    letters = LETTERS[: len(item_line(record).options)]
    for letter in _texts_of(value.also_right, "also_right"):
        if letter not in letters or len(letter) != 1:
            raise ValueError(
                f"also_right {letter!r:.20}; expected letters {letters[0]} to {letters[-1]}"
            )
    types = value.types
    if not isinstance(types, list) or any(type(t) is not int or t not in TYPES for t in types):
        raise ValueError(f"types {types!r:.40}; expected a list of numbers from 0 to 3")
    after = _after(value, record)
    changed = changes(shown_fields(record), after)
    if sorted(set(types)) != ([0] if 0 in types and not changed else changed):
        raise ValueError(
            f"types {sorted(set(types))}, but the change is of types {changed}; expected the same,"
            " and no change with type 0"
        )
    return Correction(
        sense=value.sense,
        key_right=value.key_right,
        path_right=value.path_right,
        also_right=value.also_right,
        guidelines=[line[:500] for line in _texts_of(value.guidelines, "guidelines")][:20],
        issues=[line[:1000] for line in _texts_of(value.issues, "issues")][:20],
        types=sorted(set(types)),
        reasons=checked_text(value.reasons, "reasons", _LONGEST),
        after=after,
    )


def _texts_of(value: Any, what: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        raise ValueError(f"{what} {value!r:.40}; expected a list of texts")
    return value


def shown_fields(record: ItemObject) -> CorrectableFields:
    """Return the fields of an item that a correction may change."""
    return msgspec.convert(record, CorrectableFields)


def _after(value: _CorrectionReply, record: ItemObject) -> CorrectableFields:
    if value.types == [0] and not value.item:
        return shown_fields(record)
    item, path = item_line(record), value.path
    after = _from_list(value.item, len(item.options))
    if not item.path and not path:
        return after
    steps = read_steps(path) if isinstance(path, str) and path else None
    return replace(after, path=item.path if steps is None else " -> ".join(steps))


def _from_list(item: Any, n_options: int) -> CorrectableFields:
    if not isinstance(item, list) or len(item) != 4 or not isinstance(item[2], list):
        raise ValueError("item is not the list of question, answer, options, letter")
    options = [checked_text(option, "an option", _LONGEST) for option in item[2]]
    letter = str(item[3]).strip().upper()
    if len(options) != n_options or len({o.casefold() for o in options}) < n_options:
        raise ValueError(f"item has {len(options)} options; expected {n_options} different ones")
    if len(letter) != 1 or letter not in LETTERS[:n_options]:
        raise ValueError(f"item has the letter {item[3]!r:.20}; expected one of its options")
    answer = checked_text(item[1], "the answer", _LONGEST)
    if answer.casefold() != options[LETTERS.index(letter)].casefold():
        raise ValueError("the answer of item is not the option of its letter")
    question = checked_text(item[0], "question", _LONGEST)
    return CorrectableFields(question=question, options=options, expected=letter)


def changes(before: CorrectableFields, after: CorrectableFields) -> list[int]:
    """Return the types of what differs, blanks aside."""
    key = _words(*before.options) != _words(*after.options) or before.expected != after.expected
    question = _words(before.question) != _words(after.question)
    # A new question may need new options: the change is of the question then.
    types = [2] if question else [1] if key else []
    return types + [3] * (_words(before.pathway) != _words(after.pathway))


def _words(*texts: str) -> list[list[str]]:
    return [text.split() for text in texts]


def checked_correction(event: Event, change: Any) -> CorrectableFields:
    """Return what a person would put in an item's place: any of question, options, expected, path.

    Raises
    ------
    InputError
        When that is no valid item.
    """
    name, before = event.place[1], event.shown_as(CorrectableFields)
    fields_known = {"question", "options", "expected", "path"}
    if not isinstance(change, dict) or not change or not change.keys() <= fields_known:
        raise InputError(
            f"change of '{name}': expected an object with {', '.join(sorted(fields_known))}"
        )
    try:
        after = msgspec.convert({**msgspec.to_builtins(before), **change}, CorrectableFields)
        options, letter = after.options, after.expected
        at = LETTERS.find(letter) if len(letter) == 1 else -1
        answer = options[at] if 0 <= at < len(options) else ""
        checked = _from_list([after.question, answer, options, letter], len(options))
        if after.path is not UNSET:
            checked = replace(checked, path=" -> ".join(read_steps(str(after.path))))
    except ValueError as error:  # msgspec's among them
        raise InputError(f"change of '{name}': {error}") from None
    if not changes(before, checked):
        raise InputError(f"change of '{name}': equals the item; expected something else, or keep")
    return checked
