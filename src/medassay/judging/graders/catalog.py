"""Graders that serve more than one kind of task: one line each.

A grader is made of the card of a bank and the rules of a run.
"""

from collections.abc import Callable

from medassay.core.records.manifest import JudgingRules, RunBank
from medassay.core.records.verdict import Grader
from medassay.judging.graders.g_eval import GEval
from medassay.judging.graders.graph.grader import GraphGrader
from medassay.judging.graders.graph.graph import recalled
from medassay.judging.graders.prometheus import Prometheus

GRADERS: dict[str, Callable[[RunBank, JudgingRules], Grader]] = {
    "g_eval": lambda bank, rules: GEval(steps=rules.step_texts),
    "g_eval_no_path": lambda bank, rules: GEval(steps=rules.step_texts, with_path=False),
    "g_eval_single": lambda bank, rules: GEval(steps=rules.step_texts, batch=1),
    "g_eval_weighted": lambda bank, rules: GEval(steps=rules.step_texts, batch=1, weighted=True),
    "graph": lambda bank, rules: GraphGrader(graphs=tuple(map(recalled, rules.graphs))),
    "prometheus": lambda bank, rules: Prometheus(),
}
