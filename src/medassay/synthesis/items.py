"""Items in a workshop: records as a bank would hold them, and what people decided about each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from medassay.bank.check import check_record
from medassay.errors import InputError
from medassay.synthesis.jobs import decision_on
from medassay.synthesis.workshop import BY_PROGRAM, Event, Place, Workshop, basis_of

LISTED = "items"  # the subject under which the plan's present items are listed


def note_items(
    workshop: Workshop, records: Iterable[tuple[dict[str, Any], Sequence[Place]]]
) -> None:
    """Note each record that is new or was changed, and which ones the plan makes now."""
    names: list[str] = []
    for record, sources in records:
        check_record(record, f"item '{record['id']}'", {record["domain"]})
        basis = basis_of(record)
        if workshop.done("item", record["id"], basis) is None:
            workshop.note(
                "item",
                record["id"],
                "made",
                basis=basis,
                by=BY_PROGRAM,
                sources=sources,
                result=record,
            )
        names.append(record["id"])
    basis = basis_of(names)
    if workshop.done("plan", LISTED, basis) is None:
        workshop.note("plan", LISTED, "made", basis=basis, by=BY_PROGRAM, result=names)


def present_items(workshop: Workshop) -> list[Event]:
    """Return the items that the plan makes now, in its order."""
    listed = workshop.latest("plan", LISTED)
    names = [] if listed is None else listed.result
    found = (workshop.latest("item", name) for name in names)
    return [event for event in found if event is not None]


def undecided(workshop: Workshop) -> list[Event]:
    """Return the items about which nobody has decided."""
    return [one for one in present_items(workshop) if decision_on(workshop, one) is None]


def accepted(workshop: Workshop) -> list[dict[str, Any]]:
    """Return the records that a person accepted or put in place of a draft, with who and when."""
    records = []
    for event in present_items(workshop):
        decided = decision_on(workshop, event)
        if decided is None or decided.status not in ("accept", "change"):
            continue
        record = event.result if decided.status == "accept" else decided.result
        approval = {"who": decided.record["by"]["person"], "when": decided.record["at"][:10]}
        records.append({**record, "approval": approval})
    return records


def checked_change(event: Event, record: Any) -> dict[str, Any]:
    """Return a record that a person would put in place of an item.

    Raises
    ------
    InputError
        When it is no valid item, or another one.
    """
    before: Mapping[str, Any] = event.result
    if not isinstance(record, dict) or record.get("id", before["id"]) != before["id"]:
        raise InputError(
            f"the change of item '{before['id']}' is not of this item; the id stays"
        )
    whole = {**record, "id": before["id"]}
    check_record(whole, f"change of item '{before['id']}'", {before["domain"]})
    return whole
