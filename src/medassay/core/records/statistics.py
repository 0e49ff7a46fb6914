"""The statistics of a run as records: rows of rankings, and what holds between them.

The file holds more: what a kind of task tells besides. A kind reads that by a row type of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec

from medassay.core.json import record_as
from medassay.core.ranks import (
    overlap_sentence,
    range_title,
    rank_range,
)
from medassay.core.records.estimate import Ends, RowEstimate, Second
from medassay.core.records.relations import Relations
from medassay.core.records.statistics_object import StatisticsObject
from medassay.core.records.trial import ToolCalls
from medassay.core.scale import units
from medassay.core.wording import some_of
from medassay.errors import IntegrityError

OVERALL: Final = "overall"  # the ranking over all domains
# What is said of each metric but the first, in the statistics of a run that has several.
FURTHER: Final = "further"
_WHOLE = 1e-6  # by which a sum of right answers may miss a whole number


class Harm(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the harm ledger; see `summary.harm.harm_document`."""

    marked: int
    harmful: int
    upper: float | None = None
    worst_5: float | None = None


class HarmfulCriteria(msgspec.Struct, frozen=True, kw_only=True):
    """What answers did that a rubric marks as harmful: items, and how often each event."""

    marked: int
    harmful: int
    events: dict[str, int] = {}


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often a row used tools, and how often in vain."""

    answers: int
    with_calls: int
    calls: int
    failed: int
    unavailable: int
    unavailable_share: float | None = None
    calls_an_answer: RowEstimate | None = None


class LookupCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of tools over a whole run; None where there were none."""

    calls: ToolCalls | None = None


class RankRange(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of a row and the range it lies in.

    Attributes
    ----------
    rank, rank_lo, rank_hi : None where the row is not ranked
    interval : how the interval of the score was made; absent in rankings of earlier rules
    """

    rank: int | None = None
    rank_lo: int | None = None
    rank_hi: int | None = None
    interval: str | msgspec.UnsetType | None = msgspec.UNSET

    def rank_text(self, *, tied: bool = False) -> str:
        """Return the range of ranks, "3–38"; a dash when there is none.

        By the earlier rules a rank with its range, "=" when `tied` says that it is shared.

        Examples
        --------
        >>> RankRange(rank=3, rank_lo=3, rank_hi=38, interval="wilson").rank_text()
        '3–38'
        >>> RankRange(rank=7, rank_lo=3, rank_hi=38).rank_text(tied=True)
        '7 = (3–38)'
        """
        if self.rank is None:
            return "–"
        if self.interval is not msgspec.UNSET:
            return rank_range(self.rank_lo, self.rank_hi)
        return f"{self.rank}{' =' if tied else ''} ({self.rank_lo}–{self.rank_hi})"


class Micro(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over all items, each counted alike whatever its domain."""

    score: float
    lo: float | None = None
    hi: float | None = None


class LeaderboardRow(RankRange, frozen=True, kw_only=True):
    """One row of a ranking, as a run stores it: a model in one setting and mode.

    Attributes
    ----------
    scale : lower and upper end; None where there is none
    score, lo, hi : on the scale; None without an interval
    second : an interval by another method, where the first may be too short
    micro : where there are several domains, the mean over items beside that over domains
    worst, best : the score if every missing one were the worst, or the best
    coverage : share of the items that have a score, in [0, 1]
    group : rows of earlier rules that share a rank
    outcomes : outcome → replies
    agreement : mean share of pairs of judges that say the same of a fact
    tags : estimate of the score over the criteria of each tag
    """

    model: str
    setting: str
    mode: str
    metric: str
    scale: Ends
    score: float | None = None
    lo: float | None = None
    hi: float | None = None
    second: Second | None = None
    n: int
    n_clusters: int | None = None
    n_common: int | None = None
    coverage: float
    worst: float | None = None
    best: float | None = None
    micro: Micro | None = None
    group: int | None = None
    unparsed_rate: float = 0.0
    ambiguous_rate: float = 0.0
    unread_rate: float | None = None
    outcomes: dict[str, int] = {}
    harm: Harm | None = None
    flags: list[str] = []
    cut_off: int = 0
    asked_again: int = 0
    agreement: float | None = None
    unanimous: float | None = None
    hallucination_rate: RowEstimate | None = None
    contradict_rate: float | None = None
    judge_failures: int | None = None
    unweighted_scores: int = 0
    tags: dict[str, RowEstimate] | None = None
    harmful_criteria: HarmfulCriteria | None = None
    score_worst: float | None = None
    score_best: float | None = None
    own_source: RowEstimate | None = None
    tool_use: ToolUse | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return model and setting."""
        return self.model, self.setting

    @property
    def name(self) -> str:
        """Return model and setting as figures name them."""
        return f"{self.model} · {self.setting}"

    def rank_title(self, n_ranked: int) -> str:
        """Return what the range of ranks of a ranked row says of the others."""
        if self.rank_lo is None or self.rank_hi is None:
            return ""
        return range_title(self.rank_lo, self.rank_hi, n_ranked)

    @property
    def score_text(self) -> str:
        """Return the score with its interval and n: `61.2 [57.9, 64.4] n=330`."""
        if self.score is None:
            return "no interval"
        score, lo, hi = (units(value, self.scale) for value in (self.score, self.lo, self.hi))
        return f"{score} [{lo}, {hi}] n={self.n}"

    @property
    def replies(self) -> int:
        """Return how many calls gave a reply."""
        return sum(self.outcomes.values()) - self.outcomes.get("failed", 0)

    @property
    def reason_unranked(self) -> str:
        """Return why the row is not ranked, "" where nobody said."""
        marks = (flag.partition(":") for flag in self.flags)
        return next((reason for mark, _, reason in marks if mark == "not_ranked"), "")


def scripted_models(rows: Iterable[LeaderboardRow]) -> list[str]:
    """Return the models whose answers, or whose judges, are scripts."""
    return sorted({row.model for row in rows if "scripted" in row.flags})


def is_all_scripted(rows: Iterable[LeaderboardRow]) -> bool:
    """Return whether no row is of a real model, baselines aside."""
    return all("scripted" in row.flags or row.reason_unranked == "baseline" for row in rows)


def scripted_sentence(rows: Sequence[LeaderboardRow]) -> str:
    """Return what readers must know of scripts among rows, "" where there are none."""
    names = scripted_models(rows)
    if not names:
        return ""
    if is_all_scripted(rows):
        return "SCRIPTED: answers or judges were scripted; these numbers measure nothing"
    return f"SCRIPTED: {some_of(names)}: answers or judges were scripted, which measures nothing"


Row = TypeVar("Row", bound=LeaderboardRow)
Record = TypeVar("Record")
Ranking = TypeVar("Ranking")


def tied_groups(rows: Sequence[LeaderboardRow]) -> set[tuple[str, int | None]]:
    """Return the (mode, group) of every group with more than one member."""
    seen_groups: set[tuple[str, int | None]] = set()
    tied: set[tuple[str, int | None]] = set()
    for row in rows:
        if row.group is not None:
            group = (row.mode, row.group)
            (tied if group in seen_groups else seen_groups).add(group)
    return tied


class ToolsEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Tools minus solo of one row over the items that it answered both ways.

    Attributes
    ----------
    kind : public or synthetic items, "" of both together
    diff, lo, hi : difference of the means, on the scale; without an interval from one cluster
    different : whether a difference is shown
    """

    domain: str
    model: str
    setting: str
    mode: str = ""
    kind: str = ""
    scale: Ends
    diff: float
    lo: float | None = None
    hi: float | None = None
    n: int
    different: bool

    @property
    def key(self) -> tuple[str, str]:
        """Return model and setting."""
        return self.model, self.setting


class ProvenanceGap(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over public items of a row minus that over synthetic ones."""

    domain: str
    model: str
    setting: str
    mode: str
    gap: float
    lo: float | None = None
    hi: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return model and setting."""
        return self.model, self.setting


class ByProvenance(msgspec.Struct, frozen=True, kw_only=True):
    """Public and synthetic items apart: rankings by domain, gaps, and what tools change."""

    public: dict[str, list[LeaderboardRow]]
    synthetic: dict[str, list[LeaderboardRow]]
    gap: list[ProvenanceGap]
    tools_minus_solo: list[ToolsEffect]


class ScoreScale(msgspec.Struct, frozen=True, kw_only=True):
    """The scale of the scores of a run, and which end of it is better."""

    lo: float | None
    hi: float | None
    better: str = "high"

    @property
    def ends(self) -> Ends:
        """Return both ends."""
        return self.lo, self.hi

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return both ends of a scale that has two, else None."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)

    @property
    def is_share(self) -> bool:
        """Return whether scores are shares, shown in percent."""
        return self.ends == (0, 1)


class _RankingRules(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of all rankings of a run."""

    metric: str
    scale: ScoreScale
    rank_rule: str = ""
    separation: str = ""
    level: float = 0.95
    n_resamples: int = 0
    domains: dict[str, list[dict[str, Any]]]
    fields: dict[str, dict[str, dict[str, Any]]]


class Statistics:
    """The statistics of a run.

    Each part is made a record once, since every page of a board asks for the same rows.

    Attributes
    ----------
    document : as the file has it, with what this code does not know
    metric, scale, rank_rule, separation : of all rankings; where a run has several metrics, those
        of the first one, and `by_metric` has each
    level, n_resamples : of intervals
    """

    def __init__(self, document: StatisticsObject) -> None:
        self.document = document
        head = _record(document, _RankingRules)
        self.metric, self.scale = head.metric, head.scale
        self.rank_rule, self.separation = head.rank_rule, head.separation
        self.level, self.n_resamples = head.level, head.n_resamples
        self._domains, self._fields = head.domains, head.fields
        self._rows: dict[tuple[type[LeaderboardRow], str], list[Any]] = {}
        self._parts: dict[tuple[str, type[Any]], Any] = {}
        self._relations: dict[tuple[str, str], Relations] = {}

    @staticmethod
    def _ranking(rankings: Mapping[str, Ranking], domain: str) -> Ranking:
        """Return what is said of one ranking of a run, which says something of each of its
        domains.
        """
        if domain not in rankings:
            raise IntegrityError(f"statistics.json: nothing is said of domain '{domain}'")
        return rankings[domain]

    @cached_property
    def by_metric(self) -> "list[Statistics]":
        """Return the statistics of each metric as a run of it alone would have them."""
        others = self.document.get(FURTHER)
        if not others:
            return [self]
        first = self.document.copy()
        del first[FURTHER]
        return [Statistics(self._of_metric(document)) for document in (first, *others)]

    @cached_property
    def summaries(self) -> Mapping[str, Any]:
        """Return all that is told besides the rankings, by key, of whichever metric it is."""
        summaries: dict[str, Any] = {}
        for document in (self.document, *self.document.get(FURTHER, ())):
            summaries = {**document, **summaries}
        return summaries

    def _of_metric(self, document: StatisticsObject) -> StatisticsObject:
        metric = document.get("metric")
        domains = {
            name: own_rows
            for name, rows in self._domains.items()
            if (own_rows := [row for row in rows if row.get("metric") == metric])
        }
        return {**document, "domains": domains}

    @property
    def modes(self) -> list[str]:
        """Return the modes, solo first."""
        return sorted(self._fields, key=lambda mode: (mode != "solo", mode))

    @property
    def domains(self) -> list[str]:
        """Return the domains, the overall ranking among them, as the file lists them."""
        return list(self._domains)

    def rows(self, domain: str, mode: str | None = None) -> list[LeaderboardRow]:
        """Return the rows of one ranking, of all modes if none is named; the best of each first."""
        return self.rows_as(LeaderboardRow, domain, mode)

    def rows_as(self, row_type: type[Row], domain: str, mode: str | None = None) -> list[Row]:
        """Return the rows of one ranking with what a kind of task has in a row."""
        key = (row_type, domain)
        if key not in self._rows:
            self._rows[key] = rows_of(row_type, self._ranking(self._domains, domain))
        return [row for row in self._rows[key] if mode in (None, row.mode)]

    def part(self, key: str, record: type[Record]) -> Record:
        """Return what a kind of task tells under its key besides the rankings."""
        if (key, record) not in self._parts:
            self._parts[key, record] = _record(self.summaries.get(key), record)
        summary: Record = self._parts[key, record]
        return summary

    def relations(self, domain: str, mode: str) -> Relations:
        """Return what holds between the rows of one ranking."""
        if (domain, mode) not in self._relations:
            document = self._ranking(self._fields[mode], domain)
            self._relations[domain, mode] = _record(document, Relations)
        return self._relations[domain, mode]

    def is_graded(self, mode: str, *, imported: bool) -> bool:
        """Return whether answers can be partly right.

        Relations of fewer than two ranked rows do not tell: then they can, but for accuracy. What
        is imported as accuracy may be any score.
        """
        if self.metric == "accuracy" and not imported:
            return False
        relations = self.relations(OVERALL if OVERALL in self.domains else self.domains[0], mode)
        if (relations.n_ranked or 0) > 1:
            return bool(relations.graded)
        sums = [
            row.score * row.n
            for domain in self.domains
            if domain != OVERALL
            for row in self.rows(domain, mode)
            if row.score is not None
        ]
        return self.metric != "accuracy" or any(abs(s - round(s)) > _WHOLE for s in sums)

    def sentence(self, domain: str, mode: str) -> str:
        """Return the answer to "who is best?" of one ranking."""
        relations = self.relations(domain, mode)
        if relations.sentence is not None:
            return relations.sentence
        ranked = [row for row in self.rows(domain, mode) if row.rank is not None]
        alone = len({row.model for row in ranked}) == len(ranked)

        def name(model: str, setting: str) -> str:
            return model if alone else f"{model} ({setting})"

        better = self.scale.better
        sign = -1.0 if better == "high" else 1.0
        first = [
            name(*row.key)
            for row in sorted(ranked, key=lambda row: (sign * (row.score or 0.0), row.model))
            if row.rank == 1
        ]
        sentences = []
        for pair in relations.pairs:
            names = name(*pair.first), name(*pair.second)
            reading = pair.reading(better)
            if reading != "none":
                sentences.append(names if reading == "first" else names[::-1])
        rule = f"rule {self.rank_rule}"
        if (self.rank_rule, self.separation) == ("closure", "overlap"):
            rule = "the rule of the source"
        who = "model" if alone else "pair of model and setting"
        return overlap_sentence(first, sentences, rule=rule, who=who)

    @property
    def tools_minus_solo(self) -> list[ToolsEffect]:
        """Return what tools change of every row that was asked both ways, domain by domain."""
        effects = self.document.get("tools_minus_solo", [])
        return [_record(effect, ToolsEffect) for effect in effects]

    @cached_property
    def by_provenance(self) -> ByProvenance | None:
        """Return public and synthetic items apart, None for a run with items of one kind."""
        by_kind = self.document.get("by_kind")
        return None if by_kind is None else _record(by_kind, ByProvenance)

    @property
    def n_trials(self) -> int:
        """Return the number of trials that the rows of the domains count."""
        counts = (
            _record(row, _Counts).outcomes
            for domain in self.domains
            if domain != OVERALL
            for row in self._domains[domain]
        )
        return sum(sum(outcomes.values()) for outcomes in counts)


class _Counts(msgspec.Struct):
    outcomes: dict[str, int]


def rows_of(row_type: type[Row], documents: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return rows of a ranking as records.

    Raises
    ------
    IntegrityError
        Naming the field that is wrong.
    """
    return [_record(row, row_type) for row in documents]


def _record(part: Any, record: type[Record]) -> Record:
    return record_as(part, record, "statistics.json")
