"""The tables of the extraction study, as they stand in `extraction.json`."""

from typing import Any

import msgspec

from medassay.core.records.estimate import Estimate
from medassay.kinds.record.summary import ThinkingDifference


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of the study: its family, from which value on a reply passes, and its id with
    settings.
    """

    name: str
    family: str
    threshold: float
    id: str


class ExtractionRow(msgspec.Struct, frozen=True, kw_only=True):
    """The estimates of one row.

    Attributes
    ----------
    passed : share of reports from the threshold of a metric on
    beside : what is lost and invented, and what differs in drugs, on the reports that the run's
        board ranks
    n : reports
    """

    model: str
    setting: str
    mode: str
    metrics: dict[str, Estimate | None]
    families: dict[str, Estimate | None]
    passed: dict[str, Estimate | None] = msgspec.field(name="pass")
    beside: dict[str, Estimate | None]
    stopped_as_current: int
    n: int
    flags: list[str]

    @property
    def name(self) -> str:
        """Return model and setting, with the mode where that is not solo."""
        mode = "" if self.mode == "solo" else f", {self.mode}"
        return f"{self.model} ({self.setting}{mode})"


class CompositeRank(msgspec.Struct, frozen=True, kw_only=True):
    """The range of ranks of one row by its composite."""

    model: str
    setting: str
    mode: str
    rank_lo: int | None
    rank_hi: int | None


class CompositeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order of rows by their composites, all pairs tested at once on `n` reports."""

    n: int
    rows: list[CompositeRank]


class MetricCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """Pearson's r between metrics over all answers, and how metrics group by it.

    Attributes
    ----------
    pearson, n : a line for each metric
    order : places of the metrics in the tree; `merges` joins its branches
    """

    metrics: list[str]
    pearson: list[list[float | None]]
    n: list[list[int]]
    order: list[int]
    merges: list[list[Any]]
    clusters: list[list[str]]


class ThinkingPair(msgspec.Struct, frozen=True, kw_only=True):
    """One model with thinking minus the same model without, by number."""

    model: str
    mode: str
    thinking: str
    direct: str
    differences: dict[str, ThinkingDifference]


class StoppedDrug(msgspec.Struct, frozen=True, kw_only=True):
    """A drug that was stopped and is listed as current; of a synthetic report without its name."""

    model: str
    setting: str
    mode: str
    domain: str
    item: str
    drug: str | None


class ReportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many reports the rows have in common, and how many there are."""

    common: int
    all: int


class ReferenceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many references of each standing there are, and how many were converted."""

    gold: int
    silver: int
    converted: int


class ExtractionStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of the study for one run.

    Attributes
    ----------
    families : family → its metrics
    composite : None where reports are too few to order rows
    """

    run: str
    seal: str
    code: dict[str, str | None]
    scripted: bool
    references: ReferenceCounts
    reports: ReportCounts
    metrics: list[Metric]
    families: dict[str, list[str]]
    rows: list[ExtractionRow]
    composite: CompositeOrder | None
    correlation: MetricCorrelation
    thinking: list[ThinkingPair]
    stopped: list[StoppedDrug]
