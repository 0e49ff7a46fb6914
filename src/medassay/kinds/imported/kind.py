"""Answers that came with their scores."""

from medassay.kinds.imported.scorer import imported_score
from medassay.kinds.kind import Kind
from medassay.score.scorer import per_item

IMPORTED = Kind(
    tasks=(),
    forms=("given", "key"),
    own_task="closed",
    scorers=(per_item("given", imported_score, revision=1),),
)
