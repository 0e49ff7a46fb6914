"""What a row of a run on ranked diagnoses tells besides its rank, and the summary of the run."""

from typing import Any

import msgspec

from medassay.core.records.estimate import RowEstimate
from medassay.core.records.statistics import LeaderboardRow


class CaseEstimate(RowEstimate, frozen=True, kw_only=True):
    """An estimate over cases; with steepness and middle of its weights where it is weighted."""

    k: float | None = None
    x0: float | None = None


Aggregates = dict[str, CaseEstimate | None]  # name of the weights, or "mean" → rescaled aggregate


class DiagnosesRow(LeaderboardRow, frozen=True, kw_only=True):
    """A row with what it tells of lists.

    Attributes
    ----------
    prompt : the setting
    semantic, severity : aggregates by weights, rescaled to -1..1
    semantic_mean, severity_mean, all_places_mean : plain means, 0 to 16
    top1, top3, top5 : share of cases with the golden diagnosis among the first ranks
    names, short_lists : names a list, and the share of lists with too few
    quadrants : cases by where both scores place them
    skipped, unjudged, labels : cases without a score; labels that judges left out, and all
    """

    prompt: str
    semantic: Aggregates
    severity: Aggregates
    semantic_mean: CaseEstimate | None = None
    severity_mean: CaseEstimate | None = None
    all_places_mean: CaseEstimate | None = None
    top1: CaseEstimate | None = None
    top3: CaseEstimate | None = None
    top5: CaseEstimate | None = None
    names: CaseEstimate | None = None
    short_lists: CaseEstimate | None = None
    quadrants: dict[str, int] = msgspec.field(default_factory=dict)
    skipped: int = 0
    unjudged: int = 0
    labels: int = 0

    @property
    def tops(self) -> dict[int, CaseEstimate | None]:
        """Return the share of cases by the number of first ranks."""
        return {1: self.top1, 3: self.top3, 5: self.top5}


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Named weights: steepness and middle of the logistic function."""

    k: float
    x0: float


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """How a model-prompt scores on the cases of one group, such as one golden severity."""

    model: str
    prompt: str
    mode: str
    by: str
    value: str
    n: int
    semantic_mean: RowEstimate | None = None
    severity_mean: RowEstimate | None = None
    severity_shift: RowEstimate | None = None
    top5: RowEstimate | None = None


class DiagnosesSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of the aggregates of a run, and where its model-prompts err."""

    semantic_max: float
    leading: str
    presets: dict[str, Weights]
    errors: list[ErrorGroup] = []
    pairs: dict[str, Any] = {}

    @property
    def leading_text(self) -> str:
        """Return the leading weights with their numbers."""
        weights = self.presets[self.leading]
        return f"{self.leading}: k = {weights.k:g}, x0 = {weights.x0:g}"
