"""Open questions: judged fact by fact by a panel of three, by a graph of small questions, or graded
whole by one judge.

Each way is a metric of its own: their numbers are not comparable.
"""

from medassay.core.records.task import Task
from medassay.core.scale import Scale

OPEN = Task(
    name="open",
    metric="fact_score",
    split="test",
    template="open",
    readers={"open": ("text", None)},
    graders={"open": "facts"},
    likelihood="perplexity",
)
OPEN_GRAPH = Task(
    name="open_graph",
    metric="graph_score",
    split="test",
    template="open",
    readers={"open": ("text", None)},
    graders={"open": "graph"},
    n_judges=1,
    graphs=("open_answer_safety",),
)


def _graded(name: str, scale: Scale) -> Task:
    return Task(
        name=name,
        metric=name,
        split="test",
        template="open",
        readers={form: ("text", None) for form in ("open", "text")},
        graders={form: name for form in ("open", "text")},
        n_judges=1,
        scale=scale,
    )


G_EVAL = _graded("g_eval", Scale(hi=10.0))
G_EVAL_NO_PATH = _graded("g_eval_no_path", Scale(hi=10.0))
G_EVAL_SINGLE = _graded("g_eval_single", Scale(hi=10.0))
G_EVAL_WEIGHTED = _graded("g_eval_weighted", Scale(hi=10.0))
PROMETHEUS = _graded("prometheus", Scale())
