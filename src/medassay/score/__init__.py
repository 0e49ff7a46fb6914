"""(item, answer) → score on a declared scale."""

from medassay.score.rubric import rubric_points
from medassay.score.scorer import Scorer, per_item

__all__ = ["Scorer", "per_item", "rubric_points"]
