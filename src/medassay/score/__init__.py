"""(item, answer) → score on a declared scale."""

from medassay.score.rubric import rubric_points
from medassay.score.scorer import Scorer, per_item
from medassay.score.structure import JsonSimilarity, json_similarity

__all__ = ["JsonSimilarity", "Scorer", "json_similarity", "per_item", "rubric_points"]
