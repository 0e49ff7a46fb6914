"""Every task: one line each."""

from medassay.errors import InputError
from medassay.task.closed import CLOSED
from medassay.task.ddx import DDX, DDX_NAMES
from medassay.task.graded import (
    G_EVAL,
    G_EVAL_NO_PATH,
    G_EVAL_SINGLE,
    G_EVAL_WEIGHTED,
    PROMETHEUS,
)
from medassay.task.leaderboard import LEADERBOARD
from medassay.task.open import OPEN
from medassay.task.open_graph import OPEN_GRAPH
from medassay.task.record import RECORD, RECORD_GRAPH
from medassay.task.rubric import RUBRIC
from medassay.task.task import Task

TASKS: dict[str, Task] = {
    "closed": CLOSED,
    "ddx": DDX,
    "ddx_names": DDX_NAMES,
    "g_eval": G_EVAL,
    "g_eval_no_path": G_EVAL_NO_PATH,
    "g_eval_single": G_EVAL_SINGLE,
    "g_eval_weighted": G_EVAL_WEIGHTED,
    "leaderboard": LEADERBOARD,
    "open": OPEN,
    "open_graph": OPEN_GRAPH,
    "prometheus": PROMETHEUS,
    "record": RECORD,
    "record_graph": RECORD_GRAPH,
    "rubric": RUBRIC,
}


def find_task(name: str) -> Task:
    """Return a task by name."""
    if name not in TASKS:
        raise InputError(
            f"plan: task '{name}' is unknown; known are {', '.join(sorted(TASKS))}"
        )
    return TASKS[name]
