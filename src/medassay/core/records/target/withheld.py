"""What stands for a target that is not here."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self, cast

from medassay.core.keyed import keyed
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target.base import Keys, Refuse, Target, is_finite


@dataclass(frozen=True, kw_only=True)
class Withheld(Target):
    """A state of any target: it is committed to or deleted, and not here.

    `commitment` and `tombstone` are hashes; `floor` is the lowest score of the target that is not
    here, where that is below the scale; `severity` is that of its golden diagnosis, which stays
    public. In a run over items of several kinds the record's `form` says of which it was.
    """

    form = "withheld"
    keys: ClassVar[Keys] = {
        "commitment": str,
        "tombstone": str,
        "lowest": object,
        "severity": str,
        "form": str,
    }
    commitment: str | None = None
    tombstone: str | None = None
    floor: float | None = None
    severity: str | None = None

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether there is a commitment or a tombstone."""
        return "commitment" in record or "tombstone" in record

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where the hash is none, or the lowest score above 0."""
        key = "tombstone" if "tombstone" in record else "commitment"
        if not re.fullmatch("[0-9a-f]{64}", str(record.get(key))):
            raise refuse(key, "expected 64 hexadecimal digits")
        lowest = record.get("lowest", 0)
        if not is_finite(lowest) or lowest > 0:
            raise refuse("lowest", f"{lowest!r:.40}; expected a number, 0 or below")

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the hashes, the lowest score and the severity."""
        return cls(
            commitment=record.get("commitment"),
            tombstone=record.get("tombstone"),
            floor=float(record["lowest"]) if "lowest" in record else None,
            severity=record.get("severity"),
        )

    def to_dict(self) -> ItemObject:
        """Return the hashes, the lowest score and the severity."""
        values = {**keyed(self, "commitment", "tombstone", "severity"), "lowest": self.floor}
        return cast(ItemObject, {key: v for key, v in values.items() if v is not None})

    @property
    def lowest(self) -> float | None:
        """Return the lowest score of the target that is not here, as its publisher says."""
        return self.floor
