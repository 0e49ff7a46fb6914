"""What a parser is, and what it says of one reply."""

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from medassay.core.records.item import Item
from medassay.core.records.manifest import JudgingRules
from medassay.core.records.prompt import Prompt
from medassay.core.revision import revision_id

Extraction = Literal["standard", "paper"]
ReadOne = Callable[[Item, Prompt, str, Extraction], tuple[str | None, str]]


class Reading(msgspec.Struct, frozen=True):
    """The value that was read, or None, and the rule or form by which, or why not.

    `outcome` is `truncated` where the reply ended before the answer did, with or without a value.
    Without one `read_answer` decides: a reply that declines is `refused`, one that ended too early
    `truncated`, any other `unparsed`.
    """

    value: str | None
    reason: str
    outcome: Literal["answered", "truncated"] = "answered"


class ReadReply(Protocol):
    """Reads one reply; `cut` says that it ended by its token limit."""

    def __call__(
        self, item: Item, prompt: Prompt, text: str, mode: Extraction, *, cut: bool = False
    ) -> Reading:
        """Return what was read."""


class Parser(msgspec.Struct, frozen=True):
    """Takes the value out of a reply.

    `revision` is raised by one with every change of what is read. `longest` makes the longest value
    of the rules of a run, for previews, where it is shorter than a reply may be.
    """

    name: str
    read: ReadReply
    revision: int
    longest: Callable[[JudgingRules], str] | None = None

    @property
    def id(self) -> str:
        """Return `name/revision`."""
        return revision_id(self.name, self.revision)


def whichever_end(read: ReadOne) -> ReadReply:
    """Return the reader that reads a reply in the same way whether it was cut off or not."""

    def read_reply(
        item: Item, prompt: Prompt, text: str, mode: Extraction, *, cut: bool = False
    ) -> Reading:
        return Reading(*read(item, prompt, text, mode))

    return read_reply
