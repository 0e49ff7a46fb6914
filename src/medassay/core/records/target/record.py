"""Targets of reports: a health record, or none yet."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from medassay.core.records.health_record import Origin, origin_from, record_from
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target.base import Keys, Refuse, Target


@dataclass(frozen=True, kw_only=True)
class Record(Target):
    """A structured health record that a model shall write from a report.

    Attributes
    ----------
    record : the reference record, with the keys of `medassay schema record`
    origin : who made it, and whether it is gold or silver
    drug_names : other names of its drugs that count alike

    Examples
    --------
    >>> from medassay import Record
    >>> Record(record={"tumours": []}).is_open
    True
    """

    form = "record"
    is_open = True
    keys: ClassVar[Keys] = {"record": object, "origin": object, "drug_names": object}
    record: Mapping[str, Any]
    origin: Origin | None = None
    drug_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether there is a reference record."""
        return record.get("record") is not None

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where drug names, record or origin are not as they should be."""
        _check_drug_names(record, refuse)
        try:
            record_from(record["record"])
        except ValueError as error:
            raise refuse("record", str(error)) from None
        try:
            origin_from(record.get("origin"))
        except ValueError as error:
            problem = f"{error}; expected who made the record: standing (gold or silver) and maker"
            raise refuse("origin", problem) from None

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the record with its origin."""
        return cls(
            record=record["record"] or {},
            origin=origin_from(record["origin"]),
            drug_names=record.get("drug_names", {}),
        )

    def to_dict(self) -> ItemObject:
        """Return the record with its origin; drug names where there are any."""
        plain: ItemObject = {"record": self.record}
        if self.drug_names:
            plain |= {"drug_names": _lists(self.drug_names)}
        if self.origin is not None:
            plain |= {"origin": self.origin.to_dict()}
        return plain

    @property
    def text(self) -> str:
        """Return the record as JSON."""
        return json.dumps(self.record, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class Report(Target):
    """No reference record yet: what a reply says of the report is read, and nothing is scored."""

    form = "report"
    is_open = True
    keys: ClassVar[Keys] = {"record": object, "drug_names": object}
    drug_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether the record is null."""
        return "record" in record and record["record"] is None

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless `drug_names`, if there are any, is a table of lists."""
        _check_drug_names(record, refuse)

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the names of drugs, if any."""
        return cls(drug_names=record.get("drug_names", {}))

    def to_dict(self) -> ItemObject:
        """Return that there is no record; drug names where there are any."""
        plain: ItemObject = {"record": None}
        if self.drug_names:
            plain |= {"drug_names": _lists(self.drug_names)}
        return plain


def _lists(drug_names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(others) for name, others in drug_names.items()}


def _check_drug_names(record: ItemObject, refuse: Refuse) -> None:
    """Raise unless `drug_names`, if there are any, is a table of lists."""
    names = record.get("drug_names", {})
    is_table = isinstance(names, dict) and all(
        isinstance(others, list) and all(isinstance(o, str) and o.strip() for o in others)
        for others in names.values()
    )
    if not is_table:
        raise refuse("drug_names", 'expected a table of lists, such as {"ASS": ["Aspirin"]}')
