"""The right order of some steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from medassay.core.records.target import Keys, Refuse, Target


@dataclass(frozen=True, kw_only=True)
class Ordering(Target):
    """Steps in their right order, each named by one letter."""

    form = "ordering"
    keys: ClassVar[Keys] = {"order": object}
    order: tuple[str, ...]

    @classmethod
    def check(cls, record: Mapping[str, Any], refuse: Refuse) -> None:
        """Raise unless the order is a list of different letters."""
        order = record["order"]
        if not isinstance(order, list) or not all(isinstance(s, str) and s for s in order):
            raise refuse("order", f"{order!r:.40}; expected a list of letters")
        if len(set(order)) < max(2, len(order)):
            raise refuse("order", "expected two letters or more, each once")

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Return the order."""
        return cls(order=tuple(record["order"]))

    @property
    def text(self) -> str:
        """Return the letters in order."""
        return " ".join(self.order)
