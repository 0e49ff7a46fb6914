"""Checkpoints of one training: how scores go with the step, and whether the last one lost any.

Entries of the models file with a `step` are checkpoints; those of one `series` (the family where
none is named) are one curve. Each is compared with the one before it, item by item.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

from medassay.core.records.manifest import RunModel
from medassay.core.records.statistics import OVERALL, LeaderboardRow, Micro
from medassay.core.records.trial import RowKey
from medassay.errors import InputError
from medassay.statistic.draws import seed_of
from medassay.statistic.test.margin import difference_bounds
from medassay.statistic.test.paired import paired_difference
from medassay.storage.records import item_scores
from medassay.suite.results import Items, has_mean
from medassay.suite.run import ANSWERS, SuiteRun


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one checkpoint on one benchmark.

    Attributes
    ----------
    lo, hi : 95 % interval of the score; None where too few items tell one
    since : checkpoint before it, "" for the first
    difference, difference_lo, difference_hi : its score minus that of the one before, on the items
        that both have; None for the first
    lower_bound : lower end of the 90 % interval of its score minus the best one of all earlier
        checkpoints; None where no bound can be claimed (fewer than 10 items, no spread)
    best : that checkpoint
    """

    series: str
    benchmark: str
    metric: str
    setting: str
    model: str
    step: int
    score: float
    lo: float | None
    hi: float | None
    n: int
    since: str = ""
    difference: float | None = None
    difference_lo: float | None = None
    difference_hi: float | None = None
    best: str = ""
    lower_bound: float | None = None


class _Curve(NamedTuple):
    """What the points of one curve share."""

    series: str
    benchmark: str
    metric: str
    setting: str


class _Checkpoint(msgspec.Struct, frozen=True):
    model: str
    step: int
    items: Items

    @property
    def mean(self) -> float:
        return sum(self.items.values()) / len(self.items)


def curves(suite: SuiteRun) -> list[CurvePoint]:
    """Return the points of all curves, by series, benchmark, setting and step."""
    points: list[CurvePoint] = []
    for part in suite.parts:
        if ANSWERS not in part.runs:
            continue
        run = suite.run(part.runs[ANSWERS])
        if not has_mean(run):
            continue
        entries = run.manifest.models
        metric = run.statistics.metric
        rows = {row.key: row.micro or row for row in run.statistics.rows(OVERALL)}
        for (series, setting), checkpoints in sorted(
            _series(entries, item_scores(run.path)).items()
        ):
            points += _points(checkpoints, _Curve(series, part.benchmark, metric, setting), rows)
    return points


def _series(
    entries: Mapping[str, RunModel], scores: Mapping[RowKey, Items]
) -> dict[tuple[str, str], list[_Checkpoint]]:
    """Return (series, setting) → its checkpoints by step; a single one is no curve."""
    series: dict[tuple[str, str], list[_Checkpoint]] = {}
    for (model, setting), items in scores.items():
        step = entries[model].step
        if step is not None and items:
            name = entries[model].series or entries[model].family or ""
            series.setdefault((name, setting), []).append(_Checkpoint(model, step, items))
    return {
        key: sorted(checkpoints, key=lambda checkpoint: (checkpoint.step, checkpoint.model))
        for key, checkpoints in series.items()
        if len(checkpoints) > 1
    }


def _points(
    checkpoints: list[_Checkpoint], curve: _Curve, rows: Mapping[RowKey, LeaderboardRow | Micro]
) -> Iterator[CurvePoint]:
    """Yield the points of a curve, with the intervals of its run."""
    for at, checkpoint in enumerate(checkpoints):
        row = rows[checkpoint.model, curve.setting]
        if row.score is None:
            continue
        point = CurvePoint(
            **curve._asdict(),
            model=checkpoint.model,
            step=checkpoint.step,
            score=row.score,
            lo=row.lo,
            hi=row.hi,
            n=len(checkpoint.items),
        )
        if at:
            point = _compared(point, checkpoint, checkpoints[:at])
        yield point


def _compared(point: CurvePoint, checkpoint: _Checkpoint, earlier: list[_Checkpoint]) -> CurvePoint:
    before = earlier[-1]
    best = max(earlier, key=lambda other: (other.mean, -other.step))
    first, second = _pair(checkpoint.items, before.items)
    if not len(first):
        return point
    seed = seed_of("curve", point.benchmark, point.model, before.model)
    difference = paired_difference(first, second, seed=seed)
    last, held = _pair(checkpoint.items, best.items)
    bounds = difference_bounds([last], [held], [None])
    return msgspec.structs.replace(
        point,
        since=before.model,
        difference=difference.value,
        difference_lo=difference.lo,
        difference_hi=difference.hi,
        best=best.model,
        lower_bound=None if bounds is None else bounds.lo,
    )


def _pair(first: Items, second: Items) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of two checkpoints on the items that both have."""
    shared = sorted(first.keys() & second.keys())
    return np.array([first[i] for i in shared]), np.array([second[i] for i in shared])


class CurveGate(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the last checkpoint of every curve is not worse than the best before it by a margin.

    `failed` are the points of which that is not shown.
    """

    margin: float
    checked: int
    failed: list[CurvePoint]

    @property
    def passed(self) -> bool:
        """Return whether none failed."""
        return not self.failed


def curve_gate(points: list[CurvePoint], margin: float) -> CurveGate:
    """Return whether the last checkpoints hold a margin.

    Parameters
    ----------
    margin : in units of the score: 0.02 is two points of a hundred

    Raises
    ------
    InputError
        When the suite has no curve.
    """
    last: dict[tuple[str, str, str], CurvePoint] = {}
    for point in points:
        last[point.series, point.benchmark, point.setting] = point
    if not last:
        raise InputError(
            "--gate: the suite has no checkpoints; give entries of the models file a 'step', two of"
            " a series at least"
        )
    failed = [
        point
        for point in last.values()
        if point.lower_bound is None or point.lower_bound <= -margin
    ]
    return CurveGate(margin=margin, checked=len(last), failed=failed)
