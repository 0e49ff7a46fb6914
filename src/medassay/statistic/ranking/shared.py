"""Shared ranks: what the intervals cannot separate stands on one rank, with its range."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.records.estimate import Estimate
from medassay.errors import StatisticError
from medassay.statistic.interval.bootstrap import SMALL_N

REVISION = 1

ENDS = 1e-9  # interval ends closer than this touch
Rule = Literal["simultaneous", "leader", "arena", "closure"]
Bools = NDArray[np.bool_]


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """A rank, the range it may lie in, and its group (numbered from 1 in order of rank).

    All are None for a row that is not ranked; `reason` then says why.
    """

    rank: int | None
    lo: int | None
    hi: int | None
    group: int | None
    reason: str | None = None


def separated(
    estimates: Sequence[Estimate],
    *,
    better: str = "high",
    percentile_only: bool = False,
    touching: bool = False,
) -> Bools:
    """Return S: whether row i lies above row j, by the first and by the second intervals.

    An estimate without a second interval is compared by its first. Shape (n, n).

    Parameters
    ----------
    percentile_only : whether the second intervals are left aside
    touching : whether intervals that only touch lie apart, as "overlap" is meant by the source
    """
    for estimate in estimates:
        if not estimate.lo - ENDS <= estimate.value <= estimate.hi + ENDS:
            raise StatisticError(f"{estimate}: the value lies outside its own interval")
    first = _above([(e.lo, e.hi) for e in estimates], better)
    if touching:
        sign = 1.0 if better == "high" else -1.0
        values = sign * np.array([e.value for e in estimates])
        near = _above([(e.lo, e.hi) for e in estimates], better, least=-2 * ENDS)
        first |= near & (values[:, None] > values[None, :] + ENDS)
    if percentile_only:
        return first
    ends = [(e.second.lo, e.second.hi) if e.second else (e.lo, e.hi) for e in estimates]
    return np.logical_and(first, _above(ends, better))


def _above(ends: list[tuple[float, float]], better: str, least: float = ENDS) -> Bools:
    lo, hi = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    if better == "low":
        lo, hi = -hi, -lo
    above: Bools = lo[:, None] > hi[None, :] + least
    return above


def rank_sets(above: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (rank_best, rank_worst): 1 + rows above, and n − rows below."""
    return 1 + above.sum(axis=0), len(above) - above.sum(axis=1)


def shared_ranks(
    names: Sequence[str], values: Sequence[float], above: Bools, *, rule: Rule, better: str
) -> list[Rank]:
    """Return the rank of each row from the relation `above`.

    `leader`: walking down by value, a row joins the group while it is tied with every member;
    groups open at their first row's position. `arena`: the best rank possible. `closure`: groups
    are the transitive closure of ties.
    """
    sign = -1.0 if better == "high" else 1.0
    order = sorted(range(len(names)), key=lambda i: (sign * values[i], names[i]))
    best, worst = rank_sets(above)
    tied = ~(above | above.T)
    rank = [0] * len(names)
    if rule == "arena":
        rank = [int(value) for value in best]
    else:
        # Ties are not transitive. `leader` asks for a tie with every member, since a chain of ties
        # from first to last would make one group of rows that are far apart; `closure` does that
        # on purpose, and so must look ahead: a lower row may tie a higher one to the group.
        group: list[int] = []
        for position, row in enumerate(order, 1):
            members = [tied[row, other] for other in group]
            joins = any(members) if rule == "closure" else all(members)
            if rule == "closure" and not joins and group:
                joins = bool(tied[np.ix_(order[position - 1 :], group)].any())
            if group and joins:
                rank[row] = rank[group[0]]
                group.append(row)
            else:
                rank[row], group = position, [row]
    numbered = {value: number for number, value in enumerate(sorted(set(rank)), 1)}
    return [
        Rank(rank=rank[i], lo=int(best[i]), hi=int(worst[i]), group=numbered[rank[i]])
        for i in range(len(names))
    ]


def rank(
    estimates: Mapping[str, Estimate],
    rule: Rule = "leader",
    better: Literal["high", "low"] = "high",
) -> dict[str, Rank]:
    """Return the shared rank of every named estimate.

    Estimates from fewer than 10 items or clusters are not ranked ("too few items"). These are the
    rules of single intervals; boards rank by all pairs at once.

    Parameters
    ----------
    estimates : by name; two differ where their intervals do not overlap
    rule : `leader`: a row joins a group while it is tied with each of its members; `arena`: the
        best rank that a row may have; `closure`: groups are chains of ties
    better : which end of the scale is

    Raises
    ------
    StatisticError
        When the rule is unknown.

    Examples
    --------
    >>> from medassay import Estimate, rank
    >>> e = {n: Estimate(value=v, lo=v - .04, hi=v + .04, n=99, n_clusters=99)
    ...      for n, v in {"a": .60, "b": .55, "c": .50, "d": .45}.items()}
    >>> [(r.rank, r.lo, r.hi) for r in rank(e).values()]
    [(1, 1, 2), (1, 1, 3), (3, 2, 4), (3, 3, 4)]
    """
    if rule not in ("leader", "arena", "closure"):
        raise StatisticError(f"rank rule '{rule}': expected leader, arena or closure")
    names = [n for n, e in estimates.items() if min(e.n, e.n_clusters) >= SMALL_N]
    values = [estimates[name] for name in names]
    ranks_by_name: dict[str, Rank] = {}
    if values:
        above = separated(values, better=better)
        ranks = shared_ranks(names, [e.value for e in values], above, rule=rule, better=better)
        ranks_by_name = dict(zip(names, ranks, strict=True))
    too_few = Rank(rank=None, lo=None, hi=None, group=None, reason="too_few_items")
    return {name: ranks_by_name.get(name, too_few) for name in estimates}
