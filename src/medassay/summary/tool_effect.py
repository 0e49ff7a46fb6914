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
from medassay.statistic.ranking.pool import Options, Stratum, means_of

MODES = ("solo", "tools")


def tools_minus_solo(
    strata: Callable[[str, list[RowKey]], list[Stratum]], rows: Sequence[RowKey], options: Options
) -> Iterator[tuple[RowKey, DifferenceObject]]:
    """Yield each row with the difference of its means: diff, lo, hi, n and different (whether a
    difference is shown).

    By the rule "simultaneous" interval and reading come from one test of the pair; by the earlier
    rules from percentiles of draws. There is no interval from one cluster, and fewer than 10 show
    nothing.

    Parameters
    ----------
    strata : mode, rows → their scores by domain; rows of both modes in the same order, over the
        same items
    options : of the draws, which both modes share
    """
    shared = sorted(rows)
    solo, tools = (strata(mode, shared) for mode in MODES)
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
        lo: float | None = None
        hi: float | None = None
        if means.draws is not None and means.n_clusters > 1:  # one varies in no draw
            interval = percentile(means.draws[:, 1] - means.draws[:, 0], 0.95)
            lo, hi = float(interval[0]), float(interval[1])
        if options.simultaneous:
            yield row, _tested(pairs, masks, options)
            continue
        yield (
            row,
            {
                "diff": float(means.values[1] - means.values[0]),
                "lo": lo,
                "hi": hi,
                "n": means.n,
                "different": (
                    means.n_clusters >= SMALL_N
                    and lo is not None
                    and hi is not None
                    and (lo > 0 or hi < 0)
                ),
            },
        )


def _tested(
    pairs: Sequence[Stratum], masks: list[NDArray[np.bool_]], options: Options
) -> DifferenceObject:
    """Return tools minus solo of one row, a family of one pair."""
    field = RankedRows(
        rows=[("solo", ""), ("tools", "")],
        strata=pairs,
        ranked=[1, 0],
        present=[~np.isnan(s.scores) for s in pairs],
        common=masks,
        options=options,
    )
    board = board_of(field, step_down=True)
    means = means_of(pairs, [0, 1], masks, options)
    enough = means.n_clusters >= SMALL_N
    tested_pairs = pairs_of_board(field, board).pairs if enough else ()
    ends = tested_pairs[0].ends if tested_pairs else None
    return {
        "diff": float(means.values[1] - means.values[0]),
        "lo": None if ends is None else ends[0],
        "hi": None if ends is None else ends[1],
        "n": means.n,
        "different": bool(tested_pairs and tested_pairs[0].better),
    }
