"""Every scorer: one line each."""

from medassay.score.choice import choice
from medassay.score.given import given
from medassay.score.key import key
from medassay.score.pattern import pattern
from medassay.score.range import in_range
from medassay.score.scorer import Scorer, per_item

SCORERS: dict[str, Scorer] = {
    "choice": per_item("choice", choice),
    "given": per_item("given", given),
    "key": per_item("key", key),
    "range": per_item("range", in_range),
    "regex": per_item("regex", pattern),
}
