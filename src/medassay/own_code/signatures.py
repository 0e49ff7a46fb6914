"""What functions of one's own look like: the signatures that a plan's `[task]` takes."""

from collections.abc import Mapping
from typing import Protocol

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.prompt import Message


class ScoreFunction(Protocol):
    """`scorer`: the worth of an answer.

    It returns a number on the scale of the plan, or a mapping with the number under `score` and
    those of `[task.columns]` beside it; None for a number that nobody can know. Only answers that
    were read are scored: any other has the lower end of the scale.
    """

    def __call__(self, item: Item, answer: Answer) -> float | Mapping[str, float | None]:
        """Return the score."""


class ReadFunction(Protocol):
    """`parser`: what a reply says; `text` is the reply without the thoughts before it.

    It returns the value, None where the reply says none, or an `Answer` that says why.
    """

    def __call__(self, item: Item, text: str) -> str | Answer | None:
        """Return what was read."""


class GraderClass(Protocol):
    """`grader`: what a judge is asked, and what its reply says; made without arguments.

    `answer.value` is the text as a judge may see it: without what betrays who wrote it.
    """

    def prompt(self, item: Item, answer: Answer) -> list[Message]:
        """Return the messages to the judge."""

    def verdict(self, item: Item, answer: Answer, reply: str) -> float | None:
        """Return the score on the scale of the plan; None asks the judge again, at most twice."""
