"""`Plan`: the frozen wish that a run fulfils. TOML in, record out, and back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.keyed import KeyedRecord, keyed
from medassay.core.plan_file import read_toml, typed
from medassay.core.record_check import RecordError, adapter_of, check_types
from medassay.core.records.context_config import CONTEXTS, Retrieval, ToolRules
from medassay.core.records.own_code import OwnTask
from medassay.core.records.relaxed import RelaxedSetting
from medassay.core.records.trial import Mode, Setting
from medassay.errors import InputError

RankRule = Literal["simultaneous", "leader", "arena", "closure"]
Separation = Literal["both", "percentile", "overlap"]


@dataclass(frozen=True, kw_only=True)
class BudgetRules(KeyedRecord):
    """Upper bounds on what a run may spend, however often it is started; None is no bound.

    Attributes
    ----------
    calls : requests
    tokens : of prompts and replies together
    money : in the currency of the prices
    unknown_prices : whether money may be bounded although an entry has no price, which then counts
        as nothing
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    KEYS: ClassVar = ("calls", "tokens", "money", "unknown_prices")

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    unknown_prices: Literal["refuse", "allow"] = "refuse"

    @property
    def bounds(self) -> dict[str, float | None]:
        """Return the bounds by name."""
        return {"calls": self.calls, "tokens": self.tokens, "money": self.money}

    def problem(self) -> str | None:
        """Return what is wrong with the bounds, None if nothing is."""
        for name, bound in self.bounds.items():
            if bound is not None and not 0 <= bound < math.inf:
                return f"'budget.{name}' is {bound}; a number from 0 is needed"
        return None


AGGREGATING = (
    "preset",
    "k",
    "x0",
    "semantic_max",
)  # of `DdxRules`: what leaves scores as they are
_LONGEST_LIST = 40  # as many entries of a list are read
_MAY_BE_EMPTY = ("templates", "graphs", "metrics")
_STEEPEST = 100.0  # beyond, the worst case alone counts
_LONGEST_TIME = 1e6  # minutes or seconds
_MOST_WORKERS = 10_000
_LARGEST_SHARD = 100_000


@dataclass(frozen=True, kw_only=True)
class DdxRules(KeyedRecord):
    """How ranked diagnoses are scored and their cases aggregated.

    Attributes
    ----------
    rank_limit : names of a list that count
    preset : steepness of the case weights that leads in figures
    k, x0 : steepness and middle of your own beside the presets; they lead then
    semantic_max : score that is rescaled to 1: a number, or `published` (10.33, of the authors'
        figures)
    unjudged : what a name without a label does: counts as the largest distance, or is left out
    severity_map : `separate` holds rarity apart from severity
    names : files of disease names, relative to the plan
    names_first : whether names that equal a golden one need no judge; False labels every name, as
        the published method does
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    KEYS: ClassVar = (
        "rank_limit",
        "preset",
        "k",
        "x0",
        "semantic_max",
        "unjudged",
        "severity_map",
        "names",
        "names_first",
    )

    rank_limit: int = 5
    preset: Literal["easy", "medium", "hard"] = "hard"
    k: float | None = None
    x0: float | None = None
    semantic_max: float | str = 16.0
    unjudged: Literal["d_max", "exclude_rank"] = "d_max"
    severity_map: Literal["published", "separate"] = "published"
    names: tuple[str, ...] = ()
    names_first: bool = True

    def problem(self) -> str | None:
        """Return what is wrong with the numbers, None if nothing is."""
        if not 1 <= self.rank_limit <= _LONGEST_LIST:
            return f"'ddx.rank_limit' is {self.rank_limit:.4g}; 1 to {_LONGEST_LIST} is needed"
        if (self.k is None) != (self.x0 is None):
            return "'ddx.k' and 'ddx.x0' go together; give both, or a preset"
        if self.k is not None and not 0 < self.k <= _STEEPEST:
            return f"'ddx.k' is {self.k:g}; a number above 0, at most {_STEEPEST:g}, is needed"
        if self.x0 is not None and not -1 <= self.x0 <= 1:
            return f"'ddx.x0' is {self.x0:g}; a rescaled score from -1 to 1 is needed"
        maximum = self.semantic_max
        if maximum != "published" and (isinstance(maximum, str) or not 1 <= maximum <= 16):
            return f"'ddx.semantic_max' is {maximum}; a number from 1 to 16, or \"published\""
        return None


@dataclass(frozen=True, kw_only=True)
class EngineRules(KeyedRecord):
    """How a plan is spread over processes, and when asking ends; no number depends on it.

    Attributes
    ----------
    workers : processes that ask endpoints; 0: as many as the cluster has processors to spare
    shard : units that each takes at once
    replicas : model → processes that load its weights
    give_up_after : a model is given up for this start once so many requests in a row failed
    give_up_minutes : or once all failed for so long
    grace : seconds that a stop waits for the requests under way
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    KEYS: ClassVar = ("workers", "shard", "replicas", "give_up_after", "give_up_minutes", "grace")

    workers: int = 0
    shard: int = 1000
    replicas: Mapping[str, int] = field(default_factory=dict)
    give_up_after: int = 20
    give_up_minutes: float = 10.0
    grace: float = 8.0

    def problem(self) -> str | None:
        """Return what is wrong with the numbers, None if nothing is."""
        if not 0 <= self.workers <= _MOST_WORKERS:
            return f"'engine.workers' is {self.workers}; 0 to {_MOST_WORKERS} is needed"
        if not 1 <= self.shard <= _LARGEST_SHARD:
            return f"'engine.shard' is {self.shard}; 1 to {_LARGEST_SHARD} units are needed"
        if self.give_up_after < 1:
            return f"'engine.give_up_after' is {self.give_up_after}; at least 1 request is needed"
        for name in ("give_up_minutes", "grace"):
            if not 0 < getattr(self, name) <= _LONGEST_TIME:
                return (
                    f"'engine.{name}' is {getattr(self, name):g}; a number above 0, at most"
                    f" {_LONGEST_TIME:g}, is needed"
                )
        for name, times in self.replicas.items():
            if not 1 <= times <= _MOST_WORKERS:
                return f"'engine.replicas' of '{name}' is {times}; 1 to {_MOST_WORKERS} is needed"
        return None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is wanted: banks × models × settings × modes × repeats, with seed and budget.

    Attributes
    ----------
    name : for people; no part of what the run is
    task : what is asked and how it is scored; without one each item is asked by the task of its
        kind. In a file a table `[task]` holds a task with functions and prompts of your own
    tasks : form of an item → task that asks it, in place of that of its kind
    own : what the table `[task]` says, in Python
    schema : JSON Schema of the records that models shall write: a file, or the name of one that
        comes with medassay
    banks : folders of banks, relative to the plan, or names of shipped ones
    models : names of entries of the models file
    models_file : relative to the plan
    settings : what a model gets besides the question: `zero_shot`, `few_shot`, `rag`,
        `topline_path`, `topline_text`, `topline_all`
    modes : `solo`, or `tools`: the model may call tools
    repeats : how often each item is asked
    seed : of samples, shuffles, draws of intervals, and what endpoints are sent
    templates : prompts; default: the task's own. Each of several gives every model a row of its
        own, in the setting `<setting>:<template>`
    sample : so many test items of each bank, spread evenly over domains, fixed by the seed;
        default: all
    few_shot_k : examples in the setting few_shot
    shuffle_options : whether options are shown in an order that depends on the item
    extraction : `paper` reads replies by the rules of the published study
    rank_rule : `simultaneous` tests all pairs at once, and ranks are ranges; the others rank by
        whether single intervals overlap
    separation : which intervals must not overlap under those rules: `both`, `percentile`, or
        `overlap`, the first one, where touching is no overlap
    pooled_small : whether a domain of fewer than 10 items is marked in the overall ranking, or
        left out
    max_cut_off : a model with a larger share of replies cut off at the token limit is not ranked
    n_resamples : draws of an interval
    preset : `published` stands for the rule of the source: percentile intervals of 1,000 draws,
        rows joined by overlap share a rank
    budget : bounds on what is spent; no part of what the run is
    judges : names of entries of the models file
    substitute : a judge of a fourth family: with it no judge grades its own family
    allow_own : whether a judge may grade itself
    steps : file of evaluation steps for G-Eval, in place of those that come with it
    graphs : graphs of judgements, by name or file: the first one's score counts, the others stand
        beside it
    ddx : rules of tasks on diagnoses
    scoring : `likelihood` asks for no reply but how likely texts are
    chat_template : whether prompts of likelihoods are put into each model's own form of a
        conversation
    relaxed_perplexity : how completions are made for Relaxed Perplexity
    metrics : where the models of metrics are, as `bertscore=models/roberta-large`, or which to
        leave out, as `bleurt=none`
    retrieval : what the settings of contexts and the tool doc_retrieval search
    tools : rules of the mode `tools`
    engine : how the work is spread over processes and machines; no part of what the run is
    demonstration : whether scripted models are asked to show what a board looks like: they are
        ranked there, and every page says that they are scripted

    Examples
    --------
    >>> from medassay import Plan
    >>> plan = Plan(banks=("demo",), models=("mine",), sample=12, seed=7)
    >>> plan.hash == Plan(banks=("demo",), models=("mine",), sample=12, seed=7, name="x").hash
    True
    >>> Plan(banks=("demo",), models=())
    Traceback (most recent call last):
    medassay.core.record_check.RecordError: Plan: 'models' is empty; name at least one
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str = "run"
    task: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)
    own: OwnTask | None = None
    schema: str = ""
    banks: tuple[str, ...]
    models: tuple[str, ...]
    models_file: str = "models.json"
    settings: tuple[Setting, ...] = ("zero_shot",)
    modes: tuple[Mode, ...] = ("solo",)
    repeats: int = 1
    seed: int = 0
    templates: tuple[str, ...] = ()
    sample: int | None = None
    few_shot_k: int = 3
    shuffle_options: bool = False
    extraction: Literal["standard", "paper"] = "standard"
    rank_rule: RankRule = "simultaneous"
    separation: Separation = "both"
    pooled_small: Literal["mark", "exclude"] = "mark"
    max_cut_off: float = 0.1
    n_resamples: int = 1000
    preset: Literal["", "published"] = ""
    budget: BudgetRules = BudgetRules()
    judges: tuple[str, ...] = ()
    substitute: str = ""
    allow_own: bool = False
    steps: str = ""
    graphs: tuple[str, ...] = ()
    ddx: DdxRules = DdxRules()
    scoring: Literal["generation", "likelihood"] = "generation"
    chat_template: bool = False
    relaxed_perplexity: RelaxedSetting | None = None
    metrics: tuple[str, ...] = ()
    retrieval: Retrieval | None = None
    tools: ToolRules | None = None
    engine: EngineRules = EngineRules()
    demonstration: bool = False

    def __post_init__(self) -> None:
        """Refuse what a file of plans refuses, with the same words.

        Raises
        ------
        InputError
            Naming the first field that is wrong.
        """
        check_types(self)
        if self.preset == "published":
            for name, value in _PUBLISHED.items():
                current = getattr(self, name)
                if current not in (value, _DEFAULTS[name]):
                    raise RecordError(self, _beside_preset(name, current))
                object.__setattr__(self, name, value)
        if (problem := _problem(self)) is not None:
            raise RecordError(self, problem)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values; the seed is text, since it may exceed 2^53."""
        plain = keyed(
            self,
            "name",
            "task",
            "banks",
            "models",
            "models_file",
            "settings",
            "modes",
            "repeats",
            "seed",
            "templates",
            "sample",
            "few_shot_k",
            "shuffle_options",
            "extraction",
            "rank_rule",
            "separation",
            "pooled_small",
            "max_cut_off",
            "n_resamples",
            "budget",
            "judges",
            "substitute",
            "allow_own",
            "steps",
            "graphs",
            "ddx",
            "scoring",
            "chat_template",
            "relaxed_perplexity",
            "metrics",
            "retrieval",
            "tools",
            "engine",
            "demonstration",
            "schema",
        )
        plain["seed"] = str(self.seed)
        # A plan that names no task had the hash of one that names the closed one, and keeps it.
        plain["task"] = self.task or "closed"
        if self.tasks:
            plain.pop("task")
            plain["tasks"] = dict(sorted(self.tasks.items()))
        if self.own is not None:
            plain["task"] = self.own.to_dict()
        for name in _UNSAID_BY_DEFAULT:
            if getattr(self, name) == _DEFAULTS[name]:
                plain.pop(name)
        return plain

    @property
    def hash(self) -> str:
        """Return the first 12 digits of the SHA-256 of the plan.

        Name, budget and engine are left out.
        """
        document = {
            k: v for k, v in self.to_dict().items() if k not in ("name", "budget", "engine")
        }
        return sha256_hex(canonical(document))[:12]


_DEFAULTS = {plan_field.name: plan_field.default for plan_field in fields(Plan)}
# Keys that came later: a plan that does not use them has the hash that it had before.
_UNSAID_BY_DEFAULT = (
    *("ddx", "graphs", "scoring", "pooled_small", "max_cut_off", "chat_template"),
    *("relaxed_perplexity", "metrics", "retrieval", "tools", "engine", "demonstration", "schema"),
)
_PUBLISHED = {"rank_rule": "closure", "separation": "overlap", "n_resamples": 1000}
PlanSource = Plan | Mapping[str, Any] | str | Path  # what verbs take for a plan


def rules_from_dict(data: Mapping[str, Any]) -> DdxRules:
    """Return the rules that a run remembers."""
    return adapter_of(DdxRules).validate_python(dict(data))


def plan_from_dict(data: dict[str, Any], where: str) -> Plan:
    """Return the plan in `data`; `where` names the file in errors.

    Raises
    ------
    InputError
        Naming the key that is unknown or wrong.
    """
    if isinstance(data.get("task"), dict):
        own = data["task"]
        data = {**data, "task": own.get("like", ""), "own": own}
    elif "own" in data:
        raise InputError(f"{where}: unknown key 'own'; what is your own stands in a table [task]")
    if data.get("preset") == "published":
        for name, value in _PUBLISHED.items():
            if data.get(name, value) != value:
                raise InputError(f"{where}: {_beside_preset(name, data[name])}")
    try:
        return typed(Plan, data, where)
    except RecordError as error:
        raise InputError(f"{where}: {error.problem}") from None
    except InputError as error:
        problem = str(error).replace(": 'own.", ": 'task.").replace(", own,", ",")
        raise InputError(problem) from None


def _beside_preset(name: str, value: object) -> str:
    return (
        f"'preset' is \"published\" and '{name}' is {value!r}; that preset has"
        f" {_PUBLISHED[name]!r}, leave one of the two out"
    )


def _problem(plan: Plan) -> str | None:
    """Return what is wrong with a plan whose values have the right types, None if nothing is."""
    for name, least in (("repeats", 1), ("few_shot_k", 1), ("n_resamples", 100), ("seed", 0)):
        if getattr(plan, name) < least:
            return f"'{name}' is {getattr(plan, name)}; at least {least} is needed"
    if not 0 <= plan.max_cut_off <= 1:
        return (
            f"'max_cut_off' is {plan.max_cut_off:g}; expected a share from 0 to 1 (1: any share of"
            " replies may be cut off)"
        )
    if plan.own is not None and (problem := plan.own.problem() or _own_problem(plan, plan.own)):
        return problem
    relaxed = plan.relaxed_perplexity
    if relaxed is not None and (problem := relaxed.problem()) is not None:
        return f"'relaxed_perplexity': {problem}"
    problem = _tasks_problem(plan) or plan.ddx.problem() or _lookup_problem(plan)
    problem = problem or plan.engine.problem() or plan.budget.problem()
    return problem or _lists_problem(plan)


def _tasks_problem(plan: Plan) -> str | None:
    if not plan.tasks:
        return None
    if plan.task:
        return "'task' and [tasks] stand for each other; leave one of them out"
    names = [*(["templates"] if plan.templates else ())]
    names += ["scoring"] if plan.scoring != "generation" else []
    names += [name for name in ("chat_template", "relaxed_perplexity") if getattr(plan, name)]
    if names:
        return f"'{names[0]}' is for plans of one task; set 'task', or leave [tasks] out"
    return None


def _own_problem(plan: Plan, own: OwnTask) -> str | None:
    if plan.tasks or plan.task not in ("", own.like):
        return "[task] stands in place of 'task' and [tasks]; leave them out"
    if plan.scoring != "generation" and (own.scorer or own.parser or own.grader):
        return "'scoring' asks for likelihoods, and code of one's own is for replies; leave one out"
    if own.template and plan.templates:
        return "'task.template' and 'templates' stand for each other; leave one of them out"
    return None


def _lists_problem(plan: Plan) -> str | None:
    for name in plan.engine.replicas:
        if name not in (*plan.models, *plan.judges):
            return f"'engine.replicas' names '{name}', which is no model or judge here"
    for name in ("banks", "models", "settings", "modes", *_MAY_BE_EMPTY):
        values = getattr(plan, name)
        if not values and name not in _MAY_BE_EMPTY:
            return f"'{name}' is empty; name at least one"
        if len(set(values)) != len(values):
            return f"'{name}' names something twice: {', '.join(values)}"
    if plan.sample is not None and plan.sample < 1:
        return f"'sample' is {plan.sample}; at least 1, or leave it out for all"
    return None


def _lookup_problem(plan: Plan) -> str | None:
    """Return what is wrong with what models may see and look up, None if nothing is."""
    if plan.retrieval is not None and (problem := plan.retrieval.problem()) is not None:
        return problem
    contexts = [s for s in plan.settings if s in CONTEXTS and s != "topline_path"]
    if contexts and plan.retrieval is None:
        return (
            f"setting '{contexts[0]}' needs texts: add a table [retrieval] with index = \"DIR\"; "
            "`medassay index build CORPUS --out DIR` makes one"
        )
    if ("tools" in plan.modes) != (plan.tools is not None):
        return (
            'mode \'tools\' and the table [tools] go together: add modes = ["solo", "tools"] and'
            " [tools], or leave both out"
        )
    if plan.tools is not None and "doc_retrieval" in plan.tools.use and plan.retrieval is None:
        return (
            "the tool doc_retrieval searches an index: add a table [retrieval] with index ="
            " \"DIR\", or leave doc_retrieval out of 'tools.use'"
        )
    return None


def opened_plan(plan: PlanSource) -> tuple[Plan, Path]:
    """Return a plan, and the folder that names in it are relative to: that of its file, else the
    one that one works in.

    Parameters
    ----------
    plan : a plan, the path of its TOML file, or what stands in such a file as a mapping

    Examples
    --------
    >>> opened_plan({"banks": ["demo"], "models": ["m"]})[0].banks
    ('demo',)
    """
    if isinstance(plan, Plan):
        return plan, Path.cwd()
    if isinstance(plan, Mapping):
        return plan_from_dict(dict(plan), "plan"), Path.cwd()
    if not isinstance(plan, str | Path):
        raise InputError(f"plan: expected a Plan, a mapping or a path; got {plan!r:.60}")
    return load_plan(plan), Path(plan).resolve().parent


def load_plan(path: Path | str) -> Plan:
    r"""Return the plan in a TOML file; paths in it are relative to the file's folder.

    Raises
    ------
    InputError
        Naming the file, the key, and what was expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from medassay import load_plan
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "plan.toml"
    >>> _ = path.write_text('banks = ["demo"]\nmodels = ["m"]\nseed = 7\n')
    >>> load_plan(path).seed
    7
    """
    return plan_from_dict(read_toml(Path(path), "`medassay init` writes one"), str(path))
