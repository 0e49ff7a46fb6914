"""The cases of one model and prompt as numbers, aggregated with their weights.

Source: specification of differential-diagnosis scoring, "Algorithm", 6 and 7; statistics 7.10.
"""

import math
from collections.abc import Collection, Mapping
from typing import TypedDict

import msgspec
import numpy as np

from medassay.core.records.statistics_object import EstimateObject
from medassay.core.scale import Scale
from medassay.kinds.diagnoses.scorer import BEST
from medassay.statistic.draws import Floats
from medassay.statistic.interval.ratio import linearised, ratio_estimate
from medassay.statistic.metric.reliability import relative_weights, rescale
from medassay.summary.pooled import CasePool

TOPS = (1, 3, 5)
# Both scores, predicted − golden severity (of levels 1 to 5), whether the golden diagnosis is among
# the first k, how many names the list holds, whether these are fewer than the places that count,
# and the semantic score over all these places.
COLUMNS = {
    "semantic": Scale(hi=BEST),
    "severity": Scale(hi=BEST),
    "shift": Scale(lo=-4.0, hi=4.0),
    **{f"top{k}": Scale() for k in TOPS},
    "names": Scale(hi=math.inf),
    "short": Scale(),
    "all_places": Scale(hi=BEST),
}
SCORES = ("semantic", "severity")


class Weighting(msgspec.Struct, frozen=True, kw_only=True):
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
        rescaled = self.rescaled(number, values)
        weights = relative_weights(rescaled, k=k, x0=x0)
        return weights * rescaled, weights


class WeightsObject(TypedDict, total=False):
    """How ranks weigh in an aggregate."""

    k: float
    x0: float


class CaseEstimateObject(EstimateObject, WeightsObject, total=False):
    """An estimate over cases, with the weights of its aggregate."""


class _RatioEstimate(msgspec.Struct, frozen=True):
    """One estimate to make: its name, what is summed above and below the line, its scale, what is
    added.
    """

    key: tuple[str, str]
    above: Floats
    below: Floats
    scale: Scale
    more: WeightsObject


def case_estimates(
    pool: CasePool, weighting: Weighting, keys: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str], CaseEstimateObject]:
    """Return every estimate of some cases as plain values, or those of `keys`; what has no case is
    left out.

    Keys are (number, aggregate): `raw` is the plain mean in units of the score, `mean` that of the
    rescaled score (of other numbers in their own units), each preset the weighted mean. All numbers
    that are known for the same cases share their draws. What has no interval, a pool with a domain
    of one case, is left out too.
    """
    estimates: dict[tuple[str, str], CaseEstimateObject] = {}
    for subpool, numbers in pool.alike():
        if not subpool.strata.has_interval:
            continue
        ratios = [
            wanted_ratio
            for number in numbers
            for wanted_ratio in _ratio_estimates(subpool, number, weighting)
        ]
        sums = subpool.strata.sums(
            np.column_stack([c for ratio in ratios for c in (ratio.above, ratio.below)])
        )
        for at, ratio in enumerate(ratios):
            if keys and ratio.key not in keys:  # its draws are made with those of the others
                continue
            draws = sums[:, 2 * at] / sums[:, 2 * at + 1]
            estimate = ratio_estimate(
                ratio.above, ratio.below, draws, subpool.strata, scale=ratio.scale
            )
            estimates[ratio.key] = {
                **estimate.to_dict(),
                "scale": ratio.scale.ends,
                **ratio.more,
            }
    return estimates


def _ratio_estimates(pool: CasePool, number: str, weighting: Weighting) -> list[_RatioEstimate]:
    values = pool.column(number)
    ones = np.ones(len(values))
    if number not in SCORES:
        return [_RatioEstimate((number, "mean"), values, ones, COLUMNS[number], {})]
    scale, rescaled = weighting.scale(number), weighting.rescaled(number, values)
    weighted = [
        _RatioEstimate(
            (number, preset),
            *weighting.weighed(number, values, preset),
            scale,
            {"k": k, "x0": x0},
        )
        for preset, (k, x0) in weighting.presets.items()
    ]
    return [
        _RatioEstimate((number, "raw"), values, ones, COLUMNS[number], {}),
        _RatioEstimate((number, "mean"), rescaled, ones, scale, {}),
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

    A case is missing where its semantic score is unknown; a severity that cannot be known of a case
    that has one is no miss. Empty where nothing is missing.
    """
    missing = ~pool.known("semantic")
    if not missing.any():
        return {}
    bounds_by_key: dict[tuple[str, str], tuple[float, float]] = {}
    for number in (*SCORES, *(f"top{k}" for k in TOPS)):
        values = pool.column(number)
        if np.isnan(values).all():
            continue
        ends = []
        for end in (0.0, BEST if number in SCORES else 1.0):
            filled = np.where(missing, end, values)
            ends.append(_aggregates(filled[~np.isnan(filled)], number, weighting))
        for name, worst in ends[0].items():
            bounds_by_key[number, name] = (worst, ends[1][name])
    return bounds_by_key


def _aggregates(values: Floats, number: str, weighting: Weighting) -> dict[str, float]:
    if number not in SCORES:
        return {"mean": float(values.mean())}
    aggregates = {
        "raw": float(values.mean()),
        "mean": float(weighting.rescaled(number, values).mean()),
    }
    for preset in weighting.presets:
        above, below = weighting.weighed(number, values, preset)
        aggregates[preset] = float(above.sum() / below.sum())
    return aggregates
