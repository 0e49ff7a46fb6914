"""Open questions, judged by a graph of small questions; score in [0, 1]."""

from medassay.task.task import Task

OPEN_GRAPH = Task(
    name="open_graph",
    metric="graph_score",
    split="test",
    template="open",
    readers={"open": ("text", None)},
    judges={"open": "graph"},
    n_judges=1,
    graphs=("open_answer_safety",),
)
