"""What a task is: which items, how their replies are read, how answers are scored."""

from collections.abc import Mapping
from dataclasses import dataclass

from medassay.core.item import Form, Item
from medassay.core.trial import Scale


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task as a value: for each form of item the names of its parser and scorer.

    A parser of None means that the answer came with the item's prediction (imports).
    """

    name: str
    metric: str
    split: str
    readers: Mapping[Form, tuple[str | None, str]]
    scale: Scale = Scale()

    def accepts(self, item: Item) -> bool:
        """Return whether an item belongs to this task."""
        return item.split == self.split and item.form in self.readers
