"""`SuitePlan`: which suites of which models; TOML in, record out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.keyed import keyed
from medassay.core.plan_file import read_toml, typed
from medassay.core.record_check import RecordError, check_types
from medassay.core.records.relaxed import RelaxedSetting
from medassay.errors import InputError
from medassay.suite.benchmark import Benchmark, task_table
from medassay.suite.catalog import BENCHMARKS, SUITES


@dataclass(frozen=True, kw_only=True)
class SuitePlan:
    """What is wanted of a suite.

    Attributes
    ----------
    suite : names of suites or of single benchmarks; without it those of `benchmark` are asked
    benchmark : benchmarks of your own, which `suite` may name among the others
    models : names of entries of the models file
    models_file : relative to the plan
    limit : so many test items of each benchmark, spread evenly, fixed by the seed; default: all
    seed : as in a plan
    judge : entry that grades open answers as Prometheus does
    metrics : as in a plan
    perplexities : whether open benchmarks are asked for perplexities beside their answers
    chat_template : whether prompts are put into each local model's own form of a conversation, in
        tasks of their own names
    relaxed_perplexity : as in a plan
    n_resamples : draws of an interval
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    suite: tuple[str, ...] = ()
    benchmark: tuple[Benchmark, ...] = ()
    models: tuple[str, ...]
    models_file: str = "models.json"
    limit: int | None = None
    seed: int = 0
    judge: str = ""
    metrics: tuple[str, ...] = ()
    perplexities: bool = True
    chat_template: bool = False
    relaxed_perplexity: RelaxedSetting | None = None
    n_resamples: int = 1000

    def __post_init__(self) -> None:
        """Refuse what a file of plans refuses, with the same words.

        Raises
        ------
        InputError
            Naming what is wrong or unknown, and what is known.
        """
        check_types(self)
        if (problem := _names_problem(self) or _values_problem(self)) is not None:
            raise RecordError(self, problem)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks, each once, in the order of the suites."""
        suites = self.suite or tuple(self.own)
        named = [benchmark for name in suites for benchmark in SUITES.get(name, (name,))]
        return tuple(dict.fromkeys(named))

    @property
    def own(self) -> dict[str, Benchmark]:
        """Return the user's own benchmarks by name."""
        return {benchmark.name: benchmark for benchmark in self.benchmark}

    def benchmark_of(self, name: str) -> Benchmark:
        """Return a benchmark, the user's own before one of the catalogue."""
        return self.own.get(name) or BENCHMARKS[name]

    @property
    def name(self) -> str:
        """Return what the folder of its results is called."""
        return "+".join(self.suite or self.own)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            **keyed(
                self,
                "suite",
                "models",
                "models_file",
                "limit",
                "seed",
                "judge",
                "metrics",
                "perplexities",
                "chat_template",
                "relaxed_perplexity",
                "n_resamples",
            ),
            "seed": str(self.seed),
            **({"benchmark": [b.to_dict() for b in self.benchmark]} if self.benchmark else {}),
        }

    @property
    def hash(self) -> str:
        """Return the first 12 digits of the SHA-256 of the plan."""
        return sha256_hex(canonical(self.to_dict()))[:12]


def _names_problem(plan: SuitePlan) -> str | None:
    for number, benchmark in enumerate(plan.benchmark):
        if not benchmark.name:
            return f"'benchmark[{number}]' has no name; give it one, as name = \"my_exam\""
        if benchmark.name in SUITES:
            return f"benchmark '{benchmark.name}' is called as a suite of medassay; rename it"
    names = [benchmark.name for benchmark in plan.benchmark]
    if twice := [name for name in plan.own if names.count(name) > 1]:
        return f"two benchmarks are called '{twice[0]}'; rename one of them"
    for name in plan.suite:
        if name not in SUITES and name not in BENCHMARKS and name not in plan.own:
            return (
                f"suite '{name}' is unknown; suites are {', '.join(SUITES)}; benchmarks"
                f" {', '.join((*BENCHMARKS, *plan.own))}. One of your own is a table [[benchmark]]"
            )
    return None


def _values_problem(plan: SuitePlan) -> str | None:
    for field, least in (("limit", 1), ("seed", 0), ("n_resamples", 100)):
        value = getattr(plan, field)
        if value is not None and value < least:
            return f"'{field}' is {value}; at least {least} is needed"
    for field in ("suite", "models"):
        values = getattr(plan, field)
        if not values and not (field == "suite" and plan.benchmark):
            return f"'{field}' is empty; name at least one"
        if len(set(values)) != len(values):
            return f"'{field}' names something twice: {', '.join(values)}"
    return None


def _named_benchmark(message: str, data: Mapping[str, Any]) -> str:
    """Return what is wrong with a benchmark by its name, and as its table has it."""
    match = re.search(r"'benchmark\.(\d+)(?:\.own)?\.", message)
    if match is None:
        return message
    name = data["benchmark"][int(match[1])].get("name", f"number {int(match[1]) + 1}")
    task = "task." if ".own." in match[0] else ""
    return message.replace(match[0], f"benchmark '{name}': '{task}")


def load_suite_plan(path: Path) -> SuitePlan:
    """Return the plan in a TOML file; its models file is relative to the file's folder."""
    data = read_toml(path, "expected the plan of a suite")
    if isinstance(data.get("benchmark"), list):
        tables = [b for b in data["benchmark"] if isinstance(b, dict)]
        data["benchmark"] = [task_table(table) for table in tables]
    try:
        return typed(SuitePlan, data, str(path))
    except RecordError as error:
        raise InputError(f"{path}: {error.problem}") from None
    except InputError as error:
        raise InputError(_named_benchmark(str(error), data)) from None
