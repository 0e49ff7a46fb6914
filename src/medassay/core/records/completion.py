"""What a model returned."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

# "refusal" is the model's or its provider's, of this answer; "moderation" the endpoint's, of the
# request itself.
Finish = Literal["stop", "length", "refusal", "moderation", "tool_calls", "other"]
TokenLogprob = tuple[str, float]  # a token and its log-probability

# What a store notes beside a reply, by name: model, item, setting, repeat …
ReplyColumns = Mapping[str, str | int | None]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens read and written, as the provider counts them; 0 where it does not say.

    `cached` is the part of those read that the endpoint had in its cache, `reasoning` the part of
    those written that is thoughts.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return both together."""
        return Usage(
            prompt=self.prompt + other.prompt,
            completion=self.completion + other.completion,
            cached=self.cached + other.cached,
            reasoning=self.reasoning + other.reasoning,
        )

    @property
    def parts(self) -> dict[str, int]:
        """Return the parts that were told, by name."""
        parts = {"cached": self.cached, "reasoning": self.reasoning}
        return {name: n for name, n in parts.items() if n}

    def to_dict(self) -> dict[str, int]:
        """Return the counts as plain JSON values; parts that were not told are left out."""
        return {"prompt": self.prompt, "completion": self.completion, **self.parts}


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model wishes; `arguments` is the JSON text that it gave, which may be anything.

    `details` is JSON that the vendor wants back with the call, empty for most.
    """

    id: str
    name: str
    arguments: str
    details: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a model returned: what a provider of one's own gives back.

    Attributes
    ----------
    text : the reply
    finish : why it ended: "stop", "length" (the token limit), "refusal" or "other"
    usage : tokens read and written
    seconds : time of generation, without waiting in a queue
    logprobs, alternatives : the tokens with their log-probabilities, and the candidates at each;
        None where the endpoint does not say
    likelihoods, drawn : what was asked for instead of a reply, as plain JSON values: of each text,
        and the tables of Relaxed Perplexity
    calls : tools that the model calls

    Examples
    --------
    >>> from medassay import Completion
    >>> Completion(text="The answer is C.").finish
    'stop'
    """

    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    seconds: float = 0.0
    logprobs: tuple[TokenLogprob, ...] | None = None
    alternatives: tuple[tuple[TokenLogprob, ...], ...] | None = None
    likelihoods: tuple[dict[str, Any], ...] | None = None
    drawn: dict[str, Any] | None = None
    calls: tuple[ToolCall, ...] = ()

    @property
    def tells_usage(self) -> bool:
        """Return whether the endpoint counted the tokens: of a reply that says something, those
        read and those written.
        """
        has_content = bool(self.text or self.calls)
        return self.usage.prompt > 0 and (self.usage.completion > 0 or not has_content)


class Reply(msgspec.Struct, frozen=True):
    """One completion with the key it is stored under."""

    key: str
    completion: Completion
    replayed: bool
