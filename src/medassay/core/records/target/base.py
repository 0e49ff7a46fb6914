"""What all targets have in common."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, cast

from medassay.core.keyed import keyed
from medassay.core.records.item_object import ItemObject
from medassay.errors import InputError

Form = str  # the tag of a target
Keys = Mapping[str, type]
Refuse = Callable[[str, str], InputError]  # field, problem → what is raised


class Target:
    """What counts as right for an item.

    Attributes
    ----------
    form : its tag, which tasks name
    is_open : whether an answer is a text, a list or a record, and not one of few values
    keys : keys of an item's file object that belong to it, with their types; `object` where `check`
        looks closer
    """

    form: ClassVar[Form]
    is_open: ClassVar[bool] = False
    keys: ClassVar[Keys] = {}

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether a file object has a target of this form: the first key of `keys`."""
        return next(iter(cls.keys), "") in record

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise what `refuse` makes of the first field that is wrong."""

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the target in a file object that was checked before; its lists become tuples."""
        return cls(
            **{
                key: tuple(value) if isinstance(value, list) else value
                for key, value in record.items()
                if key in cls.keys
            }
        )

    @classmethod
    def check_beside(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where keys of this target stand on an item of another and are not of their form."""

    def to_dict(self) -> ItemObject:
        """Return the keys of a file object; what is absent stays absent."""
        values = keyed(self, *self.keys).items()
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in values if v is not None}
        return cast(ItemObject, plain)

    @property
    def text(self) -> str:
        """Return what counts as right, as one line."""
        return ""

    @property
    def lowest(self) -> float | None:
        """Return the lowest score an answer can have; None for the lowest of the scale."""
        return None


def is_finite(value: Any) -> bool:
    """Return whether a value is a number that a double holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # exact for integers of any size; false for NaN
