"""Every judge: one line each. A judge is made from its rules: a bank's card, and the plan's `steps`."""

from collections.abc import Callable, Mapping
from typing import Any

from medassay.core.verdict import Judge
from medassay.judge.criteria import CriteriaJudge
from medassay.judge.facts import FactJudge
from medassay.judge.g_eval import GEval
from medassay.judge.prometheus import Prometheus

JUDGES: dict[str, Callable[[Mapping[str, Any]], Judge]] = {
    "criteria": lambda rules: CriteriaJudge(),
    "facts": lambda rules: FactJudge(lam=float(rules.get("contradiction_penalty", 1.0))),
    "g_eval": lambda rules: GEval(steps=rules["steps"]),
    "g_eval_no_path": lambda rules: GEval(steps=rules["steps"], with_path=False),
    "g_eval_single": lambda rules: GEval(steps=rules["steps"], batch=1),
    "g_eval_weighted": lambda rules: GEval(steps=rules["steps"], batch=1, weighted=True),
    "prometheus": lambda rules: Prometheus(),
}
