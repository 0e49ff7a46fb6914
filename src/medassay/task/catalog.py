"""Every task: one line each."""

from medassay.task.closed import CLOSED
from medassay.task.task import Task

TASKS: dict[str, Task] = {
    "closed": CLOSED,
}
