"""What verdicts alone add to a row of a leaderboard: columns, and marks.

The names of the fields are the keys of the row, so that what is left out where verdicts are
withheld is what was added.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from medassay.core.records.statistics_object import EstimateObject, HarmfulCriteriaObject


class PanelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far the judges of a panel agree, and which false claims they found.

    All is None where no fact was judged by a whole panel.

    Attributes
    ----------
    agreement : mean share of pairs of judges that say the same of a fact
    unanimous : share of facts of which all judges say the same
    alpha : Krippendorff's alpha by level of measurement, with its estimate
    hallucination_rate : estimate of the share of answers with a false claim
    claims_per_answer : false claims of an answer, mean over judges
    claim_kinds : the same by kind of claim
    contradict_rate : share of facts that an answer contradicts
    """

    agreement: float | None = None
    agreement_low: bool = False
    unanimous: float | None = None
    alpha: Mapping[str, Any] | None = None
    hallucination_rate: EstimateObject | None = None
    claims_per_answer: float | None = None
    claim_kinds: Mapping[str, float] | None = None
    contradict_rate: float | None = None


_WHERE_MARKED = ("tags", "harmful_criteria")  # absent where no criterion has such a mark


class JudgingColumns(PanelAgreement, frozen=True, kw_only=True):
    """How the answers of a row were judged.

    Attributes
    ----------
    judged, judge_failures : answers, and those without a verdict of every judge
    unsupported_quotes, repaired_replies, masked_names : counts over valid verdicts
    unweighted_scores, one_or_ten_scores : scores by probability that have none, or whose "1" may
        have become a 10
    tags : estimate of the score over the criteria of each tag
    harmful_criteria : what answers did that is marked `harm`
    score_worst, score_best : the score if every missing verdict were the worst, or the best
    """

    judged: int
    judge_failures: int
    unsupported_quotes: int
    repaired_replies: int
    masked_names: int
    unweighted_scores: int
    one_or_ten_scores: int
    tags: Mapping[str, EstimateObject] | None = None
    harmful_criteria: HarmfulCriteriaObject | None = None
    score_worst: float | None = None
    score_best: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the columns by name, without those of marks that no criterion has."""
        columns = msgspec.structs.asdict(self).items()
        return {k: v for k, v in columns if v is not None or k not in _WHERE_MARKED}


class JudgingFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Which marks a row gets for how its answers were judged."""

    degraded: bool
    low_agreement: bool
    unweighted: bool
    judge_of_same_vendor: bool

    def names(self) -> list[str]:
        """Return the names of those that hold."""
        return [name for name in self.__struct_fields__ if getattr(self, name)]


JUDGING_COLUMNS = frozenset(JudgingColumns.__struct_fields__)
JUDGING_FLAGS = frozenset(JudgingFlags.__struct_fields__)
