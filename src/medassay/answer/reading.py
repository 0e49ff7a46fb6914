"""What a parser says of one reply."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Reading:
    """The value that was read, or None, and the rule or form by which, or why not.

    `outcome` is `truncated` where the reply ended before the answer did, with or without a value. Without one `read_answer` decides:
    a reply that declines is `refused`, one that ended too early `truncated`, any other `unparsed`.
    """

    value: str | None
    reason: str
    outcome: Literal["answered", "truncated"] = "answered"
