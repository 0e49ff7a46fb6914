"""Text that looks like a key or token of a service, and must not become public."""

import re

from medassay.errors import GateError

# Each alternative begins with its letters, so that the search skips to them; the boundary before
# them is looked at then.
_SECRET = re.compile(
    rb"(?:sk-(?<=\bsk-)[A-Za-z0-9_-]{20,}|gh(?<=\bgh)[pousr]_[A-Za-z0-9]{30,}"
    rb"|hf_(?<=\bhf_)[A-Za-z0-9]{30,}|AKIA(?<=\bAKIA)[0-9A-Z]{16}"
    rb"|AIza(?<=\bAIza)[0-9A-Za-z_-]{35}|xox(?<=\bxox)[abp]-[0-9A-Za-z-]{10,})\b"
)


def has_secret(text: bytes) -> bool:
    """Return whether a text holds what looks like a secret."""
    return _SECRET.search(text) is not None


def refuse_secret(text: str | bytes, name: str) -> None:
    """Refuse to publish a text that holds what looks like a secret.

    Raises
    ------
    GateError
        Naming the file, line or option that it comes from.
    """
    if has_secret(text.encode("utf-8", "replace") if isinstance(text, str) else text):
        raise GateError(f"{name}: looks like a secret: not published")
