"""Logs of other harnesses, each in its own form."""

from pathlib import Path

LOGS = Path(__file__).parent / "logs"


INSPECT, LM_EVAL, HELM = LOGS / "inspect", LOGS / "lm-eval", LOGS / "helm"


ONE = {
    "inspect": INSPECT / "electrolytes-m1.eval",
    "lm-eval": next((LM_EVAL / "m1").iterdir()),
    "helm": HELM,
}
