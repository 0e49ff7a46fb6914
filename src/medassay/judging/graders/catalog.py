"""Graders that serve more than one kind of task: one line each.

A grader is made of the card of a bank and the rules of a run.
"""

from collections.abc import Callable

from medassay.core.records.manifest_object import GraderRules
from medassay.core.records.verdict import Grader
from medassay.judging.graders.g_eval import GEval
from medassay.judging.graders.graph.grader import GraphGrader
from medassay.judging.graders.graph.graph import recalled
from medassay.judging.graders.prometheus import Prometheus


def _graphs(rules: GraderRules) -> Grader:
    return GraphGrader(graphs=tuple(recalled(graph) for graph in rules["graphs"]))


GRADERS: dict[str, Callable[[GraderRules], Grader]] = {
    "g_eval": lambda rules: GEval(steps=rules["steps"]),
    "g_eval_no_path": lambda rules: GEval(steps=rules["steps"], with_path=False),
    "g_eval_single": lambda rules: GEval(steps=rules["steps"], batch=1),
    "g_eval_weighted": lambda rules: GEval(steps=rules["steps"], batch=1, weighted=True),
    "graph": _graphs,
    "prometheus": lambda rules: Prometheus(),
}
