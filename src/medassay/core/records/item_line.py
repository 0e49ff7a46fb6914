"""`ItemLine`: an item as the object of a file has it, for those who read some of its fields.

Whoever writes an item again copies the object, with all its keys.
"""

from typing import Any

import msgspec

from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError

Note = Any  # what the maker of a bank notes: anything, since it is their own


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """Who approved an item, and on which day."""

    who: Note = None
    when: Note = None


class ItemMeta(msgspec.Struct, frozen=True, kw_only=True):
    """What a maker notes of an item.

    Attributes
    ----------
    question : the question, or the way through a graph, that several forms share
    of : the item that it was made from
    maker : translation, exam, pathways …
    family, of_family : of the model that wrote it, and of the one that wrote its original
    """

    question: Note = None
    of: Note = None
    maker: Note = None
    family: Note = None
    of_family: Note = None


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A target fact or a criterion: its text, and its id where it has one."""

    text: str
    id: Note = None


class ItemLine(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an item that reviews, workshops and their releases read."""

    id: str = ""
    domain: str = ""
    kind: str = "public"
    revision: int = 1
    language: str = "en"
    question: str | None = None
    context: str | None = None
    options: list[str] = []
    expected: str | None = None
    reference: str | None = None
    path: str | None = None
    condition: str | None = None
    category: str | None = None
    cluster: str | None = None
    facts: list[str | Statement] | None = None
    criteria: list[str | Statement] | None = None
    meta: ItemMeta = ItemMeta()
    approval: Approval = Approval()

    @property
    def right_text(self) -> str:
        """Return the text of the right option, else the reference answer."""
        at = LETTERS.find(self.expected or " ")
        return self.options[at] if 0 <= at < len(self.options) else self.reference or ""


def item_line(record: ItemObject) -> ItemLine:
    """Return the fields of an item's object that are read by name.

    Raises
    ------
    InputError
        Naming the item and the field that is of another type.
    """
    try:
        return msgspec.convert(record, ItemLine)
    except msgspec.ValidationError as error:
        raise InputError(f"item '{record.get('id', '')}': {error}") from None
