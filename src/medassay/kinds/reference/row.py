"""What a row of a run on texts with a reference tells besides its rank."""

import msgspec

from medassay.core.records.estimate import Ends, RowEstimate
from medassay.core.records.statistics import LeaderboardRow


class TextColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The means of a row by metric; None where no answer has a value.

    Attributes
    ----------
    as_published : the same without blank and too short answers
    left_out : number of these
    """

    metrics: dict[str, RowEstimate | None]
    as_published: dict[str, RowEstimate | None]
    left_out: int = 0


class TextRow(LeaderboardRow, frozen=True, kw_only=True):
    """A row with its likeness to references."""

    text: TextColumns


class ShownMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of texts: its id with the model that measures it, and its scale."""

    id: str
    scale: Ends


class TextSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of a run, and those that were unavailable with the reason."""

    metrics: dict[str, ShownMetric]
    unavailable: dict[str, str] = {}
