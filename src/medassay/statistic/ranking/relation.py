"""Which rows are shown to be better than which, all pairs tested at once, and the range of ranks
that this leaves to each.

Row a is shown to be better than row b where their paired difference is beyond κ + c·SE. c is the
same for all pairs: what the largest of them reaches by chance in 5 % of draws, found by step-down.
SE is a norm of the differences, not centred, so that the relation is transitive for any c and κ;
every sentence that is printed about ranks follows from that.

Source: specification of ranks, R1 and R2.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.statistic.draws import Floats
from medassay.statistic.interval.bootstrap import TIE
from medassay.statistic.ranking.shared import Bools, Rank, rank_sets

CRITICAL = 1.959964  # of one pair, and the least there is
_LEVEL = 0.95


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """`better[a, b]` where row a is shown to be better than row b.

    `steps` are the critical values of the step-down, `c` the last.
    """

    better: Bools
    se: Floats
    kappa: float
    steps: tuple[float, ...]
    c: float


def shown_better(
    values: Floats, se: Floats, *, kappa: float, c: float, better: str = "high"
) -> Bools:
    """Return which rows are shown to be better than which, shape (n, n).

    Parameters
    ----------
    values : means, shape (n,)
    se : of each difference, shape (n, n)
    kappa : what a difference must have beyond chance: the share of one item, for right and wrong
        without clusters
    """
    sign = 1.0 if better == "high" else -1.0
    differences = sign * (values[:, None] - values[None, :])
    is_better: Bools = differences - kappa - c * se > TIE
    return is_better


def relation_of(
    values: Floats, draws: Floats, se: Floats, *, kappa: float, better: str = "high"
) -> Relation:
    """Return the relation among rows.

    Parameters
    ----------
    values : means, shape (n,)
    draws : shared draws of the means, shape (n_resamples, n)
    se : of each difference, a norm of it, shape (n, n)

    References
    ----------
    Romano and Wolf (2005), J. Am. Stat. Assoc. 100:94-108, doi:10.1198/016214504000000539; Mogstad,
    Romano, Shaikh and Wilhelm (2024), Rev. Econ. Stud. 91:476-518, doi:10.1093/restud/rdad006.
    """
    # One triangle is enough: |d|/SE of a pair is the same in both directions. Without spread
    # (SE = 0) no draw can move a pair, and a division by 0 would decide it.
    undecided: Bools = np.triu(se > TIE, k=1)
    size = np.abs(values[:, None] - values[None, :])
    moved = np.ascontiguousarray((draws - values).T)  # a row for each model
    # Step-down: pairs beyond c are decided and leave. The largest of the others reaches less by
    # chance, so the next c is smaller and may decide further pairs; a step that decides none is
    # the last. No c is below that of a single pair.
    steps: list[float] = []
    while undecided.any():
        c = max(CRITICAL, float(np.quantile(_highest(moved, se, undecided), _LEVEL)))
        steps.append(c)
        leaves = undecided & (size - kappa - c * se > TIE)
        if not leaves.any():
            break
        undecided &= ~leaves
    # The last c serves all pairs, those decided earlier too (they are beyond a larger one): with a
    # c of its own for each pair the relation would not be transitive.
    c = steps[-1] if steps else CRITICAL
    return Relation(
        better=shown_better(values, se, kappa=kappa, c=c, better=better),
        se=se,
        kappa=kappa,
        steps=tuple(steps),
        c=c,
    )


def _highest(moved: Floats, se: Floats, pairs: Bools) -> Floats:
    """Return, for each draw, the largest |d* − d|/SE over some pairs.

    One row of pairs at a time keeps memory at draws × n.
    """
    highest = np.zeros(moved.shape[1])
    for a, b in _blocks(pairs):
        apart = moved[b] - moved[a]
        apart /= se[a, b][:, None]
        np.maximum(highest, apart.max(axis=0), out=highest)
        np.maximum(highest, -apart.min(axis=0), out=highest)
    return highest


def _blocks(pairs: Bools) -> Iterator[tuple[int, NDArray[np.int64]]]:
    for a in range(len(pairs)):
        columns = np.flatnonzero(pairs[a])
        for start in range(0, len(columns), 128):  # a block fits into the cache of a core
            yield a, columns[start : start + 128]


def range_ranks(
    names: Sequence[str], values: Floats, relation: Bools, *, better: str = "high"
) -> tuple[list[Rank], list[int]]:
    """Return the rank of each row, which is a range, and the rows in the order in which they are
    shown.

    `rank` is the first rank that a row may have; `group` numbers the different first ranks.
    """
    first, last = rank_sets(relation)
    groups = {int(lo): number for number, lo in enumerate(sorted(set(first.tolist())), 1)}
    ranks = [
        Rank(rank=int(lo), lo=int(lo), hi=int(hi), group=groups[int(lo)])
        for lo, hi in zip(first, last, strict=True)
    ]
    sign = -1.0 if better == "high" else 1.0
    order = sorted(
        range(len(names)),
        key=lambda i: (int(first[i]), int(last[i]), sign * float(values[i]), names[i]),
    )
    return ranks, order
