"""The answer side of the path: prompt, completion, answer, score, trial."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from medassay.core.canonical import canonical
from medassay.core.records.likelihood import LikelihoodRequest, LogLikelihood, likelihoods_of

Outcome = Literal["answered", "unparsed", "refused", "truncated", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("answered", "unparsed", "refused", "truncated", "failed")
# "refusal" is the model's or its provider's, of this answer; "moderation" the endpoint's, of the
# request itself.
Finish = Literal["stop", "length", "refusal", "moderation", "tool_calls", "other"]
Setting = Literal["zero_shot", "few_shot", "rag", "topline_path", "topline_text", "topline_all"]
Mode = Literal["solo", "tools"]
TokenLogprob = tuple[str, float]  # a token and its log-probability


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """The messages of one item exactly as sent, and how its options were shown.

    `order[i]` is the bank's position of the option shown at place i; None when as in the bank.
    `encoded` is the canonical JSON of the messages: what is hashed, and what is sent. `schema` is
    the JSON Schema that the reply should fit, for endpoints that can hold a model to one; empty for
    none. `alternatives` is how many candidates of each token the reply should name, with
    log-probabilities. `likely` asks for no reply at all, but how likely some texts are. `tools` is
    the canonical JSON of the functions that the model may call; empty for none. `retrieved` are the
    places (document, start) of the passages that are shown, `own_source` whether one is of the
    item's own source, None where that is not known. `max_tokens` is a shorter limit of the reply
    than the entry's, for what the prompt leaves of the model's window; 0 where nothing useful is
    left, so that nobody is asked.
    """

    item_id: str
    messages: tuple[dict[str, Any], ...]
    encoded: bytes
    template: str
    letters: str = ""
    options: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    schema: bytes = b""
    alternatives: int = 0
    likely: LikelihoodRequest | None = None
    tools: bytes = b""
    retrieved: tuple[tuple[str, int], ...] = ()
    own_source: bool | None = None
    max_tokens: int | None = None

    @property
    def asked(self) -> bytes:
        """Return all that is asked: what the key of a stored reply is made from."""
        candidates = b"\x1f%d" % self.alternatives if self.alternatives else b""
        likely = b"" if self.likely is None else b"\x1f" + canonical(self.likely.to_dict())
        tools = b"\x1f" + self.tools if self.tools else b""
        limit = b"" if self.max_tokens is None else b"\x1fmax_tokens=%d" % self.max_tokens
        return self.encoded + self.schema + candidates + likely + tools + limit


def said_in(message: Mapping[str, Any]) -> str:
    """Return the text of a message, without the pictures that may stand in it.

    Examples
    --------
    >>> said_in({"role": "user", "content": [{"type": "text", "text": "Read:"}, {
    ...     "type": "image_url"}]})
    'Read:'
    """
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def pictures_in(message: Mapping[str, Any]) -> list[str]:
    """Return the pictures of a message as data URLs."""
    content = message["content"]
    if isinstance(content, str):
        return []
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call that a model wishes; `arguments` is the JSON text that it gave, which may be anything.

    `details` is JSON that the vendor wants back with the call, empty for most.
    """

    id: str
    name: str
    arguments: str
    details: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a model returned. `seconds` is the time of generation, without waiting in a queue.

    `logprobs` are the tokens with their log-probabilities, `alternatives` the candidates at each of
    them; None where the endpoint does not say. `likelihoods` and `drawn` are there where they were
    asked for instead of a reply, as plain JSON values: of each text, and the tables of Relaxed
    Perplexity. `calls` are the tools that it calls.
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


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion with the key it is stored under."""

    key: str
    completion: Completion
    replayed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What was read from one completion; `value` is None unless the outcome is `answered`.

    One exception: a `truncated` list of diagnoses keeps its whole names as `value`, for the reader;
    it scores as any other missing answer. `reason` names the rule that read it, or why nothing
    could be read (`ambiguous` among them). `likelihoods` (of options in the bank's order) and
    `drawn` are what was asked for instead of a reply.
    """

    item_id: str
    outcome: Outcome
    value: str | None
    reason: str
    likelihoods: tuple[LogLikelihood, ...] = ()
    drawn: dict[str, Any] | None = None

    @property
    def codes(self) -> tuple[tuple[str, ...], ...]:
        """Return, for each diagnosis of a ranked list, the codes that stood behind its name
        ("ICD-10:Q87.4"); else nothing.
        """
        if not (self.value or "").startswith("[{"):
            return ()
        try:
            listed = json.loads(self.value or "")
        except ValueError:
            return ()
        return tuple(tuple(entry.get("codes", ())) for entry in listed if isinstance(entry, dict))


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Worth of one answer on its scorer's scale, or None when nobody can know it."""

    item_id: str
    value: float | None
    because: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The declared range of a score and which end is better.

    Where `floor` is given, one score may lie below `lo`, down to `floor`; a mean is clipped to
    `lo`..`hi`.
    """

    lo: float = 0.0
    hi: float = 1.0
    better: Literal["high", "low"] = "high"
    floor: float | None = None

    @property
    def unit(self) -> bool:
        """Return whether scores are shares, 0 to 1."""
        return self.lo == 0 and self.hi == 1 and self.floor is None

    @property
    def least(self) -> float:
        """Return the lowest that one score may be."""
        return self.lo if self.floor is None else self.floor

    @property
    def worst(self) -> float:
        """Return the end that a missing answer gets."""
        return self.lo if self.better == "high" else self.hi

    @property
    def ends(self) -> list[float | None]:
        """Return both ends as JSON holds them: None where there is no end."""
        return [end if math.isfinite(end) else None for end in (self.lo, self.hi)]


PERPLEXITY = Scale(hi=math.inf, better="low")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialKey:
    """One item in one cell in one repeat: what makes a trial unique."""

    domain: str
    model: str
    setting: str
    mode: str
    item: str
    repeat: int = 0

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """Return (domain, model, setting, mode)."""
        return (self.domain, self.model, self.setting, self.mode)

    @property
    def order(self) -> tuple[str, str, str, str, str, int]:
        """Return the place of this trial in a sealed run: by cell, item, repeat."""
        return (self.domain, self.model, self.setting, self.mode, self.item, self.repeat)


def answer_of(trial: Mapping[str, Any]) -> Answer:
    """Return the answer in a trial record."""
    return Answer(
        item_id=trial["item"],
        outcome=trial["outcome"],
        value=trial.get("value"),
        reason=trial.get("reason", ""),
        likelihoods=likelihoods_of(trial.get("likelihoods", ()), trial.get("order")),
        drawn=trial.get("drawn"),
    )
