"""The way back: from `Item` to the JSON object of a bank file."""

from typing import Any

from medassay.bank.check import TEXT_FIELDS
from medassay.core.records.item import Item
from medassay.core.records.target import Given

_DEFAULTS = Item(id="", domain="", question="", target=Given())
_SAME = (*TEXT_FIELDS, "nice_to_have", "year")


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
    return {**record, **item.target.to_dict(), **item.more}
