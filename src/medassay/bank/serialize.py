"""The way back: from `Item` to the JSON object of a bank file."""

from typing import Any

from medassay.bank.check import TEXT_FIELDS
from medassay.core.records.item import Item

_DEFAULTS = Item(id="", domain="", question="", form="open")
_SAME = (*TEXT_FIELDS, "options", "nice_to_have", "year")


def item_record(item: Item) -> dict[str, Any]:
    """Return the object a bank file holds for `item`; what is absent stays absent."""
    record: dict[str, Any] = {
        "id": item.id,
        "revision": item.revision,
        "kind": item.kind,
        "domain": item.domain,
        "answer_type": item.answer_type,
    }
    if item.question:
        record["question"] = item.question
    for name in _SAME:
        value = getattr(item, name)
        if value != getattr(_DEFAULTS, name):
            record[name] = list(value) if isinstance(value, tuple) else value
    if item.harm:
        record["harm"] = True
    if item.range is not None:
        record["range"] = {"lo": item.range.lo, "hi": item.range.hi}
    if item.facts:
        record["facts"] = [
            {"id": fact.id, "text": fact.text, "weight": fact.weight} for fact in item.facts
        ]
    if item.diagnoses:
        record["diagnoses"] = list(item.diagnoses)
    if item.severity is not None:
        record["severity"] = item.severity
    if item.form in ("record", "report"):
        record["record"] = item.record
    named = {name: list(others) for name, others in item.drug_names.items()}
    record |= {"drug_names": named} if named else {}
    if item.origin is not None:
        record["origin"] = item.origin.to_dict()
    if item.criteria:
        record["criteria"] = [
            {"id": c.id, "text": c.text, "points": c.points}
            | ({"tags": list(c.tags)} if c.tags else {})
            | ({"harm": True} if c.harm else {})
            for c in item.criteria
        ]
    return record
