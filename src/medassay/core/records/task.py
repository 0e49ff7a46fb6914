"""What a task is: which items, how their replies are read, how answers are scored."""

import math
from collections.abc import Mapping

import msgspec

from medassay.core.records.likelihood import Asks
from medassay.core.records.model import REPLY_TOKENS
from medassay.core.records.own_code import OwnCode
from medassay.core.records.target import Form
from medassay.core.scale import Scale

# Ends the setting of rows that were asked for replies in a task of likelihoods.
GENERATION_SUFFIX = "_gen"


BLANK_LINE = "\n\n"  # ends an answer, where a task says so
CHAT_SUFFIX = "_chat"  # ends the name of a task in the model's own form of a conversation


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task as a value: for each form of item the names of its parser and scorer.

    A parser of None means that the answer came with the item's prediction (imports); a scorer of
    None that answers are judged, by the grader that `graders` names for the form, before
    `n_judges` judges. `graphs` are those that a grader of graphs takes unless the plan names
    others. `asks` is what models are asked for: a reply, or how likely texts are; `likelihood`
    names the task that asks the latter of the same items, `fallback` the one by which models that
    cannot tell are asked, in rows of their own. With `plain` local models get the prompt as it
    stands, without their form of a conversation; completions end before any of `stop`, and have at
    most `reply_tokens` where a model's entry does not say. `metrics` are those by which texts are
    compared with references. `parser_before` read the replies of runs that do not say how they were
    read. `parts` gives the task of each form where items of several kinds are asked, each in the
    way of its own; their scores are of several metrics, and are never averaged. `own` is what it
    takes from files of the user in place of what medassay has.
    """

    name: str
    metric: str
    split: str
    template: str
    readers: Mapping[Form, tuple[str | None, str | None]]
    graders: Mapping[Form, str] = msgspec.field(default_factory=dict)
    n_judges: int = 3
    graphs: tuple[str, ...] = ()
    scale: Scale = Scale()
    asks: Asks = "reply"
    chat_template: bool = False
    plain: bool = False
    stop: tuple[str, ...] = ()
    reply_tokens: int = REPLY_TOKENS
    metrics: tuple[str, ...] = ()
    likelihood: str = ""
    fallback: str = ""
    parser_before: str = ""
    parts: "Mapping[Form, Task]" = msgspec.field(default_factory=dict)
    own: OwnCode | None = None

    @property
    def harmful(self) -> float | None:
        """Return the score of a harmful answer.

        None for scales without a worst end, which measure no answer.
        """
        return self.scale.lo if math.isfinite(self.scale.hi) else None

    @property
    def parsers(self) -> dict[Form, str | None]:
        """Return form → the parser that reads its replies."""
        return {form: parser for form, (parser, _) in self.readers.items()}

    def part(self, form: Form) -> "Task":
        """Return the task by which items of a form are asked and scored."""
        return self.parts.get(form, self)

    @property
    def single_tasks(self) -> "list[tuple[Task, frozenset[Form]]]":
        """Return each of its tasks with the forms that it asks, in order of their names."""
        if not self.parts:
            return [(self, frozenset(self.readers))]
        tasks = {task.name: task for task in self.parts.values()}
        return [
            (task, frozenset(form for form, part in self.parts.items() if part.name == name))
            for name, task in sorted(tasks.items())
        ]

    def accepts(self, split: str, form: Form) -> bool:
        """Return whether an item of this split and form belongs to this task."""
        return split == self.split and form in self.readers
