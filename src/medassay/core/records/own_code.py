"""What a user brings along in files of their own: functions, prompts, and the table `[task]` of a
plan that names them.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import ConfigDict

from medassay.core.canonical import canonical
from medassay.core.keyed import KeyedRecord
from medassay.core.records.document_schema import DocumentSchema
from medassay.core.scale import Scale

Role = Literal["scorer", "parser", "grader"]
ROLES: tuple[Role, ...] = ("scorer", "parser", "grader")
# Begins the reason of whatever own code could not do.
OWN_CODE = "own code"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SHORTEST, _LONGEST = 0.1, 3600.0  # seconds

Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class OwnTask(KeyedRecord):
    """The table `[task]`: a task that is like another one, but for what is named here.

    Attributes
    ----------
    like : the task that it is like
    scorer, parser, grader : functions (a class for the grader) as `my.py:score`, a file beside the
        plan, or an entry point of an installed package
    template, grader_template : files of prompts
    metric : how the score is called; default: the name of its function
    scale : ends of the score
    columns : numbers that the scorer gives besides, each with its ends
    seconds : that one call may take

    Examples
    --------
    >>> from medassay import OwnTask, Plan
    >>> own = OwnTask(like="closed", scorer="my.py:score", metric="caution")
    >>> Plan(banks=("demo",), models=("mine",), own=own).own.metric
    'caution'
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    KEYS: ClassVar = (
        *("like", "scorer", "parser", "grader", "template", "grader_template"),
        *("metric", "scale", "columns", "seconds"),
    )

    like: str = ""
    scorer: str = ""
    parser: str = ""
    grader: str = ""
    template: str = ""
    grader_template: str = ""
    metric: str = ""
    scale: Ends = (0.0, 1.0)
    columns: Mapping[str, Ends] = field(default_factory=dict)
    seconds: float = 10.0

    def problem(self) -> str | None:
        """Return what is wrong with the table, None if nothing is."""
        return self._parts_problem() or self._numbers_problem()

    def _parts_problem(self) -> str | None:
        named = [name for name in self.KEYS[1:6] if getattr(self, name)]
        if not named:
            return (
                "[task] names nothing of your own; give it a scorer, parser, grader, template or"
                ' grader_template, or write task = "NAME" for a task that comes with medassay'
            )
        if self.scorer and self.grader:
            return "'task.scorer' and 'task.grader' both give the score; leave one of them out"
        if self.grader and self.grader_template:
            return "'task.grader' writes its own prompt; leave 'task.grader_template' out"
        if self.columns and not self.scorer:
            return "'task.columns' are numbers of 'task.scorer'; name one, or leave them out"
        return None

    def _numbers_problem(self) -> str | None:
        for name, ends in {"scale": self.scale, **self.columns}.items():
            if not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
                return (
                    f"'task.{name}' is {ends[0]:g} to {ends[1]:g}; expected two finite numbers, the"
                    " lower one first"
                )
        for name in (self.metric, *self.columns):
            if name and (not _NAME.fullmatch(name) or name == "score"):
                return f"'task' calls a number '{name}'; expected a-z, 0-9 and _, but not 'score'"
        if not _SHORTEST <= self.seconds <= _LONGEST:
            return (
                f"'task.seconds' is {self.seconds:g}; {_SHORTEST:g} to {_LONGEST:g} seconds for one"
                " call are needed"
            )
        return None


@dataclass(frozen=True, kw_only=True)
class CodePart:
    """A function or class that is not part of medassay.

    Attributes
    ----------
    name : as the plan says it, without folders: `my.py:score`
    sha256 : of its file, or of all code of its package
    package : its distribution and version where it is an entry point, else ""
    text : of its file; empty where it is not at hand, and for packages
    """

    name: str
    sha256: str
    package: str = ""
    text: bytes = field(default=b"", repr=False)

    @property
    def shown(self) -> str:
        """Return how readers are told of it: `my.py:score@1f0c2d3a4b5c`."""
        return f"{self.name}@{self.sha256[:12]}"

    @property
    def id(self) -> str:
        """Return how a run names it among the parts of its method; no name that a scorer, parser or
        grader of medassay could have.
        """
        return f"{self.name}#{self.sha256[:12]}"

    @property
    def function(self) -> str:
        """Return the name of the function or class in its file."""
        return self.name.rpartition(":")[2]

    @property
    def file(self) -> str:
        """Return the name of its file; the module of an entry point."""
        return self.name.rpartition(":")[0]

    def to_dict(self) -> dict[str, str]:
        """Return it as a run remembers it: without its text."""
        package = {"package": self.package} if self.package else {}
        return {"name": self.name, "sha256": self.sha256, **package}


@dataclass(frozen=True, kw_only=True)
class OwnCode:
    """What a task takes from its user's files.

    Attributes
    ----------
    parts : functions by role
    templates, grader_templates : name of a prompt → language → text; language "" for all others
    schema : of the records that are asked for; None where none are
    runs : whether the code may be executed here
    """

    parts: Mapping[Role, CodePart] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    grader_templates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    metric: str = ""
    scale: Ends = (0.0, 1.0)
    columns: Mapping[str, Ends] = field(default_factory=dict)
    seconds: float = 10.0
    schema: DocumentSchema | None = None
    runs: bool = False

    @property
    def parser_name(self) -> str:
        """Return the name of its parser, "" where it has none."""
        return self.parts["parser"].name if "parser" in self.parts else ""

    @property
    def scores(self) -> bool:
        """Return whether own code gives the score, as a scorer or as a grader."""
        return "scorer" in self.parts or "grader" in self.parts

    @property
    def score_scale(self) -> Scale:
        """Return the scale of the score."""
        return Scale(lo=self.scale[0], hi=self.scale[1])

    @property
    def column_scales(self) -> dict[str, Scale]:
        """Return the scales of the columns."""
        return {name: Scale(lo=lo, hi=hi) for name, (lo, hi) in self.columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return it as a run remembers it: with its prompts, and the hashes of its code."""
        return {
            "parts": {role: part.to_dict() for role, part in sorted(self.parts.items())},
            "templates": {name: dict(texts) for name, texts in sorted(self.templates.items())},
            "grader_templates": {n: dict(t) for n, t in sorted(self.grader_templates.items())},
            "metric": self.metric,
            "scale": list(self.scale),
            "columns": {name: list(ends) for name, ends in self.columns.items()},
            "seconds": self.seconds,
            **({"schema": json.loads(self.schema.text)} if self.schema is not None else {}),
        }


class RunCodePart(msgspec.Struct, frozen=True, kw_only=True):
    """A function as a run remembers it."""

    name: str
    sha256: str
    package: str = ""

    @property
    def shown(self) -> str:
        """Return its name with the first digits of its hash, and its package:
        `my.py:score@1f0c2d3a4b5c of extra 1.0`.
        """
        package = f" of {self.package}" if self.package else ""
        return f"{self.name}@{self.sha256[:12]}{package}"


class RunOwnCode(msgspec.Struct, frozen=True, kw_only=True):
    """What a run remembers of its user's files."""

    parts: dict[Role, RunCodePart] = {}
    templates: dict[str, dict[str, str]] = {}
    grader_templates: dict[str, dict[str, str]] = {}
    metric: str = ""
    scale: Ends = (0.0, 1.0)
    columns: dict[str, Ends] = {}
    seconds: float = 10.0
    schema: dict[str, Any] | None = None

    @property
    def own_code(self) -> OwnCode:
        """Return it as a task takes it; its code is not at hand and does not run."""
        return OwnCode(
            parts={
                role: CodePart(name=part.name, sha256=part.sha256, package=part.package)
                for role, part in self.parts.items()
            },
            templates=self.templates,
            grader_templates=self.grader_templates,
            metric=self.metric,
            scale=self.scale,
            columns=self.columns,
            seconds=self.seconds,
            schema=None if self.schema is None else DocumentSchema(canonical(self.schema)),
        )
