"""What a status of HTTP that is no success means, for every endpoint alike."""

import re

from medassay.core.records.model import ModelSpec
from medassay.core.secret import secrets
from medassay.errors import Moderated, Permanent, Transient

_TRANSIENT = frozenset([408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529])
_OVERLOAD = frozenset([429, 503, 529])
_MODERATED = frozenset([400, 403, 422, 451])
_LONGEST = 300  # characters of a message
_LONGEST_WAIT = 300.0  # seconds that a Retry-After may ask for
# As OpenAI, Azure, OpenRouter, Anthropic, Mistral and the usual gateways write it.
_MODERATION = re.compile(
    r"content[ _-]?(filter|polic|management)|moderation|\bflagged\b|responsible ?ai|guardrail",
    re.IGNORECASE,
)


def failure(
    spec: ModelSpec,
    status: int,
    reason: str,
    retry_after: float | None = None,
    explained: str = "",
) -> Transient | Permanent:
    """Return the error of one request that came back with this status.

    It is of this request alone: that every other one would fail, too, is seen by asking them.

    Parameters
    ----------
    reason : the body, which may hold anything
    retry_after : the seconds that the endpoint asks to wait
    explained : what it may mean, and what to do
    """
    message = secrets.quote(f"{spec.id}: HTTP {status}: {reason}", _LONGEST) + explained
    if status in _TRANSIENT:
        wait = None if retry_after is None else min(max(retry_after, 0.0), _LONGEST_WAIT)
        return Transient(message, retry_after=wait, overload=status in _OVERLOAD)
    if status in _MODERATED and _MODERATION.search(reason):
        return Moderated(message, refused=True)
    return Permanent(message, refused=True)
