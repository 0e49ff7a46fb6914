"""Closed and open questions together, each worth 0 to 1: the method of the audited leaderboard."""

from medassay.task.closed import CLOSED
from medassay.task.open import OPEN
from medassay.task.task import Task

LEADERBOARD = Task(
    name="leaderboard",
    metric="top100",
    split="test",
    template="leaderboard",
    readers={**CLOSED.readers, **OPEN.readers},
    judges=OPEN.judges,
)
