"""(item, answer) → score on a declared scale."""

from medassay.score.json_similarity import JsonSimilarity, json_similarity
from medassay.score.scorer import Scorer, per_item

__all__ = ["JsonSimilarity", "Scorer", "json_similarity", "per_item"]
