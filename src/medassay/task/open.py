"""Open questions: target facts, judged by a panel of three; score in [0, 1]."""

from medassay.task.task import Task

OPEN = Task(
    name="open",
    metric="fact_score",
    split="test",
    template="open",
    readers={"open": ("text", None)},
    judges={"open": "facts"},
    likelihood="perplexity",
)
