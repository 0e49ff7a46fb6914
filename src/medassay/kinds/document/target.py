"""The reference record of a text, by whatever schema a plan names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import Keys, Refuse, Target


@dataclass(frozen=True, kw_only=True)
class DocumentTarget(Target):
    """A JSON object; which keys it has is the plan's schema's to say."""

    form = "document"
    is_open = True
    keys: ClassVar[Keys] = {"document": object}
    document: Mapping[str, Any]

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless it is an object with something in it."""
        document = record.get("document")
        if not isinstance(document, dict) or not document:
            raise refuse("document", "expected a JSON object, the reference record")

    def to_dict(self) -> ItemObject:
        """Return the record."""
        return {"document": self.document}  # type: ignore[typeddict-unknown-key]

    @property
    def text(self) -> str:
        """Return the record as JSON."""
        return json.dumps(self.document, ensure_ascii=False)
