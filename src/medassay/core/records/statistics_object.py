"""The parts of statistics.json as the JSON objects that are sealed; see `item_object.py` for why
they are dictionaries.

Whoever reads them to show them reads the records of `statistics.py` and `relations.py`, which say
what the keys are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class SecondObject(TypedDict):
    """An interval by another method."""

    method: str
    lo: float | None
    hi: float | None


class EstimateObject(TypedDict, total=False):
    """A mean with its interval; see `Estimate` and `RowEstimate`."""

    score: float | None
    lo: float | None
    hi: float | None
    second: SecondObject | None
    level: float
    n: int
    n_clusters: int
    coverage: float
    worst: float | None
    best: float | None
    flags: Sequence[str] | None
    interval: str
    scale: Sequence[float | None]
    se: float | None
    median: float | None
    nulls: int
    at: int


class HarmObject(TypedDict):
    """A line of the harm ledger; see `summary.harm.harm_document`."""

    marked: int
    harmful: int
    upper: float | None
    worst_5: float | None


class HarmfulCriteriaObject(TypedDict):
    """What answers did that is marked `harm`: items marked, items harmed, criterion → answers."""

    marked: int
    harmful: int
    events: dict[str, int]


class PreferenceObject(TypedDict):
    """How far a judge lies above the others, for its own family minus other families."""

    judge: str
    family: str
    difference: float
    n_own: int
    n_other: int
    lo: float | None
    hi: float | None


class PairObject(TypedDict, total=False):
    """The difference of two rows of a ranking; see `RowPair`."""

    first: list[str]
    second: list[str]
    difference: float
    n: int
    test: str
    p: float | None
    p_holm: float | None
    lo: float | None
    hi: float | None
    se: float | None
    better: int | str | None
    p_max_t: float | None
    different: bool
    separated: bool | None
    ordered: bool | None
    note: str
    unread: list[float]
    unread_outweighs: bool


class FieldObject(TypedDict, total=False):
    """What holds between the rows of a ranking; see `Relations`."""

    n_items: int
    n_common: int
    common_share: float
    not_common: bool
    leader_changes_with_nulls: bool
    c: float | None
    graded: bool
    kappa: float | None
    c_steps: list[float]
    n_ranked: int
    small_domains: list[dict[str, Any]]
    sentence: str
    pairs: list[PairObject]
    oracle: dict[str, Any] | None
    panel: Mapping[str, Any] | None


class DifferenceObject(TypedDict, total=False):
    """Tools minus solo of a row, or public minus synthetic items."""

    kind: str
    domain: str
    model: str
    setting: str
    mode: str
    metric: str
    scale: Sequence[float | None]
    public: float
    synthetic: float
    gap: float
    diff: float
    lo: float | None
    hi: float | None
    n: int
    n_public: int
    n_synthetic: int
    different: bool


class ProvenanceObject(TypedDict):
    """Rankings over the items of each kind, and the differences between them."""

    public: dict[str, list[dict[str, Any]]]
    synthetic: dict[str, list[dict[str, Any]]]
    gap: list[DifferenceObject]
    tools_minus_solo: list[DifferenceObject]


class ScaleObject(TypedDict):
    """The scale of a metric; see `Scale`."""

    lo: float | None
    hi: float | None
    better: str


class StatisticsObject(TypedDict, total=False):
    """`statistics.json`; besides these keys each summary of a kind has one of its own.

    `domains` are the rows of each ranking, `fields` what holds between them, by mode and ranking;
    `further` are the same of each further metric, without rows.
    """

    schema_version: int
    run: str
    metric: str
    scale: ScaleObject
    rank_rule: str
    separation: str
    n_resamples: int
    level: float
    domains: Mapping[str, Sequence[dict[str, Any]]]
    fields: Mapping[str, Mapping[str, FieldObject]]
    by_kind: ProvenanceObject
    tools_minus_solo: list[DifferenceObject]
    further: "list[StatisticsObject]"
    ddx: dict[str, Any]
    likelihood: dict[str, Any]
    lookups: dict[str, Any]
    records: dict[str, Any]
    text: dict[str, Any]
