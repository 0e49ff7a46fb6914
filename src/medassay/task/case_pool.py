"""The cases of one model-prompt as numbers: drawn together, aggregated with their weights.

Source: specification of differential-diagnosis scoring, "Algorithm", 6 and 7; statistics 7.10.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medassay.core.trial import Scale
from medassay.score.ddx import BEST
from medassay.statistic.draws import Floats
from medassay.statistic.interval.ratio import (
    DrawnStratum,
    Strata,
    linearised,
    ratio_estimate,
)
from medassay.statistic.metric.reliability import relative_weights, rescale
from medassay.statistic.ranking.shared import Bools

TOPS = (1, 3, 5)
# Both scores (0 to 16), predicted − golden severity, whether the golden diagnosis is among the first k, how many names the list holds,
# whether these are fewer than the places that count, and the semantic score over all these places.
NUMBERS = (
    *("semantic", "severity", "shift", *(f"top{k}" for k in TOPS)),
    *("names", "short", "all_places"),
)
SCORES = ("semantic", "severity")
# Of numbers that are neither scores nor shares; the shift is one of levels 1 to 5.
_SCALES = {
    "shift": Scale(lo=-4.0, hi=4.0),
    "names": Scale(hi=math.inf),
    "all_places": Scale(hi=BEST),
}


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """How scores are rescaled, and the weights of cases: preset → (k, x0)."""

    semantic_max: float
    presets: Mapping[str, tuple[float, float]]

    def rescaled(self, number: str, values: Floats) -> Floats:
        """Return a score rescaled to −1 … 1; the semantic one may exceed 1."""
        return rescale(values, self.semantic_max if number == "semantic" else BEST)

    def scale(self, number: str) -> Scale:
        """Return the scale of a rescaled score."""
        return Scale(lo=-1.0, hi=float(self.rescaled(number, np.array(BEST))))

    def weighed(self, number: str, values: Floats, preset: str) -> tuple[Floats, Floats]:
        """Return weight × rescaled score, and the weight, of each case."""
        k, x0 = self.presets[preset]
        shown = self.rescaled(number, values)
        weights = relative_weights(shown, k=k, x0=x0)
        return weights * shown, weights


@dataclass(frozen=True)
class CaseStratum:
    """The cases of one domain, shape (n_cases, numbers), NaN where unknown, with the seed of its draws."""

    values: Floats
    clusters: NDArray[np.int64]
    seed: int


class CasePool:
    """Cases over some domains, drawn domain by domain; `numbers` names the columns of their values."""

    def __init__(
        self,
        strata: Sequence[CaseStratum],
        *,
        pool_seed: int,
        n_resamples: int,
        numbers: tuple[str, ...],
    ) -> None:
        self._strata = strata
        self._numbers = numbers
        self._pool_seed = pool_seed
        self._n_resamples = n_resamples

    @cached_property
    def values(self) -> Floats:
        """Return all cases, shape (n_cases, numbers)."""
        return np.concatenate(
            [np.empty((0, len(self._numbers))), *(s.values for s in self._strata)]
        )

    @property
    def domains(self) -> Sequence[CaseStratum]:
        """Return the cases of each domain."""
        return self._strata

    @cached_property
    def strata(self) -> Strata:
        """Return how the cases are drawn."""
        return Strata(
            [DrawnStratum(stratum.clusters, stratum.seed) for stratum in self._strata],
            pool_seed=self._pool_seed,
            n_resamples=self._n_resamples,
        )

    def column(self, number: str) -> Floats:
        """Return one number of every case."""
        return self.values[:, self._numbers.index(number)]

    def known(self, number: str) -> Bools:
        """Return for which cases a number is known."""
        return ~np.isnan(self.column(number))

    def only(self, chosen: Bools) -> "CasePool":
        """Return the pool of some cases; draws are over these alone."""
        if chosen.all():
            return self
        kept, at = [], 0
        for stratum in self._strata:
            mask = chosen[at : at + len(stratum.values)]
            at += len(stratum.values)
            part = CaseStratum(stratum.values[mask], stratum.clusters[mask], stratum.seed)
            kept.append(part)
        return CasePool(
            kept,
            numbers=self._numbers,
            pool_seed=self._pool_seed,
            n_resamples=self._n_resamples,
        )

    def alike(self) -> "list[tuple[CasePool, list[str]]]":
        """Return the numbers in groups that are known for the same cases, each with these cases."""
        groups: dict[bytes, list[str]] = {}
        for number in self._numbers:
            known = self.known(number)
            if known.any():
                groups.setdefault(known.tobytes(), []).append(number)
        return [(self.only(self.known(found[0])), found) for found in groups.values()]


def pooled_means(
    pool: CasePool, scales: Mapping[str, Scale] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the mean of every number of a pool with its interval; what no case has, or what has no interval, is left out.

    `scales` are those of numbers that are no shares.
    """
    made: dict[str, dict[str, Any]] = {}
    for known, numbers in pool.alike():
        if not known.strata.has_interval:
            continue
        columns = [known.column(number) for number in numbers]
        ones = np.ones(len(columns[0]))
        sums = known.strata.sums(np.column_stack([*columns, ones]))
        for at, (number, values) in enumerate(zip(numbers, columns, strict=True)):
            draws = sums[:, at] / sums[:, -1]
            scale = (scales or {}).get(number, Scale())
            made[number] = ratio_estimate(
                values, ones, draws, known.strata, scale=scale
            ).to_dict()
    return made


@dataclass(frozen=True)
class _Wanted:
    """One estimate to make: its name, what is summed above and below the line, its scale, what is added."""

    key: tuple[str, str]
    above: Floats
    below: Floats
    scale: Scale
    more: dict[str, float]


def case_estimates(
    pool: CasePool, weighting: Weighting
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return every estimate of some cases as plain values; what has no case is left out.

    Keys are (number, aggregate): `raw` is the plain mean in units of the score, `mean` that of the
    rescaled score (of other numbers in their own units), each preset the weighted mean. All numbers that
    are known for the same cases share their draws. What has no interval, a pool with a domain of one case,
    is left out too.
    """
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for known, numbers in pool.alike():
        if not known.strata.has_interval:
            continue
        wanted = [one for number in numbers for one in _wanted(known, number, weighting)]
        sums = known.strata.sums(
            np.column_stack([c for one in wanted for c in (one.above, one.below)])
        )
        for at, one in enumerate(wanted):
            draws = sums[:, 2 * at] / sums[:, 2 * at + 1]
            found = ratio_estimate(one.above, one.below, draws, known.strata, scale=one.scale)
            made[one.key] = found.to_dict() | {"scale": one.scale.ends} | one.more
    return made


def _wanted(known: CasePool, number: str, weighting: Weighting) -> list[_Wanted]:
    values = known.column(number)
    ones = np.ones(len(values))
    if number not in SCORES:
        return [_Wanted((number, "mean"), values, ones, _SCALES.get(number, Scale()), {})]
    scale, shown = weighting.scale(number), weighting.rescaled(number, values)
    weighted = [
        _Wanted(
            (number, preset),
            *weighting.weighed(number, values, preset),
            scale,
            {"k": k, "x0": x0},
        )
        for preset, (k, x0) in weighting.presets.items()
    ]
    return [
        _Wanted((number, "raw"), values, ones, Scale(hi=BEST), {}),
        _Wanted((number, "mean"), shown, ones, scale, {}),
        *weighted,
    ]


def aggregate_draws(
    pool: CasePool, number: str, weighting: Weighting, preset: str
) -> tuple[Floats, Floats]:
    """Return values whose plain mean is a weighted aggregate, one a case, and the draws of it."""
    above, below = weighting.weighed(number, pool.column(number), preset)
    sums = pool.strata.sums(np.column_stack([above, below]))
    return linearised(above, below), sums[:, 0] / sums[:, 1]


def bounds(pool: CasePool, weighting: Weighting) -> dict[tuple[str, str], tuple[float, float]]:
    """Return every aggregate with the missing cases at their worst, and at their best.

    A case is missing where its semantic score is unknown; a severity that cannot be known of a case that
    has one is no miss. Empty where nothing is missing.
    """
    missing = ~pool.known("semantic")
    if not missing.any():
        return {}
    made: dict[tuple[str, str], tuple[float, float]] = {}
    for number in (*SCORES, *(f"top{k}" for k in TOPS)):
        values = pool.column(number)
        if np.isnan(values).all():
            continue
        ends = []
        for end in (0.0, BEST if number in SCORES else 1.0):
            filled = np.where(missing, end, values)
            ends.append(_aggregates(filled[~np.isnan(filled)], number, weighting))
        for name, worst in ends[0].items():
            made[number, name] = (worst, ends[1][name])
    return made


def _aggregates(values: Floats, number: str, weighting: Weighting) -> dict[str, float]:
    if number not in SCORES:
        return {"mean": float(values.mean())}
    found = {
        "raw": float(values.mean()),
        "mean": float(weighting.rescaled(number, values).mean()),
    }
    for preset in weighting.presets:
        above, below = weighting.weighed(number, values, preset)
        found[preset] = float(above.sum() / below.sum())
    return found
