"""The best-per-question bound: what picking the right model for each item would reach."""

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medassay.core.records.estimate import Estimate
from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.statistic.draws import Floats, number_clusters
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.statistic.interval.effective import effective_interval

REVISION = 1


class Oracle(msgspec.Struct, frozen=True, kw_only=True):
    """`estimate` rises with the number of models by luck alone; `wins` sum to the number of items.

    `win_ends` are the ends of the 95 % interval of each row's share of wins, in [0, 1].
    """

    estimate: Estimate
    best_single: float
    headroom: float
    wins: tuple[float, ...]
    win_ends: tuple[tuple[float, float], ...]
    unsolved_share: float


def oracle(
    scores: Floats,
    *,
    seed: int,
    n_resamples: int = 1000,
    clusters: ArrayLike | None = None,
    scale: Scale = Scale(),
) -> Oracle:
    """Return the oracle of a complete matrix, shape (n_rows, n_items), higher is better.

    Each item gives one win, split equally among the rows that score its maximum.
    """
    if scores.size == 0 or np.isnan(scores).any():
        raise StatisticError("the oracle needs common items: no empty matrix, no null")
    best = scores.max(axis=0)
    maximal = scores >= best - 1e-12
    won = maximal / maximal.sum(axis=0)
    numbers = None if clusters is None else number_clusters(np.asarray(clusters))
    estimate = bootstrap_mean(
        best, seed=seed, n_resamples=n_resamples, clusters=clusters, scale=scale
    )
    best_single = float(scores.mean(axis=1).max())
    return Oracle(
        estimate=estimate,
        best_single=best_single,
        headroom=estimate.value - best_single,
        wins=tuple(float(w) for w in won.sum(axis=1)),
        win_ends=tuple(_ends(row, numbers) for row in won),
        unsolved_share=float(np.mean(best <= 1e-12)),
    )


def _ends(won: Floats, clusters: NDArray[np.int64] | None) -> tuple[float, float]:
    """Return the interval of a share of wins, by the rule of boards: what an item gives lies in [0,
    1].
    """
    ends = effective_interval([(won, clusters)], scale=Scale()).ends
    assert ends is not None  # a share is bounded
    return ends
