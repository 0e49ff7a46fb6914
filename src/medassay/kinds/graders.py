"""The graders of a run, made from the cards of its banks and the rules of its plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from medassay.core.keyed import keyed
from medassay.core.records.manifest import JudgedBanks
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.errors import InputError
from medassay.judging.grader_text import GraderText, TextGrader
from medassay.judging.graders.graph.graph import find
from medassay.kinds.catalog import GRADERS
from medassay.own_code.grader import OwnGrader
from medassay.prompt.own_template import check_holes

_STEPPED = "g_eval"
_GRAPH_KEYS = ("id", "name", "roots", "text")


def graders_of(task: Task, judged: JudgedBanks) -> dict[str, Grader]:
    """Return the grader of each domain, as its bank's card and the plan say."""
    steps = judged.steps
    if steps is not None and not any(name.startswith(_STEPPED) for name in task.graders.values()):
        raise InputError(f"plan: task '{task.name}' has no evaluation steps; leave 'steps' out")
    if not task.graders:
        return {}
    if task.own is not None and "grader" in task.own.parts:
        return {domain: OwnGrader(own=task.own) for domain in judged.domains}
    [name] = set(task.graders.values())
    if steps is not None and steps.with_path == (name == "g_eval_no_path"):
        needed = "without" if steps.with_path else "with"
        raise InputError(f"plan: task '{task.name}' needs steps written {needed} a reasoning path")
    cards = {bank.version: bank for bank in judged.banks}
    graders = {
        domain: GRADERS[name](cards[version], judged) for domain, version in judged.domains.items()
    }
    if task.own is not None and task.own.grader_templates:
        [(file, texts)] = task.own.grader_templates.items()
        return {domain: _with_text(each, file, texts) for domain, each in graders.items()}
    return graders


def _with_text(grader: Grader, name: str, texts: Mapping[str, str]) -> Grader:
    """Return a grader that asks by a prompt of the user.

    Raises
    ------
    InputError
        When it has no prompt that could stand for, or the prompt has holes that it does not fill.
    """
    if not isinstance(grader, TextGrader):
        raise InputError(
            f"plan: grader '{grader.name}' has several prompts, or none; leave"
            " 'task.grader_template' out, or write a grader of your own"
        )
    holes = grader.text.holes
    check_holes(name, texts, holes, sorted(holes & {"answer", "table"}))
    return replace(grader, text=GraderText(name, texts=texts))  # type: ignore[type-var]


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
    return {"graphs": [keyed(graph.remembered(), *_GRAPH_KEYS) for graph in graphs]}
