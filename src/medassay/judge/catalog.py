"""Every judge: one line each. A judge is made from a bank's card, which may set its rules."""

from collections.abc import Callable, Mapping
from typing import Any

from medassay.core.verdict import Judge
from medassay.judge.facts import FactJudge
from medassay.judge.g_eval import GEval
from medassay.judge.prometheus import Prometheus

JUDGES: dict[str, Callable[[Mapping[str, Any]], Judge]] = {
    "facts": lambda card: FactJudge(lam=float(card.get("contradiction_penalty", 1.0))),
    "g_eval": lambda card: GEval(),
    "g_eval_no_path": lambda card: GEval(with_path=False),
    "g_eval_single": lambda card: GEval(batch=1),
    "prometheus": lambda card: Prometheus(),
}
