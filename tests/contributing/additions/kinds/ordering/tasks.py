"""Orders scored by rule, and orders graded by a judge."""

from medassay.core.records.task import Task

ORDERING = Task(
    name="ordering",
    metric="exact_order",
    split="test",
    template="text",
    readers={"ordering": ("ordering", "ordering")},
)
ORDERING_GRADED = Task(
    name="ordering_graded",
    metric="approved_order",
    split="test",
    template="text",
    readers={"ordering": ("ordering", None)},
    graders={"ordering": "approval"},
    n_judges=1,
)
