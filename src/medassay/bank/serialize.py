"""The way back: from `Item` to the JSON object of a bank file."""

from typing import cast

from medassay.bank.check import TEXT_FIELDS
from medassay.core.records.item import Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import Given

_DEFAULTS = Item(id="", domain="", question="", target=Given())
_SAME = (*TEXT_FIELDS, "nice_to_have", "year")


def item_record(item: Item) -> ItemObject:
    """Return the object a bank file holds for `item`; what is absent stays absent."""
    record: ItemObject = {
        "id": item.id,
        "revision": item.revision,
        "kind": item.kind,
        "domain": item.domain,
        "answer_type": item.answer_type,
    }
    if item.question:
        record["question"] = item.question
    further = {
        name: list(value) if isinstance(value, tuple) else value
        for name in _SAME
        if (value := getattr(item, name)) != getattr(_DEFAULTS, name)
    }
    record.update(cast(ItemObject, further))
    if item.harm:
        record["harm"] = True
    record.update(item.target.to_dict())
    record.update(item.more)
    return record
