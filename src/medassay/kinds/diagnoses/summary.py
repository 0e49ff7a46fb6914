"""What a report says of the ranked diagnoses of a run: aggregates, pairs of model-prompts, where
they err.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, TypedDict

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.protocols import RowAddition
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.statistics_object import PairObject
from medassay.core.records.target import Diagnoses, Target, Withheld
from medassay.core.records.trial import CellKey, RowKey, Trial
from medassay.kinds.diagnoses.aggregates import (
    COLUMNS,
    SCORES,
    TOPS,
    CaseEstimateObject,
    Weighting,
    aggregate_draws,
    bounds,
    case_estimates,
)
from medassay.kinds.diagnoses.parts import DiagnosesParts, parts_of
from medassay.statistic.draws import Floats
from medassay.statistic.interval.ratio import ratio_p
from medassay.statistic.metric.reliability import PRESETS, score_maximum
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO
from medassay.statistic.ranking.shared import Bools
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import difference_from_draws
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool

CASE_KEYS = (
    *("semantic", "severity", "semantic_mean", "severity_mean", "quadrants"),
    *("names", "short_lists", "all_places_mean"),
    *(f"top{k}" for k in TOPS),
)
QUADRANTS = ("top_right", "top_left", "bottom_left", "bottom_right", "axis")
NAMES_ALONE = "ddx_names"  # the task whose lists nobody judges
UNJUDGED_MARK = 0.05  # above this share of its labels a row carries a mark
MOST_GROUPS = 200  # of one grouping; the largest are shown
_FEWEST = 2  # cases of a pair


def quadrant(severity: float | None, semantic: float | None) -> str | None:
    """Return where a case lies, x severity and y semantic, both rescaled; None if one is unknown.

    Examples
    --------
    >>> quadrant(0.625, 0.03), quadrant(-0.1, 0.5), quadrant(0.0, 0.5)
    ('top_right', 'top_left', 'axis')
    """
    if severity is None or semantic is None:
        return None
    if severity == 0 or semantic == 0:
        return "axis"
    return f"{'top' if semantic > 0 else 'bottom'}_{'right' if severity > 0 else 'left'}"


# Which estimates are told of groups of cases.
_OF_GROUPS = (("semantic", "raw"), ("severity", "raw"), ("shift", "mean"), ("top5", "mean"))


class ErrorGroupObject(TypedDict):
    """Scores and signed severity difference of a model on a group of cases, with intervals."""

    model: str
    prompt: str
    mode: str
    by: str
    value: str
    n: int
    semantic_mean: CaseEstimateObject | None
    severity_mean: CaseEstimateObject | None
    severity_shift: CaseEstimateObject | None
    top5: CaseEstimateObject | None


class _LabelCounts(msgspec.Struct):
    """What was counted of the labels of one cell."""

    unjudged: int = 0
    labels: int = 0
    golden: dict[int, str] = msgspec.field(default_factory=dict)  # place → golden severity


class DdxCases:
    """Collects the scores of a run's cases as a stream, and computes what a report says of them."""

    key = "ddx"

    def __init__(self, items: RunItems, manifest: Manifest) -> None:
        self._items = items
        self._manifest = manifest
        self._rules = manifest.ddx_rules
        free = (self._rules.k, self._rules.x0)
        free_preset = {} if free[0] is None or free[1] is None else {"free": (free[0], free[1])}
        self._weighting = Weighting(
            semantic_max=score_maximum(self._rules.semantic_max),
            presets={**PRESETS, **free_preset},
        )
        # What a missing list gets for severity: the worst, unless nobody was asked for any.
        self.judged = NAMES_ALONE not in manifest.task_names
        self._none_at_all = 0.0 if self.judged else None
        self._table = ItemMatrix(items, manifest, COLUMNS)
        self._labelled: dict[CellKey, _LabelCounts] = {}

    @property
    def leading(self) -> str:
        """Return the preset that leads in figures and pairs: one's own k and x0, if there are."""
        return "free" if "free" in self._weighting.presets else self._rules.preset

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record: null counts for nothing, no list scores 0 and 0."""
        cell = trial.cell
        parts = parts_of(score.parts)
        place = self._table.add(cell, trial.item, self._numbers(score, parts))
        cases = self._labelled.setdefault(cell, _LabelCounts())
        cases.unjudged += parts.unjudged
        cases.labels += 2 * parts.n_considered
        if parts.golden_severity:
            cases.golden[place] = parts.golden_severity

    def numbers(self, score: TrialScore) -> dict[str, float | None]:
        """Return the numbers of one score record by column; None where unknown."""
        return self._numbers(score, parts_of(score.parts))

    def _numbers(self, score: TrialScore, parts: DiagnosesParts) -> dict[str, float | None]:
        if score.score is None:
            return {}
        has_list = bool(score.parts)  # a reply without a list has none
        hit, limit = parts.hit, self._rules.rank_limit
        return {
            "semantic": score.score,
            "severity": parts.severity if has_list else self._none_at_all,
            "shift": parts.severity_shift,
            **{f"top{k}": float(hit is not None and hit <= k) for k in TOPS if k <= limit},
            "names": parts.n if has_list else 0,
            "short": float(parts.n_considered < limit),
            "all_places": parts.all_places if has_list else 0.0,
        }

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> RowAddition:
        """Return what a row of a ranking says besides its rank; marked where judges left too many
        labels.

        `used` are the items that the row is ranked on, over the domains; aggregates are over these.
        """
        all_cases = self._table.pool(domains, row, mode)
        pool = all_cases.only(used)
        estimates = case_estimates(pool, self._weighting)
        for key, (worst, best) in bounds(all_cases, self._weighting).items():
            if key in estimates:
                estimates[key] |= {"worst": worst, "best": best}
        weights = (*self._weighting.presets, "mean")
        cells = [c for d in domains if (c := self._labelled.get((d, *row, mode)))]
        unjudged, labels = sum(c.unjudged for c in cells), sum(c.labels for c in cells)
        columns = {
            "prompt": row[1],
            **{name: {key: estimates.get((name, key)) for key in weights} for name in SCORES},
            **{f"{name}_mean": estimates.get((name, "raw")) for name in SCORES},
            **{f"top{k}": estimates.get((f"top{k}", "mean")) for k in TOPS},
            "names": estimates.get(("names", "mean")),
            "short_lists": estimates.get(("short", "mean")),
            "all_places_mean": estimates.get(("all_places", "mean")),
            "quadrants": self._quadrants(pool),
            "skipped": int((~all_cases.known("semantic")).sum()),
            "unjudged": unjudged,
            "labels": labels,
        }
        too_many = self.judged and labels > 0 and unjudged / labels > UNJUDGED_MARK
        return RowAddition(columns=columns, flags=["unjudged"] if too_many else [])

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return rules, pairs of model-prompts by mode, and where they err, over all domains.

        `used` are, by mode and row, the items that the row is ranked on.
        """
        return {
            "semantic_max": self._weighting.semantic_max,
            "leading": self.leading,
            "presets": {n: {"k": k, "x0": x0} for n, (k, x0) in self._weighting.presets.items()},
            "pairs": {
                mode: {number: self._pairs(used_by_row, mode, number) for number in SCORES}
                for mode, used_by_row in used.items()
            },
            "errors": [
                error
                for mode, used_by_row in used.items()
                for row in sorted(used_by_row)
                for error in self._errors(row, mode)
            ],
        }

    def _quadrants(self, pool: CasePool) -> dict[str, int]:
        common = pool.only(pool.known("semantic") & pool.known("severity"))
        across, up = (
            np.sign(self._weighting.rescaled(number, common.column(number))).tolist()
            for number in ("severity", "semantic")
        )
        counted = Counter(map(quadrant, across, up))
        return {name: counted[name] for name in QUADRANTS}

    def _pairs(self, used: Mapping[RowKey, Bools], mode: str, number: str) -> list[PairObject]:
        """Return the differences of the leading aggregates, first minus second, on common cases."""
        rows = sorted(used)
        if not 2 <= len(rows) <= ALL_PAIRS_UP_TO:
            return []
        pools = {row: self._table.pool(self._table.domains, row, mode) for row in rows}
        remembered: dict[tuple[RowKey, bytes], tuple[Floats, Floats]] = {}

        def side(row: RowKey, common: Bools) -> tuple[Floats, Floats]:
            key = (row, common.tobytes())
            if key not in remembered:
                common_pool = pools[row].only(common)
                remembered[key] = aggregate_draws(
                    common_pool, number, self._weighting, self.leading
                )
            return remembered[key]

        pairs: list[PairObject] = []
        ps: list[float] = []
        for first, second in combinations(rows, 2):
            common = pools[first].known(number) & pools[second].known(number)
            common &= used[first] & used[second]
            strata = pools[first].only(common).strata
            if common.sum() < _FEWEST or not strata.has_interval:
                continue
            (values, one_draws), (other, other_draws) = (
                side(first, common),
                side(second, common),
            )
            difference = difference_from_draws(
                values, other, one_draws - other_draws, clusters=strata.clusters
            )
            ps.append(ratio_p(values - other, strata))
            pairs.append(
                {
                    "first": list(first),
                    "second": list(second),
                    "difference": difference.value,
                    "lo": difference.lo,
                    "hi": difference.hi,
                    "n": len(values),
                    "p": ps[-1],
                    "p_holm": None,  # once every p is known
                    "test": "t of the linearised difference",
                    "different": difference.different,
                }
            )
        for pair, p_holm in zip(pairs, holm(ps), strict=True):
            pair["p_holm"] = float(p_holm)
        return pairs

    def _errors(self, row: RowKey, mode: str) -> list[ErrorGroupObject]:
        """Return scores and signed severity difference by group of cases, with intervals.

        Groups are golden severity, category and golden diagnosis; names only of public items, and
        of each grouping the largest groups.
        """
        pool = self._table.pool(self._table.domains, row, mode)
        errors: list[ErrorGroupObject] = []
        severities = self._golden_severities(row, mode)
        for by, labels in {"golden_severity": severities, **self._groups}.items():
            sizes = Counter(label for label in labels if label)
            names, inverse = np.unique(np.array(labels), return_inverse=True)
            numbers = {name: number for number, name in enumerate(names.tolist())}
            for value, size in sorted(sizes.most_common(MOST_GROUPS)):
                group = pool.only(inverse == numbers[value])
                estimates = case_estimates(group, self._weighting, _OF_GROUPS)
                errors.append(
                    {
                        "model": row[0],
                        "prompt": row[1],
                        "mode": mode,
                        "by": by,
                        "value": value,
                        "n": size,
                        "semantic_mean": estimates.get(("semantic", "raw")),
                        "severity_mean": estimates.get(("severity", "raw")),
                        "severity_shift": estimates.get(("shift", "mean")),
                        "top5": estimates.get(("top5", "mean")),
                    }
                )
        return errors

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        """Return grouping → the group of each case over all domains; "" where it has none to tell.

        Nothing once an item is deleted: the groups would tell what it was.
        """
        if any(isinstance(t, Withheld) and t.tombstone is not None for t in self._targets):
            return {}
        public = [
            (
                (item.category or "", item.target.golden)
                if item.kind == "public" and isinstance(item.target, Diagnoses)
                else ("", "")
            )
            for item in self._items
        ]
        return {
            "category": [category for category, _ in public],
            "golden_diagnosis": [golden for _, golden in public],
        }

    @property
    def _targets(self) -> Iterator[Target]:
        return (item.target for item in self._items)

    @cached_property
    def _given_severities(self) -> list[str]:
        return [
            # The severity of a withheld or deleted item stays public.
            (target.severity or "") if isinstance(target, Diagnoses | Withheld) else ""
            for target in self._targets
        ]

    def _golden_severities(self, row: RowKey, mode: str) -> list[str]:
        """Return the golden severity of each case over all domains: as judged, else as the bank
        says.
        """
        severities, at = self._given_severities.copy(), 0
        for domain, clusters in self._table.clusters.items():
            cases = self._labelled.get((domain, *row, mode))
            for place, severity in ({} if cases is None else cases.golden).items():
                severities[at + place] = severity
            at += len(clusters)
        return severities
