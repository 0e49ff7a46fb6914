"""Pairs of which no difference is shown, and about how many items would show one."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from medassay.core.records.relations import Relations, RowPair
from medassay.core.records.statistics import OVERALL
from medassay.core.records.trial import RowKey
from medassay.report.board import Board
from medassay.statistic.test.planner import items_to_tell

# Each pair takes the planner some milliseconds, of right and wrong answers of one domain a third of
# a second.
ALL_PLANNED_UP_TO = 30  # rows; of more of them each row's pairs that differ most
PLANNED_EACH = 3
_MOST_PLANNED = 40


class UndecidedPair(msgspec.Struct, frozen=True):
    """A row's partner, the difference (row minus partner, on the scale), and about how many items
    would show which of them is better; None where nobody can say.
    """

    other: RowKey
    pair: RowPair
    items: int | None


def undecided_pairs(board: Board, domain: str, mode: str) -> dict[RowKey, list[UndecidedPair]]:
    """Return row → its partners of which no difference is shown, in the order of the ranking; rows
    without any are left out.

    Items are told over all domains alone, on boards of more than 30 rows for the pairs of each row
    that differ most. Boards of more than 200 ranked rows keep no pairs.
    """
    relations = board.relations(domain, mode)
    order = {row.key: place for place, row in enumerate(board.rows(domain, mode))}
    better = board.statistics.scale.better
    pairs = [pair for pair in relations.pairs if pair.reading(better) == "none"]
    items = _items(board, relations, pairs) if domain == OVERALL else {}
    partners: dict[RowKey, list[UndecidedPair]] = defaultdict(list)
    for pair in pairs:
        needed = items.get((pair.first, pair.second))
        partners[pair.first].append(UndecidedPair(pair.second, pair, needed))
        partners[pair.second].append(UndecidedPair(pair.first, pair.turned(), needed))
    for undecided in partners.values():
        undecided.sort(key=lambda entry: order.get(entry.other, 0))
    return dict(partners)


def _items(
    board: Board, relations: Relations, pairs: Sequence[RowPair]
) -> dict[tuple[RowKey, RowKey], int | None]:
    """Return pair → about how many items would tell it, the largest differences first; see
    `summary.pairs.items_to_tell`.
    """
    if relations.c is None or relations.kappa is None:  # ranked by an earlier rule
        return {}
    # Over several domains n·SE² is no share of items that one alone has right.
    right_wrong = relations.kappa > 0 and len(board.domains) == 1
    width = relations.kappa * relations.n_common or 1.0
    planned = sorted(pairs, key=lambda pair: -abs(pair.difference))
    if (relations.n_ranked or 0) > ALL_PLANNED_UP_TO:
        counts: Counter[RowKey] = Counter()
        chosen = []
        for pair in planned:
            if counts[pair.first] < PLANNED_EACH or counts[pair.second] < PLANNED_EACH:
                chosen.append(pair)
                counts.update([pair.first, pair.second])
        planned = chosen
    return {
        (pair.first, pair.second): None
        if pair.se is None
        else items_to_tell(
            pair.difference,
            pair.se,
            relations.n_common,
            c=relations.c,
            right_wrong=right_wrong,
            width=width,
        )
        for pair in (planned[:_MOST_PLANNED] if right_wrong else planned)
    }
