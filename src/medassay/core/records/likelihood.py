"""How likely a model finds given texts: what is asked for, and what comes back.

Logarithms are natural. In files a log-probability of −∞, which JSON does not know, is null.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from medassay.core.records.relaxed import RelaxedSetting

Asks = Literal["reply", "choices", "alone", "conditional", "relaxed"]


class LogLikelihood(msgspec.Struct, frozen=True, kw_only=True):
    """How likely a continuation is: natural logarithms, summed and token by token.

    `greedy` says whether the model would have said just that, taking its likeliest token each time;
    None where a server does not tell. `n_bytes` and `n_characters` are the length of the text that
    was asked for, 0 where nobody noted it.
    """

    total: float
    n_tokens: int
    greedy: bool | None
    tokens: tuple[float, ...] = ()
    n_bytes: int = 0
    n_characters: int = 0

    def of(self, text: str) -> dict[str, float | None]:
        """Return the sum and the length of the text asked for, as plain JSON values.

        Single tokens are left out.
        """
        return {
            "total": finite_or_none(self.total),
            "n_tokens": self.n_tokens,
            "greedy": self.greedy,
            "n_bytes": len(text.encode("utf-8", "surrogatepass")),
            "n_characters": len(text),
        }


class StoredLikelihood(msgspec.Struct, frozen=True, kw_only=True):
    """A likelihood as files have it: what `LogLikelihood.of` made plain, a total of −∞ as None."""

    total: float | None
    n_tokens: int
    greedy: bool | None
    n_bytes: int
    n_characters: int

    @property
    def per_byte(self) -> float | None:
        """Return the log-probability by byte; None of an impossible or an empty text."""
        return self.total / self.n_bytes if self.total is not None and self.n_bytes else None

    @property
    def likelihood(self) -> LogLikelihood:
        """Return the likelihood itself."""
        return LogLikelihood(
            total=number_or_impossible(self.total),
            n_tokens=self.n_tokens,
            greedy=self.greedy,
            n_bytes=self.n_bytes,
            n_characters=self.n_characters,
        )


def likelihoods_of(
    records: Sequence[StoredLikelihood], order: Sequence[int] | None
) -> tuple[LogLikelihood, ...]:
    """Return the likelihoods of an item's options in the bank's order, from those in the order
    shown.
    """
    likelihoods = [record.likelihood for record in records]
    if order is not None:
        likelihoods = [likelihoods[order.index(at)] for at in range(len(likelihoods))]
    return tuple(likelihoods)


class LikelihoodRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a model instead of a reply: how likely some texts are after the prompt.

    Without messages the texts stand alone. `chat_template` puts the messages into the model's own
    form of a conversation; otherwise they are plain text. With `relaxed` completions are drawn, and
    the texts are sought in them.
    """

    continuations: tuple[str, ...]
    chat_template: bool = False
    relaxed: RelaxedSetting | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is wanted as plain JSON values: part of the key of a stored reply."""
        return {
            "continuations": list(self.continuations),
            "chat_template": self.chat_template,
            "relaxed": None if self.relaxed is None else self.relaxed.to_dict(),
        }


def likeliest(values: Sequence[float]) -> int:
    """Return the place of the highest value, the first of equals.

    Examples
    --------
    >>> likeliest([-2.0, -1.0, -1.0])
    1
    """
    return max(range(len(values)), key=lambda at: (values[at], -at))


def finite_or_none(value: float) -> float | None:
    """Return a log-probability as JSON holds it.

    Examples
    --------
    >>> finite_or_none(-1.5), finite_or_none(-math.inf)
    (-1.5, None)
    """
    return value if math.isfinite(value) else None


def number_or_impossible(value: float | None) -> float:
    """Return a log-probability that JSON held: null is −∞.

    Examples
    --------
    >>> number_or_impossible(-1.5), number_or_impossible(None)
    (-1.5, -inf)
    """
    return -math.inf if value is None else float(value)
