"""The graders of a run, made from the cards of its banks and the rules of its plan."""

from collections.abc import Sequence
from pathlib import Path

from medassay.core.records.manifest_object import GraderRules, ManifestObject
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.errors import InputError
from medassay.judging.graders.graph.graph import find
from medassay.kinds.catalog import GRADERS

_STEPPED = "g_eval"


def graders_of(task: Task, manifest: ManifestObject) -> dict[str, Grader]:
    """Return the grader of each domain, as its bank's card and the plan say.

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
    rules: GraderRules = {
        "steps": steps["texts"] if steps else {},
        "graphs": manifest.get("graphs", []),
    }
    if "ddx" in manifest:
        rules |= {"ddx": manifest["ddx"]}
    cards = {bank["version"]: bank for bank in manifest["banks"]}
    return {
        domain: GRADERS[name]({**cards[bank], **rules})
        for domain, bank in manifest["domains"].items()
    }


def remembered_graphs(task: Task, named: Sequence[str], base: Path) -> ManifestObject:
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
