"""What a scorer is, and how a plain function becomes one."""

from collections.abc import Callable, Sequence

import msgspec

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.own_code import OWN_CODE
from medassay.core.records.score import Score
from medassay.core.revision import revision_id
from medassay.core.scale import Scale

ScoreOne = Callable[[Item, Answer], tuple[float | None, str]]


class Scorer(msgspec.Struct, frozen=True):
    """Turns answers into scores on a declared scale.

    A failed trial is null: the provider's fault, unknown. Any other missing answer gets the worst
    of the scale and says why: it stays in the denominator and can be counted apart; unless
    `missing_is_worst` is false, since nothing is known of what would have been right.

    `revision` is raised by one with every change of code that changes a score or its reason.
    """

    name: str
    score_one: ScoreOne
    revision: int
    scale: Scale = Scale()
    missing_is_worst: bool = True

    @property
    def id(self) -> str:
        """Return `name/revision`."""
        return revision_id(self.name, self.revision)

    def score(self, items: Sequence[Item], answers: Sequence[Answer]) -> list[Score]:
        """Return one score for each answer, in order."""
        return [self._score_of(item, answer) for item, answer in zip(items, answers, strict=True)]

    def _score_of(self, item: Item, answer: Answer) -> Score:
        if answer.outcome == "failed":
            return Score(item_id=item.id, value=None, because="failed")
        if answer.reason.startswith(OWN_CODE) and answer.value is None:  # nobody knows what it said
            return Score(item_id=item.id, value=None, because=answer.reason)
        if answer.value is None or answer.outcome != "answered":
            worst = self.scale.worst if self.missing_is_worst else None
            return Score(item_id=item.id, value=worst, because=answer.outcome)
        value, because = self.score_one(item, answer)
        return Score(item_id=item.id, value=value, because=because)


def per_item(name: str, score_one: ScoreOne, *, revision: int) -> Scorer:
    """Return the scorer that applies a plain function to each answered item."""
    return Scorer(name, score_one, revision)
