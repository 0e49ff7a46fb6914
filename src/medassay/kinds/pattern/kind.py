"""Closed questions without options: a pattern, a number or a key decides."""

from medassay.core.parser import Parser, whichever_end
from medassay.kinds.kind import Kind
from medassay.kinds.pattern.parser import read_number
from medassay.kinds.pattern.scorer import in_range, key, pattern
from medassay.score.scorer import per_item

PATTERN = Kind(
    tasks=(),  # those of choices take such items, too
    forms=("range", "regex"),
    own_task="closed",
    parsers=(Parser("number", whichever_end(read_number), revision=2),),
    scorers=(
        per_item("key", key, revision=1),
        per_item("range", in_range, revision=1),
        per_item("regex", pattern, revision=1),
    ),
)
