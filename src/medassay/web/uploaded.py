"""Files of items that somebody uploads: checked line by line before anything is taken."""

from typing import cast

from msgspec.structs import replace

from medassay.bank.check import check_record
from medassay.core.json import parse_json
from medassay.core.records.item_object import ItemObject
from medassay.errors import InputError
from medassay.exchange.review_entries import entries_of_records, sampled
from medassay.review.store.studies import NewEntry

_MOST_LINES = 20_000


def read_upload(data: bytes, *, form: str, n: str, seed: str, iteration: str) -> list[NewEntry]:
    """Return the items of an uploaded `items.jsonl` as entries, or a sample of them.

    Raises
    ------
    InputError
        Naming the line that is no item.
    """
    if form != "item":
        raise InputError(
            "answers, pairs and verdicts come from a run or a bank: `medassay review import` brings"
            " them in"
        )
    lines = data.split(b"\n")
    if len(lines) > _MOST_LINES:
        raise InputError(f"more than {_MOST_LINES:,} lines; use `medassay review import`")
    records: list[ItemObject] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"line {number}"
        value = parse_json(line, where)
        if not isinstance(value, dict):
            raise InputError(f"{where}: expected an item as a JSON object")
        record = cast(ItemObject, value)
        check_record(record, where, {str(value.get("domain", ""))})
        records.append(record)
    if n and not (n.isascii() and n.isdigit() and len(n) < 7):
        raise InputError(f"sample of '{n[:20]}'; expected a whole number, or nothing for all")
    sampled_entries = sampled(entries_of_records(records), int(n or 0), seed)
    return [replace(entry, iteration=" ".join(iteration.split())[:60]) for entry in sampled_entries]
