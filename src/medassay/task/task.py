"""What a task is: which items, how their replies are read, how answers are scored."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from medassay.core.item import Form
from medassay.core.trial import Scale


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task as a value: for each form of item the names of its parser and scorer.

    A parser of None means that the answer came with the item's prediction (imports); a scorer of None
    that answers are judged, by the judge that `judges` names for the form, in `n_judges` seats. `graphs` are those
    that a judge of graphs takes unless the plan names others.
    """

    name: str
    metric: str
    split: str
    template: str
    readers: Mapping[Form, tuple[str | None, str | None]]
    judges: Mapping[Form, str] = field(default_factory=dict)
    n_judges: int = 3
    graphs: tuple[str, ...] = ()
    scale: Scale = Scale()

    def accepts(self, split: str, form: Form) -> bool:
        """Return whether an item of this split and form belongs to this task."""
        return split == self.split and form in self.readers
