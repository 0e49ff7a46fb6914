"""Cases for pathways: what a model replied becomes question, answer and five options, or is refused
with the reason.

Source: specification of bank synthesis, 10.1, question generation; the path stays hidden (HB-06).
"""

import random
import re
import unicodedata
from collections.abc import Sequence, Set
from typing import Any, TypeVar

import msgspec
from msgspec.structs import fields

from medassay.core.json import unchecked
from medassay.core.records.target import LETTERS
from medassay.core.reply.json_value import read_json_reply
from medassay.synthesis.pathway import same_leaf

OPTIONS = 5
T = TypeVar("T", bound=msgspec.Struct)
_FIELDS = 4  # question, answer, options, letter
_LONGEST_QUESTION, _LONGEST_OPTION = 3000, 400  # characters
_PREFIX = re.compile(r"\A\(?([A-Ea-e])[.):]\)?\s+")
_CLEARLY = 12  # characters from which an answer in the question is no chance
_NAMED = 3  # steps one after the other, word for word, show a pathway


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its reference answer, five options, and the place of the right one."""

    question: str
    answer: str
    options: tuple[str, ...]
    key: int

    @property
    def letter(self) -> str:
        """Return the letter of the right option."""
        return LETTERS[self.key]

    def to_list(self) -> list[str | list[str]]:
        """Return it in the form in which models write it."""
        return [self.question, self.answer, list(self.options), self.letter]


def read_question(value: Any) -> Question:
    """Return the question in a parsed reply, `[question, answer, [five options], letter]`.

    Texts lose outer blanks and line breaks, options a leading "A. " where all of them have their
    letter.

    Raises
    ------
    ValueError
        Saying which rule is broken.

    Examples
    --------
    >>> read_question(["Q?", "B text", ["A. A", "B. B text", "C. C", "D. D", "E. E"], "b"]).options[
    ...     1]
    'B text'
    """
    if not isinstance(value, list) or len(value) != _FIELDS:
        actual = f"{len(value)} fields" if isinstance(value, list) else type(value).__name__
        raise ValueError(f"{actual}; expected a list of question, answer, five options, letter")
    question = checked_text(value[0], "question", _LONGEST_QUESTION)
    answer = checked_text(value[1], "answer", _LONGEST_OPTION)
    options = checked_options(value[2])
    letter = value[3].strip().upper() if isinstance(value[3], str) else value[3]
    if not isinstance(letter, str) or len(letter) != 1 or letter not in LETTERS[:OPTIONS]:
        raise ValueError(f"letter {value[3]!r:.20}; expected one of A to E")
    key = LETTERS.index(letter)
    if same_leaf(_PREFIX.sub("", answer)) not in (
        same_leaf(options[key]),
        same_leaf(_PREFIX.sub("", options[key])),
    ):
        raise ValueError(
            f"the answer '{answer[:60]}' is not option {letter}, '{options[key][:60]}'"
        )
    return Question(question=question, answer=options[key], options=options, key=key)


def checked_text(value: Any, what: str, longest: int) -> str:
    """Return a text in NFC without outer blanks and line breaks.

    Raises ValueError for what is no honest text.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} {value!r:.40}; expected text that is not blank")
    text = " ".join(unicodedata.normalize("NFC", value).split())
    if not text.isprintable():
        raise ValueError(f"{what} holds a control character")
    if not any(character.isalnum() for character in text):
        raise ValueError(f"{what} {text!r:.40} holds no word")
    if len(text) > longest:
        raise ValueError(f"{what} has {len(text):,} characters; at most {longest:,}")
    return text


def checked_options(value: Any) -> tuple[str, ...]:
    """Return five options that differ but for case and blanks.

    Anything else raises ValueError.
    """
    if not isinstance(value, list) or len(value) != OPTIONS:
        actual = f"{len(value)} options" if isinstance(value, list) else f"{value!r:.40}"
        raise ValueError(f"{actual}; expected a list of five options")
    texts = [checked_text(option, "an option", _LONGEST_OPTION) for option in value]
    prefixes = [_PREFIX.match(text) for text in texts]
    if all(p is not None and p[1].upper() == LETTERS[at] for at, p in enumerate(prefixes)):
        texts = [
            checked_text(_PREFIX.sub("", text), "an option", _LONGEST_OPTION) for text in texts
        ]
    if len({same_leaf(text) for text in texts}) < OPTIONS:
        raise ValueError("two options are the same; expected five different ones")
    return tuple(texts)


def read_reply(reply: str, steps: Sequence[str]) -> Question:
    """Return the question in a model's reply about a pathway.

    Raises
    ------
    ValueError
        Saying what is wrong: no JSON, a broken rule, or a question that shows the pathway or its
        answer.
    """
    json_value = read_json_reply(reply)
    if json_value.value is None:
        raise ValueError(json_value.reason)
    question = read_question(json_value.value)
    if (step_shown := shows(question, steps)) is not None:
        raise ValueError(step_shown)
    return question


def reply_object(reply: str, keys: Set[str]) -> dict[str, Any]:
    """Return the JSON object of a reply that has these keys, and perhaps others.

    Raises
    ------
    ValueError
        When there is none, or a key is absent.
    """
    json_value = read_json_reply(reply)
    if not isinstance(json_value.value, dict):
        raise ValueError(json_value.reason or "a list; expected one JSON object")
    if absent := sorted(keys - json_value.value.keys()):
        raise ValueError(f"no key '{absent[0]}'; expected {', '.join(sorted(keys))}")
    return json_value.value


def reply_record(reply: str, kind: type[T]) -> T:
    """Return the JSON object of a reply as a record with its keys; what has no default must be
    there. Nothing is checked of values that may be anything.

    Raises
    ------
    ValueError
        When there is none, or a key is absent.
    """
    keys = {field.encode_name for field in fields(kind) if field.required}
    return unchecked(reply_object(reply, keys), kind)


def contains(question: str, answer: str) -> bool:
    """Return whether a question contains its answer word for word.

    Short answers may stand there by chance.
    """
    return len(answer) >= _CLEARLY and same_leaf(answer) in same_leaf(question)


def shows(question: Question, steps: Sequence[str]) -> str | None:
    """Return how a question or an option gives the pathway or the answer away, None if neither
    does.
    """
    for text in (question.question, *question.options):
        if "->" in text or "→" in text:
            return f"an arrow in '{text[:60]}' shows the pathway"
    if contains(question.question, question.answer):
        return f"the question contains its answer '{question.answer[:60]}'"
    question_words, named = same_leaf(question.question), [same_leaf(step) for step in steps]
    for at in range(len(named) - _NAMED + 1):
        if _in_order(named[at : at + _NAMED], question_words):
            return (
                f"the question names {_NAMED} steps of the pathway one after the other, from"
                f" '{steps[at][:40]}' on"
            )
    return None


def _in_order(parts: Sequence[str], text: str) -> bool:
    place = 0
    for part in parts:
        position = text.find(part, place)
        if position < 0:
            return False
        place = position + len(part)
    return True


def shuffled(question: Question, seed: int, name: str) -> Question:
    """Return a question with its options in an order of its own: models put the right one where
    they like.
    """
    order = list(range(OPTIONS))
    random.Random(f"{seed}\x1f{name}").shuffle(order)
    return Question(
        question=question.question,
        answer=question.answer,
        options=tuple(question.options[at] for at in order),
        key=order.index(question.key),
    )
