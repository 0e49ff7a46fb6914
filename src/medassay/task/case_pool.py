"""The cases of one model-prompt as numbers: drawn together, aggregated with their weights.

Source: specification of differential-diagnosis scoring, "Algorithm", 6 and 7; statistics 7.10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medassay.core.trial import Scale
from medassay.score.ddx import BEST
from medassay.statistic.draws import Floats, number_clusters
from medassay.statistic.interval.ratio import drawn_sums, linearised, ratio_estimate
from medassay.statistic.metric.reliability import relative_weights, rescale

TOPS = (1, 3, 5)
# Both scores (0 to 16), predicted − golden severity, and whether the golden diagnosis is among the first k.
NUMBERS = ("semantic", "severity", "shift", *(f"top{k}" for k in TOPS))
SCORES = ("semantic", "severity")
_SHIFT = Scale(lo=-4.0, hi=4.0)  # of levels 1 to 5


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
class Stratum:
    """The cases of one domain, shape (n_cases, numbers), NaN where unknown, with the seed of its draws."""

    values: Floats
    clusters: NDArray[np.int64]
    seed: int


class CasePool:
    """Cases over some domains, drawn domain by domain."""

    def __init__(self, strata: Sequence[Stratum], n_resamples: int) -> None:
        self._strata = [stratum for stratum in strata if len(stratum.values)]
        self._n_resamples = n_resamples

    @cached_property
    def values(self) -> Floats:
        """Return all cases, shape (n_cases, numbers)."""
        return np.concatenate([np.empty((0, len(NUMBERS))), *(s.values for s in self._strata)])

    @cached_property
    def clusters(self) -> NDArray[np.int64] | None:
        """Return the cluster of each case, None if every case is its own."""
        return number_clusters(np.concatenate([s.clusters for s in self._strata]))

    def column(self, number: str) -> Floats:
        """Return one number of every case."""
        return self.values[:, NUMBERS.index(number)]

    def known(self, number: str) -> NDArray[np.bool_]:
        """Return for which cases a number is known."""
        return ~np.isnan(self.column(number))

    def only(self, chosen: NDArray[np.bool_]) -> "CasePool":
        """Return the pool of some cases; draws are over these alone."""
        if chosen.all():
            return self
        kept, at = [], 0
        for stratum in self._strata:
            mask = chosen[at : at + len(stratum.values)]
            at += len(stratum.values)
            kept.append(Stratum(stratum.values[mask], stratum.clusters[mask], stratum.seed))
        return CasePool(kept, self._n_resamples)

    def alike(self) -> "list[tuple[CasePool, list[str]]]":
        """Return the numbers in groups that are known for the same cases, each with these cases."""
        groups: dict[bytes, list[str]] = {}
        for number in NUMBERS:
            known = self.known(number)
            if known.any():
                groups.setdefault(known.tobytes(), []).append(number)
        return [(self.only(self.known(found[0])), found) for found in groups.values()]

    def sums(self, columns: Floats) -> Floats:
        """Return the sum of every column in every draw, shape (n_resamples, n_columns)."""
        total = np.zeros((self._n_resamples, columns.shape[1]))
        at = 0
        for stratum in self._strata:
            own = columns[at : at + len(stratum.values)]
            at += len(stratum.values)
            clusters = number_clusters(stratum.clusters)
            total += drawn_sums(own, clusters, self._n_resamples, stratum.seed)
        return total


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
    are known for the same cases share their draws.
    """
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for known, numbers in pool.alike():
        wanted = [one for number in numbers for one in _wanted(known, number, weighting)]
        sums = known.sums(
            np.column_stack([c for one in wanted for c in (one.above, one.below)])
        )
        for at, one in enumerate(wanted):
            draws = sums[:, 2 * at] / sums[:, 2 * at + 1]
            found = ratio_estimate(
                one.above, one.below, draws, clusters=known.clusters, scale=one.scale
            )
            made[one.key] = found.to_dict() | {"scale": [one.scale.lo, one.scale.hi]} | one.more
    return made


def _wanted(known: CasePool, number: str, weighting: Weighting) -> list[_Wanted]:
    values = known.column(number)
    ones = np.ones(len(values))
    if number not in SCORES:
        scale = _SHIFT if number == "shift" else Scale()
        return [_Wanted((number, "mean"), values, ones, scale, {})]
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
    sums = pool.sums(np.column_stack([above, below]))
    return linearised(above, below), sums[:, 0] / sums[:, 1]
