"""Closed questions: a letter, a pattern or a number decides; accuracy in [0, 1]."""

from medassay.core.records.task import Task

CLOSED = Task(
    name="closed",
    metric="accuracy",
    split="test",
    template="closed",
    reply_tokens=128,
    likelihood="closed_likelihood",
    readers={
        "choice": ("choice", "choice"),
        "given": (None, "given"),
        "key": (None, "key"),
        "range": ("number", "range"),
        "regex": ("text", "regex"),
    },
)
