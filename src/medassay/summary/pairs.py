"""What holds between the rows of a ranking, as documents keep it: common items, the relation and
its sentence, pairs, oracle.
"""

from collections.abc import Mapping

from medassay.core.ranks import ranking_sentence
from medassay.core.records.leaderboard import unread_outweighs
from medassay.core.records.statistics_object import FieldObject, PairObject
from medassay.core.records.task import Task
from medassay.core.records.trial import RowKey
from medassay.statistic.ranking.field import Field, Standing
from medassay.statistic.ranking.pairs import Pair
from medassay.statistic.test.planner import items_to_tell as planned


def relations_of(field: Field, unread: Mapping[RowKey, float], task: Task) -> FieldObject:
    """Return what holds between the rows of a field.

    Parameters
    ----------
    unread : share of unread replies of each row
    """
    best = field.oracle
    pairs: list[PairObject] = [
        {**_pair(pair), **_unread(pair, unread, task)} for pair in field.pairs
    ]
    return {
        "n_items": field.n_items,
        "n_common": field.n_common,
        "common_share": field.common_share,
        "not_common": field.not_common,
        "leader_changes_with_nulls": field.leader_changes_with_nulls,
        "c": field.c,
        **(_relation(field, task) if field.ranges else {}),
        "pairs": pairs,
        "oracle": (
            None
            if best is None
            else {
                **best.estimate.to_dict(),
                "best_single": best.best_single,
                "headroom": best.headroom,
                "unsolved_share": best.unsolved_share,
                "wins": [
                    {
                        "model": s.row[0],
                        "setting": s.row[1],
                        "wins": w,
                        "share_lo": lo,
                        "share_hi": hi,
                    }
                    for s, w, (lo, hi) in zip(
                        (s for s in field.standings if s.rank.rank),
                        best.wins,
                        best.win_ends,
                        strict=True,
                    )
                ],
            }
        ),
    }


def _relation(field: Field, task: Task) -> FieldObject:
    """Return the relation that decides ranks, and the sentence that follows from it."""
    relation = field.relation
    weight = 1 / max(1, field.n_domains)
    return {
        "graded": field.graded,
        "kappa": None if relation is None else relation.kappa,
        "c_steps": [] if relation is None else list(relation.steps),
        "n_ranked": len(field.ranked),
        "small_domains": [
            {"domain": name, "items": items, "clusters": clusters, "weight": weight}
            for name, (items, clusters) in field.small_domains.items()
        ],
        "sentence": sentence_of(field, task),
    }


def sentence_of(field: Field, task: Task) -> str:
    """Return the answer to "who is best?" in a field whose ranks are ranges."""
    standings = [field.standings[i] for i in field.ranked]
    alone = len({standing.row[0] for standing in standings}) == len(standings)
    sign = -1.0 if task.scale.better == "high" else 1.0

    def name(row: RowKey) -> str:
        return row[0] if alone else f"{row[0]} ({row[1]})"

    def place(standing: Standing) -> tuple[float, str]:
        value = 0.0 if standing.estimate is None else standing.estimate.value
        return sign * value, name(standing.row)

    ordered = sorted(standings, key=place)
    first = [standing.row for standing in ordered if standing.rank.lo == 1]
    others = [standing.row for standing in ordered if standing.rank.lo != 1]
    needed = None
    if len(first) > 1 and not others:
        items = items_to_tell(field, first[0], first[1])
        needed = None if items is None else (name(first[0]), name(first[1]), items)
    return ranking_sentence(
        [name(row) for row in first],
        [name(row) for row in others],
        graded=field.graded,
        needed=needed,
        who="model" if alone else "pair of model and setting",
    )


def items_to_tell(field: Field, first: RowKey, second: RowKey) -> int | None:
    """Return about how many items would show which of two ranked rows is better, by the difference
    and c that the board has.

    None where they do not differ, or more than a million would be needed.
    """
    relation = field.relation
    pairs_found = [pair for pair in field.pairs if {pair.first, pair.second} == {first, second}]
    if relation is None or not pairs_found or pairs_found[0].se is None:
        return None
    return planned(
        pairs_found[0].difference.value,
        pairs_found[0].se,
        field.n_common,
        c=relation.c,
        # Over several domains n·SE² is no share of items that one alone has right.
        right_wrong=relation.kappa > 0 and field.n_domains == 1,
        width=relation.kappa * field.n_common or 1.0,
    )


def _unread(pair: Pair, unread: Mapping[RowKey, float], task: Task) -> PairObject:
    """Return the unread shares of both rows, and whether these differ by more than the scores."""
    shares = [unread[pair.first], unread[pair.second]]
    outweighs = unread_outweighs(shares[0], shares[1], pair.difference.value, task.scale.ends)
    return {"unread": shares, "unread_outweighs": outweighs}


def _pair(pair: Pair) -> PairObject:
    difference = pair.difference
    common: PairObject = {
        "first": list(pair.first),
        "second": list(pair.second),
        "difference": difference.value,
        "n": pair.n,
        "test": difference.test,
        "p": difference.p,
        "p_holm": pair.p_holm,
    }
    if pair.ends is not None:
        lo, hi = pair.ends
        return {**common, "lo": lo, "hi": hi, "se": pair.se, "better": pair.better}
    return {
        **common,
        "lo": difference.lo,
        "hi": difference.hi,
        "p_max_t": pair.p_max_t,
        "different": difference.different,
        "separated": pair.separated,
        "ordered": pair.ordered,
        "note": pair.note,
    }
