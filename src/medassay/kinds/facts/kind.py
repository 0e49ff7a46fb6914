"""Open questions with target facts."""

from medassay.kinds.facts.grader import FactGrader
from medassay.kinds.facts.tasks import (
    G_EVAL,
    G_EVAL_NO_PATH,
    G_EVAL_SINGLE,
    G_EVAL_WEIGHTED,
    OPEN,
    OPEN_GRAPH,
    PROMETHEUS,
)
from medassay.kinds.kind import Kind

FACTS = Kind(
    tasks=(
        *(G_EVAL, G_EVAL_NO_PATH, G_EVAL_SINGLE, G_EVAL_WEIGHTED),
        *(OPEN, OPEN_GRAPH, PROMETHEUS),
    ),
    forms=("open",),
    own_task="open",
    graders={
        "facts": lambda bank, rules: FactGrader(lam=bank.contradiction_penalty),
    },
)
