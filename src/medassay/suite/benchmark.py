"""`Benchmark`: a bank, and how it is asked; one of the catalogue, or of a suite plan."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from pydantic import ConfigDict

from medassay.core.keyed import KeyedRecord
from medassay.core.record_check import RecordError, check_types
from medassay.core.records.own_code import OwnTask
from medassay.core.records.trial import Setting
from medassay.kinds.catalog import TASKS

LIKELIHOOD = "closed_likelihood"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MOST = 1e9
_PATHS = ("scorer", "parser", "grader", "template", "grader_template")  # of own tasks


@dataclass(frozen=True, kw_only=True)
class Benchmark(KeyedRecord):
    """One benchmark: a bank, and the task that asks it.

    Attributes
    ----------
    name : how the suite calls it; of the catalogue the key there
    title, group : how published tables name data set and task
    bank : a set of `medassay bank list`, or the folder of a bank beside the plan
    folder : where the files of a set lie below the data folder; without one as the set is called
    task, own : as `task` in a plan, a name or a table
    template : what likelihoods of options are asked with, or replies of other tasks
    reply_template : what replies are asked with where no model tells likelihoods
    stands_in_for : the benchmark that it replaces where that one's files are not here
    relaxed : also asks for Relaxed Perplexity of the statements that answers must and may hold
    settings, repeats, few_shot_k, shuffle_options, judges, metrics : as in a plan
    weight : of its score in the mean of the suite; 0 leaves it out
    vote : tells the score of the answer that most of the repeats give, too
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    KEYS: ClassVar = (
        *("name", "title", "group", "bank", "folder", "task", "own", "template", "reply_template"),
        *("stands_in_for", "relaxed", "settings", "repeats", "few_shot_k", "shuffle_options"),
        *("judges", "metrics", "weight", "vote"),
    )

    name: str = ""
    title: str = ""
    group: str = "own benchmarks"
    bank: str
    folder: str = ""
    task: str = LIKELIHOOD
    own: OwnTask | None = None
    template: str = ""
    reply_template: str = ""
    stands_in_for: str = ""
    relaxed: bool = False
    settings: tuple[Setting, ...] = ("zero_shot",)
    repeats: int = 1
    few_shot_k: int = 3
    shuffle_options: bool = False
    judges: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    weight: float = 0.0
    vote: bool = False

    def __post_init__(self) -> None:
        """Refuse what a file of plans refuses.

        Raises
        ------
        InputError
            Naming the field.
        """
        check_types(self)
        if not self.name:  # of the catalogue
            return
        if not _NAME.fullmatch(self.name):
            raise RecordError(self, f"benchmark '{self.name}': expected a-z, 0-9, _ and -")
        if self.vote and self.repeats < 3:
            raise RecordError(
                self, f"benchmark '{self.name}': 'vote' needs 'repeats' of 3 at least"
            )
        for key, value, least in (("repeats", self.repeats, 1), ("weight", self.weight, 0)):
            if not least <= value < _MOST:
                problem = f"'{key}' is {value:g}; at least {least} is needed"
                raise RecordError(self, f"benchmark '{self.name}': {problem}")
        own_problem = None if self.own is None else self.own.problem()
        if own_problem is not None:
            raise RecordError(self, f"benchmark '{self.name}': {own_problem}")

    @property
    def shown_title(self) -> str:
        """Return how tables name it."""
        return self.title or self.name

    @property
    def is_open(self) -> bool:
        """Return whether answers are texts that metrics compare with references."""
        if self.own is not None and (self.own.scorer or self.own.grader):
            return False
        return self.task in TASKS and bool(TASKS[self.task].metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, without what is as by default."""
        return {k: v for k, v in super().to_dict().items() if v != _PLAIN.get(k)}


_DEFAULTS = {f.name: f.default for f in fields(Benchmark)}
_PLAIN = {k: list(v) if isinstance(v, tuple) else v for k, v in _DEFAULTS.items()}


_PLAIN_TASK = OwnTask().to_dict()


def task_table(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table `[[benchmark]]` with its task as the record holds it."""
    task = benchmark.get("task", "")
    if not isinstance(task, dict):
        return {**benchmark, "task": task}
    return {**benchmark, "task": task.get("like", ""), "own": task}


def relative_task(task: OwnTask, prefix: str) -> dict[str, Any]:
    """Return a table `[task]` with the paths of its files behind a prefix, without defaults."""
    table = {k: v for k, v in task.to_dict().items() if v != _PLAIN_TASK.get(k)}
    for key in _PATHS:
        name = str(table.get(key, ""))
        if name.endswith(".txt") or ".py:" in name:
            table[key] = prefix + name
    return table
