"""What the call of a tool gave."""

from typing import Literal

import msgspec

Status = Literal["ok", "failed", "unavailable"]


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave: a text for the model, whether it went well, and the key under which it is
    stored.
    """

    text: str
    status: Status
    key: str = ""
