"""Every grader: one line each; and the graders of a run, made from its rules."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medassay.core.records.plan import rules_from_dict
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.errors import InputError
from medassay.judging.graders.g_eval import GEval
from medassay.judging.graders.graph.grader import GraphGrader
from medassay.judging.graders.graph.graph import find, recalled
from medassay.judging.graders.prometheus import Prometheus
from medassay.kinds.criteria.grader import CriteriaGrader
from medassay.kinds.diagnoses.grader import DiagnosesGrader
from medassay.kinds.facts.grader import FactGrader

_STEPPED = "g_eval"


def _ddx(rules: Mapping[str, Any], *, asks: bool) -> Grader:
    document = rules["ddx"]
    return DiagnosesGrader(
        rules=rules_from_dict(document["rules"]),
        synonyms=document["synonyms"],
        files=tuple(file["sha256"] for file in document["files"]),
        asks=asks,
    )


def _graphs(rules: Mapping[str, Any]) -> Grader:
    return GraphGrader(graphs=tuple(recalled(graph) for graph in rules["graphs"]))


GRADERS: dict[str, Callable[[Mapping[str, Any]], Grader]] = {
    "criteria": lambda rules: CriteriaGrader(),
    "ddx": lambda rules: _ddx(rules, asks=True),
    "ddx_names": lambda rules: _ddx(rules, asks=False),
    "facts": lambda rules: FactGrader(lam=float(rules.get("contradiction_penalty", 1.0))),
    "g_eval": lambda rules: GEval(steps=rules["steps"]),
    "g_eval_no_path": lambda rules: GEval(steps=rules["steps"], with_path=False),
    "g_eval_single": lambda rules: GEval(steps=rules["steps"], batch=1),
    "g_eval_weighted": lambda rules: GEval(steps=rules["steps"], batch=1, weighted=True),
    "graph": _graphs,
    "prometheus": lambda rules: Prometheus(),
}


def graders_of(task: Task, manifest: Mapping[str, Any]) -> dict[str, Grader]:
    """Return the grader of each domain, as its bank's card and the plan ask for
    it.

    `manifest` holds what a run remembers: banks, domains, and the rules of the plan, if it gave
    any: evaluation `steps`, `ddx`, `graphs`.
    """
    steps = manifest.get("steps")
    if steps and not any(name.startswith(_STEPPED) for name in task.graders.values()):
        raise InputError(f"plan: task '{task.name}' has no evaluation steps; leave 'steps' out")
    if not task.graders:
        return {}
    [name] = set(task.graders.values())
    if steps and steps["with_path"] == (name == "g_eval_no_path"):
        needed = "without" if steps["with_path"] else "with"
        raise InputError(f"plan: task '{task.name}' needs steps written {needed} a reasoning path")
    rules = {
        "steps": steps["texts"] if steps else {},
        "ddx": manifest.get("ddx", {}),
        "graphs": manifest.get("graphs", []),
    }
    cards = {bank["version"]: bank for bank in manifest["banks"]}
    return {
        domain: GRADERS[name]({**cards[bank], **rules})
        for domain, bank in manifest["domains"].items()
    }


def remembered_graphs(task: Task, named: Sequence[str], base: Path) -> dict[str, Any]:
    """Return what a run remembers of the graphs that judge: the documents of those named, else of
    the task's own.

    Raises
    ------
    InputError
        When a graph is unknown or wrong, two bear one name, or the task is not judged by graphs.
    """
    if not task.graphs:
        if named:
            raise InputError(
                f"plan: task '{task.name}' is not judged by graphs; leave 'graphs' out"
            )
        return {}
    graphs = [find(name, base) for name in named or task.graphs]
    names = [graph.name for graph in graphs]
    if len(set(names)) < len(names):
        raise InputError(f"plan: two graphs bear one name: {', '.join(names)}")
    return {"graphs": [graph.remembered() for graph in graphs]}
