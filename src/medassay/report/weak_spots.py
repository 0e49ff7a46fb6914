"""Where a model fails, as its page shows it: scores by category, and single answers."""

import msgspec

from medassay.core.records.estimate import Ends, Estimate


class CategoryScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a row over the items of one category, with its interval."""

    category: str
    model: str
    setting: str
    mode: str
    metric: str
    scale: Ends
    estimate: Estimate


class WorstAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that scored low.

    Attributes
    ----------
    position : which answer of its cell it is, from 0
    question : its beginning, "" where it is withheld
    scale : lower and upper end of the score
    others : mean score of the other answers to the item, of the same model too; None where there
        is no other
    harm : whether a wrong answer to the item could harm a patient
    """

    domain: str
    item: str
    repeat: int
    position: int
    question: str
    score: float
    scale: Ends
    others: float | None
    harm: bool
