"""What the call of a tool gave."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "failed", "unavailable"]


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a call gave: a text for the model, whether it went well, and the key under which it is
    stored.
    """

    text: str
    status: Status
    key: str = ""
