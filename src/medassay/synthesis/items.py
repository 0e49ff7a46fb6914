"""Items in a workshop: records as a bank would hold them, and what people decided about each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, cast

from medassay.bank.check import check_record
from medassay.core.records.item_line import item_line
from medassay.core.records.item_object import ApprovalObject, ItemObject
from medassay.errors import InputError
from medassay.synthesis.project import Event, Place, Workshop, basis_of
from medassay.synthesis.steps import decision_on

WAITS = "waits for a person"
LISTED = "items"  # the subject under which is listed what the plan makes now
# What makes an item the one it is, and private or not: nobody changes that by the way.
_FIXED = ("id", "kind", "domain", "cluster", "meta", "approval", "revision")


def note_items(
    workshop: Workshop,
    records: Iterable[tuple[ItemObject, Sequence[Place]]],
    ended: Iterable[Event],
) -> None:
    """Note each record that is new or was changed, and what the plan makes now: its items, and what
    it ended otherwise.
    """
    lines: dict[str, str] = {}
    for record, sources in records:
        line = item_line(record)
        name = line.id
        check_record(record, f"item '{name}'", {line.domain})
        if name in lines or name == "all":
            why = "is made twice" if name in lines else "means every item in a decision"
            raise InputError(f"item id '{name}' {why}; expected ids that differ")
        basis = basis_of(record)
        event = workshop.note_once(
            "item", name, "made", basis=basis, sources=sources, result=record
        )
        lines[name] = event.hash
    listing = {"items": list(lines.values()), "ended": [event.hash for event in ended]}
    workshop.note_latest("plan", LISTED, listing)


def _listed_events(workshop: Workshop, what: str) -> list[Event]:
    listed = workshop.latest("plan", LISTED)
    lines_found = (
        workshop.line(line_hash) for line_hash in (() if listed is None else listed.result[what])
    )
    return [event for event in lines_found if event is not None]


def present_items(workshop: Workshop) -> list[Event]:
    """Return the items that the plan makes now, in its order."""
    return _listed_events(workshop, "items")


def left_out(workshop: Workshop) -> dict[str, int]:
    """Return why how many of the plan's steps ended without an item.

    What a person has put right is not among them.
    """
    reasons: Counter[str] = Counter()
    for event in _listed_events(workshop, "ended"):
        decided = decision_on(workshop, event)
        if event.status == "dropped":
            reasons[event.note] += 1
        elif decided is None:
            reasons[WAITS] += 1
        elif decided.status == "remove":
            reasons["left out by a person"] += 1
    return dict(reasons)


def queued(workshop: Workshop) -> list[Event]:
    """Return what no machine could finish, decided by a person or not."""
    return [event for event in _listed_events(workshop, "ended") if event.status == "queued"]


def manual_queue(workshop: Workshop) -> list[Event]:
    """Return what no machine could finish and nobody has decided about."""
    return [event for event in queued(workshop) if decision_on(workshop, event) is None]


def not_yet_items(workshop: Workshop) -> list[Event]:
    """Return what a person took over from the queue since items were last made: no item was made of
    it so far.
    """
    listed = workshop.latest("plan", LISTED)
    since = 0 if listed is None else listed.number
    decisions = [(event, decision_on(workshop, event)) for event in queued(workshop)]
    return [
        event
        for event, decided in decisions
        if decided is not None and decided.number > since and decided.status in ("accept", "change")
    ]


def undecided(workshop: Workshop) -> list[Event]:
    """Return the items about which nobody has decided."""
    return [event for event in present_items(workshop) if decision_on(workshop, event) is None]


def accepted(workshop: Workshop) -> list[ItemObject]:
    """Return the records that a person accepted or put in place of a draft, with who and when."""
    records: list[ItemObject] = []
    for event in present_items(workshop):
        decided = decision_on(workshop, event)
        if decided is None or decided.status not in ("accept", "change"):
            continue
        record: ItemObject = event.result if decided.status == "accept" else decided.result
        approval: ApprovalObject = {
            "who": decided.line.by.person,
            "when": decided.line.at[:10],
        }
        records.append({**record, "approval": approval})
    return records


def checked_change(event: Event, change: Any) -> ItemObject:
    """Return an item with the fields that a person would change.

    Raises
    ------
    InputError
        When it is no valid item, or another one.
    """
    before: ItemObject = event.result
    line = item_line(before)
    if not isinstance(change, dict) or not change:
        raise InputError(f"change of item '{line.id}': expected an object with fields of the item")
    for key in _FIXED:
        if key in change and change[key] != before.get(key):
            raise InputError(f"change of item '{line.id}': field '{key}' stays as it is")
    changed = before.copy()
    changed.update(cast(ItemObject, change))
    check_record(changed, f"change of item '{line.id}'", {line.domain})
    return changed
