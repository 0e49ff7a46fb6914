"""Records as plain values under keys that are written out: what is hashed must not follow from a
class.

A field that is added to a record reaches no file and no hash until its key is named where the
record is written.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class KeyedRecord:
    """A record whose fields named in `KEYS` are, in that order, the keys of its JSON object."""

    __slots__ = ()
    KEYS: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        return keyed(self, *self.KEYS)


def keyed(record: object, *names: str) -> dict[str, Any]:
    """Return the named fields of a record.

    Records in it, alone or in a list, by their own `to_dict`.
    """
    return {name: _plain(getattr(record, name)) for name in names}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return value
