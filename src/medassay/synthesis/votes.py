"""Votes of evaluators on drafts: a set is accepted as a whole, or not, and its items with it.

Source: specification of bank synthesis, 10.4: at least three evaluators an item, right or not; a
set passes when the share of items that all of them found right reaches a threshold, 70 % unless
stated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.builder import numbered_csv
from medassay.errors import InputError
from medassay.statistic.agreement.votes import VoteTable, vote_table
from medassay.synthesis.decide import decide
from medassay.synthesis.items import present_items
from medassay.synthesis.project import Workshop, basis_of, by_person
from medassay.synthesis.steps import decision_on

LEAST_ALL = 0.7
FEWEST_EVALUATORS = 3
_YES, _NO = ("1", "yes", "true", "y"), ("0", "no", "false", "n")
Ballot = Mapping[str, Mapping[str, bool]]  # item → evaluator → vote


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """What votes say of a set: the table, whether it passes, and which items were not found right
    by most.
    """

    table: VoteTable
    least_all: float
    refused: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Return whether the set passes."""
        return self.table.all_of_them.value >= self.least_all

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain JSON values; shares from 0 to 1."""
        rows = {f"at_least_{k}": estimate for k, estimate in enumerate(self.table.at_least, 1)}
        rows["unanimous"] = self.table.unanimous
        return {
            "items": self.table.n_items,
            "evaluators": self.table.n_evaluators,
            **{name: {"share": e.value, "lo": e.lo, "hi": e.hi} for name, e in rows.items()},
            "pairwise": self.table.pairwise,
            "min_all": self.least_all,
            "accepted": self.accepted,
            "refused": list(self.refused),
        }


def read_ballot(path: Path) -> dict[str, dict[str, bool]]:
    """Return the votes in a CSV with the columns item, evaluator, vote (1 or 0, yes or no).

    Raises
    ------
    InputError
        Naming the row that is wrong; an item with fewer than three votes, or another number than
        the others.
    """
    votes: dict[str, dict[str, bool]] = {}
    for row, cells in numbered_csv(path):
        if not {"item", "evaluator", "vote"} <= cells.keys():
            raise InputError(f"{path}: columns {', '.join(cells)}; expected item, evaluator, vote")
        item, evaluator, vote = (cells[k].strip() for k in ("item", "evaluator", "vote"))
        if vote.lower() not in (*_YES, *_NO):
            raise InputError(f"{path} row {row}: vote '{vote}'; expected 1 or 0, yes or no")
        if not item or not evaluator:
            raise InputError(f"{path} row {row}: item or evaluator is empty")
        votes_of_item = votes.setdefault(item, {})
        if evaluator in votes_of_item:
            raise InputError(f"{path} row {row}: a second vote of '{evaluator}' on '{item}'")
        votes_of_item[evaluator] = vote.lower() in _YES
    if not votes:
        raise InputError(f"{path}: no votes")
    counts = {item: len(votes_of_item) for item, votes_of_item in votes.items()}
    most = max(counts.values())
    for item, n in counts.items():
        if n < FEWEST_EVALUATORS or n != most:
            needed = max(most, FEWEST_EVALUATORS)
            raise InputError(f"{path}: item '{item}' has {n} votes; expected {needed} for each")
    return votes


def acceptance(votes: Ballot, *, least_all: float = LEAST_ALL) -> Acceptance:
    """Return whether a set passes.

    `least_all` is the share of items that all evaluators must have found right.
    """
    if not 0 <= least_all <= 1:
        raise InputError(f"--min-all {least_all:g}; expected a share from 0 to 1")
    table = vote_table([[*votes_of_item.values()] for votes_of_item in votes.values()])
    refused = [
        item
        for item, votes_of_item in votes.items()
        if 2 * sum(votes_of_item.values()) <= len(votes_of_item)
    ]
    return Acceptance(table=table, least_all=least_all, refused=tuple(refused))


def decide_by_votes(
    workshop: Workshop, votes: Ballot, result: Acceptance, path: Path
) -> tuple[int, int]:
    """Note a sheet of votes, and what it decides: of an accepted set the items that more than half
    found right pass.

    Noting goes on where it was interrupted: what this sheet has decided is not decided again.

    Returns
    -------
    (items accepted, items removed); none where the set does not pass.
    """
    plain = {item: dict(votes_of_item) for item, votes_of_item in votes.items()}
    basis = basis_of(plain, result.least_all)
    events = {event.place[1]: event for event in present_items(workshop)}
    again = workshop.done("votes", path.name, basis) is not None
    for item in votes:
        event = events.get(item)
        decided = None if event is None else decision_on(workshop, event)
        if event is None or (decided is not None and not (again and basis in decided.note)):
            raise InputError(
                f"{path}: item '{item}' does not wait for a decision in {workshop.folder}; nothing"
                " was noted"
            )
    evaluators = sorted({name for votes_of_item in votes.values() for name in votes_of_item})
    who = f"{len(evaluators)} evaluators"
    if not again:
        workshop.note(
            "votes",
            path.name,
            "made",
            basis=basis,
            by=by_person(who),
            sources=[("item", item) for item in votes],
            result={**result.to_dict(), "votes": plain},
        )
    if not result.accepted:
        return 0, 0
    share = 100 * result.table.all_of_them.value
    why = f"votes of {path.name} ({basis}): all right for {share:.1f} % of {len(votes)} items"
    open_items = [item for item in votes if decision_on(workshop, events[item]) is None]
    passed = [item for item in open_items if item not in result.refused]
    refused = [item for item in open_items if item in result.refused]
    if passed:
        decide(workshop, "accept", passed, who=who, reason=why)
    if refused:
        decide(workshop, "remove", refused, who=who, reason=why)
    return len(passed), len(refused)
