"""Parsers and scorers of a user, as the machinery calls them."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from medassay.core.parser import Extraction, Parser, Reading
from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.own_code import OWN_CODE, CodePart, OwnCode
from medassay.core.records.prompt import Prompt
from medassay.core.records.score import Score
from medassay.core.reply.refusal import SAID
from medassay.core.reply.thoughts import strip_thoughts
from medassay.core.scale import Scale
from medassay.own_code.process import OwnCodeError, process_of
from medassay.score.scorer import Scorer

READ_BY_OWN = "own parser"


def own_parser(code: OwnCode) -> Parser:
    """Return the parser that calls the function of a user.

    It reads the reply without thoughts. What the function does wrong leaves the reply unparsed, and
    its reason begins with "own code"; such an answer has no score.
    """
    part = code.parts["parser"]

    def read(
        item: Item, prompt: Prompt, text: str, mode: Extraction, *, cut: bool = False
    ) -> Reading:
        answer_text, unfinished = strip_thoughts(text)
        if unfinished and not answer_text.strip():
            return Reading(None, "thought not ended", "truncated")
        try:
            value = process_of(code, "parser").call("parser", item, answer_text)
            return _as_banked(_reading(value, part), item, prompt, part)
        except OwnCodeError as error:
            return Reading(None, str(error))

    return Parser(part.id, read, revision=1)


def _as_banked(reading: Reading, item: Item, prompt: Prompt, part: CodePart) -> Reading:
    """Return a reading of a choice with the letter of the bank in place of the letter shown."""
    if not item.options or reading.value is None:
        return reading
    letters = prompt.letters or item.letters
    letter = reading.value.strip().upper()
    if letter not in letters or len(letter) != 1:
        raise OwnCodeError(
            f"{OWN_CODE} {part.name}: returned {reading.value!r:.40} for a choice; expected one of"
            f" its letters as they were shown, {letters[0]} to {letters[-1]}"
        )
    if prompt.order is not None:
        letter = item.letters[prompt.order[letters.index(letter)]]
    return replace(reading, value=letter)


def _reading(value: Any, part: CodePart) -> Reading:
    if value is None:
        return Reading(None, "nothing read")
    if isinstance(value, str):
        return Reading(value, READ_BY_OWN)
    if isinstance(value, dict) and value.keys() == {"outcome", "value", "reason"}:
        outcome, read, reason = value["outcome"], value["value"], str(value["reason"])[:300]
        if outcome == "answered" and isinstance(read, str):
            return Reading(read, reason or READ_BY_OWN)
        if outcome in ("refused", "truncated", "unparsed") and read is None:
            reason = SAID if outcome == "refused" else reason
            if outcome == "truncated":
                return Reading(None, reason, "truncated")
            return Reading(None, reason)
    raise OwnCodeError(
        f"{OWN_CODE} {part.name}: returned {_text(value)}; expected a text, None or an Answer"
        " that is answered with a text, or refused, truncated or unparsed with None"
    )


def failed(answer: Answer) -> bool:
    """Return whether own code failed to read an answer, so that nobody knows its worth."""
    return answer.value is None and answer.reason.startswith(f"{OWN_CODE} ")


class OwnScorer(Scorer, frozen=True):
    """The scorer that calls the function of a user.

    What the function does wrong leaves the answer without a score, and its reason begins with "own
    code". Besides the score it may give the columns that the plan declares.
    """

    own: OwnCode = msgspec.field(default_factory=OwnCode)

    @property
    def _part(self) -> CodePart:
        return self.own.parts["scorer"]

    def _score_of(self, item: Item, answer: Answer) -> Score:
        if answer.outcome != "answered" or answer.value is None:
            return super()._score_of(item, answer)
        try:
            result = process_of(self.own, "scorer").call("scorer", item, answer)
            value, columns = self._numbers(result)
        except OwnCodeError as error:
            return Score(item_id=item.id, value=None, because=str(error))
        because = f"scored by {self._part.name}"
        if value is None:
            because = f"{OWN_CODE} {self._part.name}: knows no score"
        return Score(item_id=item.id, value=value, because=because, parts=columns)

    def _numbers(self, value: Any) -> tuple[float | None, dict[str, float | None]]:
        if not (isinstance(value, dict) and value.keys() == {"mapping"}):
            if self.own.columns:
                names = ", ".join(("score", *self.own.columns))
                raise self._error(f"returned {_text(value)}; expected a mapping with {names}")
            return number_on(value, self.scale, self._part, "score"), {}
        numbers: Mapping[str, Any] = value["mapping"]
        scales = {"score": self.scale, **self.own.column_scales}
        if strange := sorted(numbers.keys() - scales.keys()):
            raise self._error(
                f"returned '{strange[0][:40]}'; declare it in [task.columns], as {strange[0][:40]}"
                " = [0, 1]"
            )
        if absent := [name for name in scales if name not in numbers]:
            raise self._error(
                f"returned no '{absent[0]}'; give None for a number that nobody can know"
            )
        checked = {
            name: None
            if numbers.get(name) is None
            else number_on(numbers[name], scale, self._part, name)
            for name, scale in scales.items()
        }
        return checked.pop("score"), checked

    def _error(self, why: str) -> OwnCodeError:
        return OwnCodeError(f"{OWN_CODE} {self._part.name}: {why}")


def own_scorer(code: OwnCode) -> OwnScorer:
    """Return the scorer that calls the function of a user."""
    part = code.parts["scorer"]
    return OwnScorer(part.id, _never, 1, code.score_scale, own=code)


def _never(item: Item, answer: Answer) -> tuple[float | None, str]:
    raise NotImplementedError("the function of the user scores in its place")


def number_on(value: Any, scale: Scale, part: CodePart, name: str) -> float:
    """Return a number that own code gave.

    Raises
    ------
    OwnCodeError
        When it is no number, or lies off its scale.
    """
    is_number = isinstance(value, int | float) and not (
        isinstance(value, float) and math.isnan(value)
    )
    if not is_number or not scale.lo <= value <= scale.hi:
        raise OwnCodeError(
            f"{OWN_CODE} {part.name}: {name} is {_text(value)}; expected a number from"
            f" {scale.lo:g} to {scale.hi:g}"
        )
    return float(value)


def _text(value: Any) -> str:
    """Return a value as a reason tells it, short."""
    if isinstance(value, dict) and value.keys() == {"type"}:
        return f"a {value['type']}"[:60]
    return "None" if value is None else f"{value!r:.40}"
