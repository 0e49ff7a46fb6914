"""Shortlisting candidate models by what is known of them: size, weights, window, licence,
discipline scores.
"""

from medassay.selection.candidate import Candidate, load_candidates
from medassay.selection.shortlist import Shortlist, shortlist
from medassay.selection.steps import SelectionSteps, load_steps

__all__ = [
    "Candidate",
    "SelectionSteps",
    "Shortlist",
    "load_candidates",
    "load_steps",
    "shortlist",
]
