"""What tools change: the same rows asked with tools and without, paired over the items that both
have.

Source: specification of tasks and prompts, 14.4; statistics 7.3.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from medassay.core.records.statistics_object import DifferenceObject
from medassay.core.records.trial import RowKey
from medassay.statistic.interval.bootstrap import SMALL_N, percentile
from medassay.statistic.ranking.pairs import RankedRows, board_of, pairs_of_board
from medassay.statistic.ranking.pool import Options, PooledMeans, Stratum, means_of
from medassay.summary.scores import RunScores

_MODES = ("solo", "tools")
_Shown = tuple[float | None, float | None, bool]  # lo, hi, and whether a difference is shown


def tools_minus_solo(
    strata: Callable[[str, list[RowKey]], list[Stratum]], scores: RunScores, options: Options
) -> Iterator[tuple[RowKey, DifferenceObject]]:
    """Yield each row asked both ways with the difference of its means: diff, lo, hi, n and
    different (whether a difference is shown).

    By the rule "simultaneous" interval and reading come from one test of the pair; by the earlier
    rules from percentiles of draws. There is no interval from one cluster, and fewer than 10 show
    nothing.

    Parameters
    ----------
    strata : mode, rows → their scores by domain; rows of both modes in the same order, over the
        same items
    options : of the draws, which both modes share
    """
    if not set(_MODES) <= scores.modes:
        return
    shared = sorted(set(scores.rows("solo")) & set(scores.rows("tools")))
    solo, tools = (strata(mode, shared) for mode in _MODES)
    for at, row in enumerate(shared):
        pairs = [
            Stratum(
                name=solo_stratum.name,
                scores=np.stack([solo_stratum.scores[at], other.scores[at]]),
                clusters=solo_stratum.clusters,
                seed=solo_stratum.seed,
            )
            for solo_stratum, other in zip(solo, tools, strict=True)
        ]
        masks = [np.asarray(~np.isnan(s.scores).any(axis=0)) for s in pairs]
        if not any(mask.any() for mask in masks):
            continue
        means = means_of(pairs, [0, 1], masks, options)
        enough = means.n_clusters >= SMALL_N
        if options.simultaneous:
            lo, hi, shown = _tested(pairs, masks, options) if enough else (None, None, False)
        else:
            lo, hi, shown = _drawn(means)
        difference = float(means.values[1] - means.values[0])
        yield (
            row,
            {"diff": difference, "lo": lo, "hi": hi, "n": means.n, "different": shown and enough},
        )


def _drawn(means: PooledMeans) -> _Shown:
    if means.draws is None or means.n_clusters <= 1:  # one varies in no draw
        return None, None, False
    lo, hi = (float(end) for end in percentile(means.draws[:, 1] - means.draws[:, 0]))
    return lo, hi, lo > 0 or hi < 0


def _tested(pairs: Sequence[Stratum], masks: list[NDArray[np.bool_]], options: Options) -> _Shown:
    """Return what a family of one pair tells."""
    field = RankedRows(
        rows=[("solo", ""), ("tools", "")],
        strata=pairs,
        ranked=[1, 0],
        present=[~np.isnan(s.scores) for s in pairs],
        common=masks,
        options=options,
    )
    pairs_tested = pairs_of_board(field, board_of(field, step_down=True)).pairs
    if not pairs_tested:
        return None, None, False
    lo, hi = pairs_tested[0].ends or (None, None)
    return lo, hi, bool(pairs_tested[0].better)
