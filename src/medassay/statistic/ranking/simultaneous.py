"""P: the order that paired evidence supports for all pairs at once (single-step max-t)."""

from collections.abc import Sequence

import msgspec
import numpy as np

from medassay.statistic.draws import Floats
from medassay.statistic.interval.bootstrap import TIE
from medassay.statistic.ranking.shared import Bools

REVISION = 1

_Z = 1.959964


class SimultaneousOrder(msgspec.Struct, frozen=True, kw_only=True):
    """`above[i, j]` when row i is above row j; `p_max_t` (n, n), 1 on the diagonal."""

    c: float
    above: Bools
    p_max_t: Floats


def simultaneous_order(values: Floats, draws: Floats, se: Floats) -> SimultaneousOrder:
    """Return the paired simultaneous order of all rows.

    Parameters
    ----------
    values : means, shape (n,), higher is better
    draws : shared draws of the means, shape (n_resamples, n)
    se : standard error of each difference, shape (n, n), a norm of the score differences; being a
        norm (not centred) it makes the order transitive

    References
    ----------
    Romano and Wolf (2005), J. Am. Stat. Assoc. 100:94-108, doi:10.1198/016214504000000539.
    """
    n = len(values)
    differences = values[:, None] - values[None, :]
    usable = se > TIE
    highest = np.zeros(len(draws))
    for i in range(n - 1):  # one row of pairs at a time keeps memory at draws × n
        columns = np.flatnonzero(usable[i, i + 1 :]) + i + 1
        if len(columns):
            moved = draws[:, [i]] - draws[:, columns] - differences[i, columns]
            np.maximum(highest, (np.abs(moved) / se[i, columns]).max(axis=1), out=highest)
    c = max(_Z, float(np.quantile(highest, 0.95)))
    above: Bools = differences - c * se > TIE
    t = np.divide(np.abs(differences), se, out=np.zeros_like(se), where=usable)
    ordered = np.sort(highest)
    reached = len(draws) - np.searchsorted(ordered, t - TIE, side="left")
    # The data count as one more draw: no finite number of draws shows a p of 0.
    p = np.where(usable, (reached + 1) / (len(draws) + 1), 1.0)
    return SimultaneousOrder(c=c, above=above, p_max_t=p)


def difference_norms(strata: Sequence[Floats]) -> Floats:
    """Return SE of every pair's difference of macro means, shape (n, n).

    Parameters
    ----------
    strata : per domain the sums of scores within clusters over the number of items, shape
        (n_rows, n_clusters): entry (i, g) is Σ_{item in g} score_i / n_items
    """
    total = np.zeros((strata[0].shape[0],) * 2)
    for sums in strata:
        for i, row in enumerate(sums):
            total[i] += ((sums - row) ** 2).sum(axis=1)
    norms: Floats = np.sqrt(total) / len(strata)
    return norms
