"""Rubric + prompt + model + reader → verdict → score."""

from medassay.judge.facts import fact_score
from medassay.judge.panel import panel_score

__all__ = ["fact_score", "panel_score"]
