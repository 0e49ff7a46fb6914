"""Every judge: one line each. A judge is made from its rules: a bank's card, and what the plan gives."""

from collections.abc import Callable, Mapping
from typing import Any

from medassay.core.plan import rules_from_dict
from medassay.core.verdict import Judge
from medassay.judge.criteria import CriteriaJudge
from medassay.judge.dag.graph import recalled
from medassay.judge.dag.judge import GraphJudge
from medassay.judge.ddx import DdxJudge
from medassay.judge.facts import FactJudge
from medassay.judge.g_eval import GEval
from medassay.judge.prometheus import Prometheus


def _ddx(rules: Mapping[str, Any], *, asks: bool) -> Judge:
    given = rules["ddx"]
    return DdxJudge(
        rules=rules_from_dict(given["rules"]),
        synonyms=given["synonyms"],
        files=tuple(file["sha256"] for file in given["files"]),
        asks=asks,
    )


def _graphs(rules: Mapping[str, Any]) -> Judge:
    return GraphJudge(graphs=tuple(recalled(graph) for graph in rules["graphs"]))


JUDGES: dict[str, Callable[[Mapping[str, Any]], Judge]] = {
    "criteria": lambda rules: CriteriaJudge(),
    "ddx": lambda rules: _ddx(rules, asks=True),
    "ddx_names": lambda rules: _ddx(rules, asks=False),
    "facts": lambda rules: FactJudge(lam=float(rules.get("contradiction_penalty", 1.0))),
    "g_eval": lambda rules: GEval(steps=rules["steps"]),
    "g_eval_no_path": lambda rules: GEval(steps=rules["steps"], with_path=False),
    "g_eval_single": lambda rules: GEval(steps=rules["steps"], batch=1),
    "g_eval_weighted": lambda rules: GEval(steps=rules["steps"], batch=1, weighted=True),
    "graph": _graphs,
    "prometheus": lambda rules: Prometheus(),
}
