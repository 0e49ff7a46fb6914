"""`SynthesisPlan`: what items shall be made, from what, by whom. TOML in, record out.

One of four tables says which maker works: [pathways], [proposals], [exam] or [translation].
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from medassay.core.keyed import KeyedRecord
from medassay.core.plan_file import read_toml, typed
from medassay.core.record_check import RecordError, check_types
from medassay.core.records.plan import BudgetRules
from medassay.errors import InputError
from medassay.synthesis.pathway import MOST_PER_LEAF

Version = Literal["quiz", "open"]
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class Pathways(KeyedRecord):
    """Cases for decision pathways.

    `sources` is a document, or a folder of them, one a condition, named as it; a long one is cut
    into chapters. `graphs` is a folder of decision graphs under the same names, and what has none
    there is asked of the generator. `conditions` are names to show in place of those of files,
    `dates` when each was written where its file does not say, `domains` the domain of each (all by
    the name of the document or chapter). With `refine` each pathway is rewritten in uniform words
    first.
    """

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = (
        "sources",
        "graphs",
        "max_per_leaf",
        "refine",
        "versions",
        "conditions",
        "domains",
        "dates",
    )

    sources: str
    graphs: str = ""
    max_per_leaf: int = MOST_PER_LEAF
    refine: bool = True
    versions: tuple[Version, ...] = ("quiz", "open")
    conditions: dict[str, str] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    dates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Proposals(KeyedRecord):
    """Private items: drafted by the generator on each topic, reviewed by a model of another family,
    approved by their owner.

    `against` are banks of which a draft must not be a near duplicate, besides those that ship:
    folders relative to the plan, or patterns such as "../banks/*".
    """

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("topics", "reviewer", "domain", "form", "rounds", "against")

    topics: tuple[str, ...]
    reviewer: str
    domain: str
    form: Version = "open"
    rounds: int = 3
    against: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Exam(KeyedRecord):
    """Items of an official exam: closed as they are, and as open questions where `open_versions`
    says so.

    `file` is a PDF or a CSV; `key` a CSV with the columns number and cop for a PDF without answers,
    empty or "impugned" where the exam board withdrew a question. `columns` are the columns of a CSV
    (exam_id, question, op1 … op4 or op5, cop, year, category), where they bear other names.
    `selector` chooses between two open versions and says which key is the only right one; of
    another family.
    """

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("file", "key", "columns", "year", "category", "open_versions", "selector")

    file: str
    key: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    year: int | None = None
    category: str = ""
    open_versions: bool = False
    selector: str = ""


@dataclass(frozen=True, kw_only=True)
class Translation(KeyedRecord):
    """The items of a bank in another language; each is checked by people before it counts."""

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("bank", "to")

    bank: str
    to: str


@dataclass(frozen=True, kw_only=True)
class SynthesisPlan(KeyedRecord):
    """What items shall be made.

    `name` is that of the bank, `generator` the entry of the models file that writes; `attempts` how
    often a question is asked for at most. `language` is that of the items. The budget bounds one
    call of the command.
    """

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = (
        *("name", "generator", "models_file", "title", "licence", "limits", "language", "seed"),
        *("attempts", "may_leave", "budget", "pathways", "proposals", "exam", "translation"),
    )

    name: str
    generator: str = ""
    models_file: str = "models.json"
    title: str = ""
    licence: str = "unstated"
    limits: str = ""
    language: str = "en"
    seed: int = 0
    attempts: int = 10
    may_leave: bool = True
    budget: BudgetRules = field(default_factory=BudgetRules)
    pathways: Pathways | None = None
    proposals: Proposals | None = None
    exam: Exam | None = None
    translation: Translation | None = None

    def __post_init__(self) -> None:
        """Refuse what a file of such a plan refuses, with the same words.

        Raises
        ------
        InputError
            Naming the first field that is wrong.
        """
        check_types(self)
        for place, problem in _problems(self):
            raise RecordError(self, f"'{place}': {problem}")

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values; the seed is text, since it may exceed 2^53."""
        plain = {key: value for key, value in super().to_dict().items() if value is not None}
        return {**plain, "seed": str(self.seed)}

    @property
    def maker(self) -> str:
        """Return the name of the table that says what is made."""
        return next(name for name in MAKERS if getattr(self, name) is not None)


MAKERS = ("pathways", "proposals", "exam", "translation")
_MOST_ATTEMPTS = 100
_MOST_ROUNDS = 10


def load_synthesis_plan(path: Path) -> SynthesisPlan:
    """Return the plan in a TOML file; paths in it are relative to the file's folder.

    Raises
    ------
    InputError
        Naming the file, the field and what was expected.
    """
    data = read_toml(path, "expected a plan of items to make")
    try:
        return typed(SynthesisPlan, data, str(path))
    except RecordError as error:
        raise InputError(f"{path}: {error.problem}") from None


def _problems(plan: SynthesisPlan) -> Iterator[tuple[str, str]]:
    names = [name for name in MAKERS if getattr(plan, name) is not None]
    if len(names) != 1:
        text = " and ".join(f"[{name}]" for name in names) or "none"
        yield "plan", f"{text}; expected one of the tables [{'], ['.join(MAKERS)}]"
    if not re.fullmatch(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*", plan.name):
        yield "name", f"{plan.name!r}; expected a name without slashes, not hidden"
    elif not plan.name.strip() or plan.name == "overall":
        yield (
            "name",
            f"{plan.name!r}; expected a name, and not 'overall', which names a ranking",
        )
    if plan.seed < 0:
        yield "seed", f"{plan.seed}; at least 0 is needed"
    if not 1 <= plan.attempts <= _MOST_ATTEMPTS:
        yield "attempts", f"1 to {_MOST_ATTEMPTS} are possible; at least 1 is needed"
    if not plan.licence.strip():
        yield "licence", 'empty; expected text, as "CC0-1.0"'
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", plan.language):
        yield "language", f"{plan.language!r:.40}; expected the code of a language, as en"
    for name, bound in plan.budget.bounds.items():
        if bound is not None and not 0 <= bound < 1e15:
            yield f"budget.{name}", f"{bound!r:.40}; expected a number from 0"
    if not plan.generator and not (plan.exam is not None and not plan.exam.open_versions):
        yield "generator", "absent; name the entry of the models file that writes"
    yield from _table_problems(plan)


def _table_problems(plan: SynthesisPlan) -> Iterator[tuple[str, str]]:
    pathways, proposals, exam = plan.pathways, plan.proposals, plan.exam
    if pathways is not None and pathways.max_per_leaf < 1:
        yield "pathways.max_per_leaf", "at least 1 is needed"
    if pathways is not None and len(set(pathways.versions)) != max(1, len(pathways.versions)):
        yield "pathways.versions", 'expected "quiz", "open" or both, each once'
    for name, domain in _domains(plan):
        if not domain.strip() or domain == "overall":
            yield (
                name,
                f"{domain!r}; expected a domain, and not 'overall', which names a ranking",
            )
    if proposals is not None and not (proposals.topics and all(map(str.strip, proposals.topics))):
        yield "proposals.topics", "empty; expected at least one topic"
    if proposals is not None and not 1 <= proposals.rounds <= _MOST_ROUNDS:
        yield "proposals.rounds", f"{proposals.rounds}; 1 to {_MOST_ROUNDS} are possible"
    if exam is not None and exam.open_versions and not exam.selector:
        yield "exam.selector", "absent; open versions need a model that chooses between two"


def _domains(plan: SynthesisPlan) -> Iterator[tuple[str, str]]:
    if plan.pathways is not None:
        for document, domain in plan.pathways.domains.items():
            yield f"pathways.domains.{document}", domain
    if plan.proposals is not None:
        yield "proposals.domain", plan.proposals.domain
