"""One item of a bank file: from parsed JSON object to `Item`, or a refusal that names the place."""

import re
from collections.abc import Collection
from typing import Any, cast

from medassay.core.records.item import Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import (
    CLOSED_TARGETS,
    OPEN_TARGETS,
    TARGETS,
    Facts,
    Form,
    Pattern,
    Reference,
    Refuse,
    Target,
    Withheld,
    further_targets,
)
from medassay.core.wording import is_blank
from medassay.errors import InputError

TEXT_FIELDS = (
    *("context", "reference", "rationale", "source", "licence", "category", "condition", "path"),
    *("leaf", "difficulty", "cluster", "language", "split"),
)
# Keys of every item with their types; `object` where a later check looks closer.
_TYPES: dict[str, type] = {
    **dict.fromkeys((*TEXT_FIELDS, "id", "domain", "question", "review_date"), str),
    **dict.fromkeys(("revision", "year"), int),
    **dict.fromkeys(("meta", "approval"), dict),
    "harm": bool,
    **dict.fromkeys(("kind", "answer_type", "nice_to_have"), object),
}
_TARGET_TYPES = {key: type_ for target in TARGETS for key, type_ in target.keys.items()}
_TYPES |= _TARGET_TYPES
ITEM_KEYS = frozenset(_TYPES)
# Fields of an `Item` that are copied as they stand in the file.
_COPIED = frozenset((*TEXT_FIELDS, "id", "domain", "question", "revision", "kind", "year", "harm"))
_KINDS = ("public", "synthetic")
_SPLITS = ("test", "dev")


def check_record(
    record: ItemObject, where: str, domains: Collection[str], *, of_run: bool = False
) -> Form:
    """Return the form of the item in `record`, after every check.

    Parameters
    ----------
    record : parsed JSON value of one line
    where : what to name in errors, e.g. "items.jsonl row 118"
    domains : the card's domains
    of_run : whether the item is of a run: then `expected` alone is a target (finished predictions
        carry no options), and keys that are not known are those of newer code

    Raises
    ------
    InputError
        With `where`, the field, what it holds and what was expected.
    """
    if not isinstance(record, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(record).__name__}")

    def refuse(field: str, problem: str) -> InputError:
        return InputError(f"{where}: field '{field}': {problem}")

    _check_keys(record, refuse, of_run=of_run)
    if record["domain"] not in domains:
        listed = ", ".join(sorted(domains))
        raise refuse(
            "domain", f"'{record['domain']:.60}' is not among the card's domains ({listed})"
        )
    kind = record.get("kind", "public")
    if kind not in _KINDS:
        raise refuse("kind", f"'{kind!s:.60}'; expected one of {', '.join(_KINDS)}")
    if record.get("split", "test") not in _SPLITS:
        raise refuse("split", f"'{record['split']:.60}'; expected one of {', '.join(_SPLITS)}")
    target = _target_of(record)
    if target is Withheld:
        _check_may_be_withheld(record, refuse, of_run=of_run)
    else:
        _check_one_target(record, target, refuse, of_run=of_run)
    target.check(record, refuse)
    _check_beside(record, target, refuse, of_run=of_run)
    if kind == "public" and not of_run and not record.get("source"):
        raise refuse("source", "absent; a public item needs the reference it was made from")
    return target.form


def build_item(record: ItemObject) -> Item:
    """Return the item in a record that was checked before."""
    target = _target_of(record)
    copied: dict[str, Any] = {key: v for key, v in record.items() if key in _COPIED}
    copied.setdefault("question", "")
    if "nice_to_have" in record:
        copied["nice_to_have"] = tuple(record["nice_to_have"])
    # What belongs to targets of other forms stays with the item.
    own = target.keys
    strange = sorted(key for key in record if key in _TARGET_TYPES and key not in own)
    more = cast(ItemObject, {key: record.get(key) for key in strange})
    return Item(target=target.read(record), more=more, **copied)


def form_of(record: ItemObject) -> Form:
    """Return the form of a record that was checked before."""
    return _target_of(record).form


def _target_of(record: ItemObject) -> type[Target]:
    if Withheld.claims(record):
        return Withheld
    if not record.keys() <= ITEM_KEYS:
        for target in further_targets():
            if target.claims(record):
                return target
    targets = OPEN_TARGETS if record.get("answer_type") == "open" else CLOSED_TARGETS
    return next((target for target in targets if target.claims(record)), targets[-1])


def _check_keys(record: ItemObject, refuse: Refuse, *, of_run: bool) -> None:
    for key, value in record.items():
        type_ = _TYPES.get(key) or _further_type(key)
        if type_ is None:
            if of_run:  # in a run that newer code has made
                continue
            keys = ITEM_KEYS.union(*(target.keys for target in further_targets()))
            raise refuse(key, f"unknown; known are {', '.join(sorted(keys))} (own data: meta)")
        if type_ is not object and type(value) is not type_:  # exact: true is no number
            expected = "text" if type_ is str else type_.__name__
            raise refuse(key, f"{value!r:.60}; expected {expected}")
    for key in ("id", "domain"):
        text = str(record.get(key, ""))
        if not text.strip():
            raise refuse(key, "absent or empty; expected text")
        if not (of_run or text.isprintable()) and re.search(r"[\x00-\x1f\x7f-\x9f]", text):
            raise refuse(key, f"{text!r:.60}; expected one line without control characters")


def _further_type(key: str) -> type | None:
    """Return the type of a key that a kind brings; None where nobody knows it."""
    return next((target.keys[key] for target in further_targets() if key in target.keys), None)


def _check_one_target(
    record: ItemObject, target: type[Target], refuse: Refuse, *, of_run: bool
) -> None:
    """Raise unless the item asks something and has one target of its answer type."""
    answer_type = record.get("answer_type", "closed")
    if answer_type not in ("closed", "open"):
        raise refuse("answer_type", f"'{answer_type}'; expected closed or open")
    if not of_run and is_blank(record.get("question", "")):
        raise refuse("question", "absent or empty; expected text")
    if target not in TARGETS:
        if target.is_open != (answer_type == "open"):
            key, expected = next(iter(target.keys)), "open" if target.is_open else "closed"
            raise refuse(key, f'in a {answer_type} item; expected "answer_type": "{expected}"')
        others = [key for key in _TARGET_TYPES if key in record and key not in target.keys]
        if others:
            own = ", ".join(target.keys)
            raise refuse(others[0], f"beside {own}; an item has one target")
        return
    open_keys = {"criteria", "diagnoses", "record"} & record.keys()
    if answer_type == "open":
        keys = sorted(open_keys | ({"facts"} & record.keys()))
        if len(keys) > 1:
            raise refuse(keys[0], f"beside {keys[1]}; an open item has one of the two")
        return
    for key in sorted(open_keys):
        raise refuse(key, 'in a closed item; expected "answer_type": "open"')
    keys = [key for key in ("options", "regex", "range") if key in record]
    if len(keys) != 1 and not (of_run and not keys):
        found = " and ".join(keys) or "none"
        raise refuse("options", f"a closed item has one of options, regex, range; found {found}")


def _check_may_be_withheld(record: ItemObject, refuse: Refuse, *, of_run: bool) -> None:
    key = "tombstone" if "tombstone" in record else "commitment"
    if not of_run or (key == "commitment" and record.get("kind") != "synthetic"):
        raise refuse(key, "only items of a run or a publication have one")


def _check_beside(
    record: ItemObject, target: type[Target], refuse: Refuse, *, of_run: bool
) -> None:
    """Check what stands beside a target: statements, and keys of other targets."""
    if "nice_to_have" in record:
        _check_statements(record["nice_to_have"], target, refuse)
    if target is Withheld:
        return
    if not of_run:
        _check_unread(record, target, refuse)
        if target is Pattern and re.search(record["regex"], ""):
            raise refuse(
                "regex", f"'{record['regex']:.40}' fits every reply, since it fits an empty one"
            )
    if "facts" in record and target is not Facts:
        Facts.check(record, refuse)
    for key, others in (("drug_names", "health records"), ("severity", "ranked diagnoses")):
        if key in record and key not in target.keys:
            raise refuse(key, f"on an item of {target.form}; expected on {others} alone")
    if "origin" in record and "origin" not in target.keys:
        raise refuse("origin", "of no record; expected both or none")


def _check_unread(record: ItemObject, target: type[Target], refuse: Refuse) -> None:
    """Check keys of closed targets on an item of another: exports and pages show them."""
    for other in CLOSED_TARGETS:
        if other is not target:
            other.check_beside(record, refuse)
    for number, option in enumerate(record.get("options", []), 1):
        if is_blank(option):
            raise refuse("options", f"option {number} has nothing that can be seen")
    for key in ("lowest", "form"):
        if key in record and key not in target.keys:
            raise refuse(key, "in a bank; only withheld items have one")


def _check_statements(statements: Any, target: type[Target], refuse: Refuse) -> None:
    if target not in (Facts, Reference, Withheld):
        raise refuse(
            "nice_to_have", "of an item without target facts or a reference; expected it beside"
        )
    is_list = isinstance(statements, list) and statements
    if not is_list or not all(
        isinstance(statement, str) and statement.strip() for statement in statements
    ):
        raise refuse("nice_to_have", f"{statements!r:.40}; expected a list of non-empty texts")
