"""Likelihoods from a server: it reads context and continuation as one prompt and echoes it with
log-probabilities.

Many servers take such a request and answer something else: the log-probability of what they
generated, or values that are shifted by a token. Every choice scores by chance then, and nothing
tells. So a server is first asked what we know: whether the tokens echoed are the text sent, whether
what stands before a token alone decides about it, and whether a token that it generates has the
log-probability that the same token has in an echo. A server that fails is refused.

Tokens that stand on both sides of the border belong to the continuation; blanks at the end of a
context do too, as in the local engine.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion, Usage
from medassay.core.records.likelihood import LogLikelihood
from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import Prompt
from medassay.errors import Permanent
from medassay.model.context import blank_after, joined
from medassay.model.openai_reply import (
    UNREADABLE,
    ReplyLogprobs,
    ReplyUsage,
    decode_reply,
    part_of,
)

Post = Callable[[bytes], Awaitable[tuple[bytes, float]]]  # body → reply, seconds
_KNOWN = "A 54-year-old naïve patient takes 100 µg of levothyroxine every morning before breakfast."
_BEGINNINGS = (12, 27, 45, 61, 78)  # lengths of the known text after which the server goes on
_TOLERANCE = 0.1  # nats between two readings of one token: servers compute in half precision
_FEWEST = 3  # tokens of its own that a server must agree on with itself
_PARTIAL = ("\ufffd", "bytes:")  # what servers write for a part of a character


class WrongEchoError(ValueError):
    """Say in which way an echo is not what it must be."""


class EchoedPrompt(msgspec.Struct, frozen=True):
    """One echoed prompt: its tokens with their log-probabilities (None for the first), and what was
    generated behind it.

    `ends` are the lengths of the prompt up to and with each token, None inside of a character.
    `best` are the log-probabilities of the likeliest token at each place, None where the server
    does not say.
    """

    tokens: tuple[str, ...]
    values: tuple[float | None, ...]
    best: tuple[float | None, ...]
    ends: tuple[int | None, ...]
    generated: tuple[tuple[str, float], ...]
    usage: Usage

    def after(self, border: int) -> LogLikelihood:
        """Return the likelihood of what stands behind a border, a token across it included.

        Raises
        ------
        WrongEchoError
            When the server gives a token there no log-probability.
        """
        first = 0
        for at, end in enumerate(self.ends):
            if end is not None and end <= border:
                first = at + 1
        values = self.values[first:]
        if not values or any(value is None for value in values):
            raise WrongEchoError(
                "the first token of a prompt has no log-probability: without a context nothing can"
                " be scored"
            )
        known_values = tuple(value for value in values if value is not None)
        tops = [top for top in self.best[first:] if top is not None]
        greedy = None
        if len(tops) == len(known_values):
            greedy = all(v >= top - 1e-9 for v, top in zip(known_values, tops, strict=True))
        return LogLikelihood(
            total=math.fsum(known_values),
            n_tokens=len(known_values),
            greedy=greedy,
            tokens=known_values,
        )


class Echo:
    """Asks one endpoint for likelihoods, after it has shown once that its echo is right."""

    def __init__(self, spec: ModelSpec, post: Post) -> None:
        self._spec = spec
        self._post = post
        self._lock = asyncio.Lock()
        self._wrong: str | None = None
        self._checked = False

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the likelihoods that a prompt asks for, one request for each text.

        Raises
        ------
        Permanent
            When the endpoint's echo is wrong, or it cannot score this prompt.
        """
        async with self._lock:
            if not self._checked:
                self._wrong, self._checked = await self._check(), True
        if self._wrong is not None:
            raise Permanent(
                f"{self._spec.id}: this endpoint's likelihoods are wrong: {self._wrong}; take "
                '"likelihood" out of its capabilities, and it is asked for replies',
                endpoint_wide=True,
            )
        request = prompt.likely
        if request is None or request.relaxed is not None or request.chat_template:
            raise Permanent(f"{self._spec.id}: an echo tells the likelihood of plain texts only")
        context = joined(prompt.messages)
        bare = context.rstrip()
        behind = context[len(bare) :] + blank_after(context)
        likelihoods: list[dict[str, float | None]] = []
        read, written, seconds = 0, 0, 0.0
        for text in request.continuations:
            try:
                echoed, took = await self._ask(bare + behind + text)
                likelihood = echoed.after(len(bare))
                likelihoods.append(likelihood.of(text))
                read += echoed.usage.prompt
                written += likelihood.n_tokens
            except WrongEchoError as error:
                raise Permanent(f"{self._spec.id}: {error}") from None
            seconds += took
        return Completion(
            text="",
            usage=Usage(prompt=max(0, read - written), completion=written),
            seconds=seconds,
            likelihoods=tuple(likelihoods),
        )

    async def _ask(self, text: str) -> tuple[EchoedPrompt, float]:
        spec = self._spec
        body: dict[str, Any] = {
            "model": spec.sent_name,
            "prompt": text,
            spec.token_parameter: 1,
            "echo": True,
            "logprobs": 1,
        }
        if "no_temperature" not in spec.capabilities:
            body["temperature"] = 0
        data, seconds = await self._post(canonical({**body, **spec.extra_body}))
        return read_echo(data, text), seconds

    async def _check(self) -> str | None:
        """Return what is wrong with the endpoint's echo, None if it tells what it must."""
        try:
            echoed, _ = await self._ask(_KNOWN)
            if not any(echoed.values):
                return "every token of a text has log-probability 0"
            agreed = 0
            for length in _BEGINNINGS:
                begun, _ = await self._ask(_KNOWN[:length])
                _same_beginning(echoed, begun)
                token, value = begun.generated[0]
                if not token or any(mark in token for mark in _PARTIAL):
                    continue
                again, _ = await self._ask(_KNOWN[:length] + token)
                if len(again.tokens) != len(begun.tokens) + 1 or again.tokens[-1] != token:
                    continue  # read otherwise together with what stands before it
                _check_equal(again.values[-1], value, f"a token {token!r} that it generated")
                agreed += 1
        except WrongEchoError as error:
            return str(error)
        if agreed < min(_FEWEST, len(_BEGINNINGS)):
            return "it generates nothing that an echo could be held against"
        return None


def _same_beginning(echoed: EchoedPrompt, begun: EchoedPrompt) -> None:
    """Refuse an echo in which what follows a token changes what it says of it."""
    for at, (token, other) in enumerate(zip(echoed.tokens, begun.tokens, strict=False)):
        if token != other:
            return  # tokenised otherwise from here on
        first, second = echoed.values[at], begun.values[at]
        if first is not None or second is not None:
            _check_equal(
                first, second, f"token {at + 1} of one text, read with and without the rest"
            )


def _check_equal(first: float | None, other: float | None, what: str) -> None:
    if first is None or other is None or abs(first - other) > _TOLERANCE:
        texts = ["none" if value is None else f"{value:.3f}" for value in (first, other)]
        raise WrongEchoError(f"{what} has log-probabilities {texts[0]} and {texts[1]}")


def read_echo(data: bytes, text: str) -> EchoedPrompt:
    """Return what a reply of the completions protocol says of the prompt that was sent.

    Raises
    ------
    WrongEchoError
        When it is no echo of this prompt, or has no log-probability for each of its tokens.
    """
    try:
        reply = decode_reply(data)
        choice, usage = reply.choices[0], part_of(reply.usage, ReplyUsage)
        echoed_text, logprobs = choice.text, part_of(choice.logprobs, ReplyLogprobs)
        tokens = [str(token) for token in logprobs.tokens]
        values = [None if value is None else float(value) for value in logprobs.token_logprobs]
        best = [_highest(top) for top in logprobs.top_logprobs or [None] * len(tokens)]
        read, written = int(usage.prompt_tokens), int(usage.completion_tokens)
    except UNREADABLE:
        raise WrongEchoError(
            "the reply has no text, tokens, log-probabilities and counts of the completions"
            " protocol"
        ) from None
    if not isinstance(echoed_text, str) or not echoed_text.startswith(text):
        raise WrongEchoError("the reply does not begin with the prompt (is 'echo' ignored?)")
    if written not in (0, 1) or not len(tokens) == len(values) == read + written:
        raise WrongEchoError(
            f"{len(values)} log-probabilities for {read} tokens of the prompt and {written}"
            " generated"
        )
    if len(best) != len(tokens):
        best = [None] * len(tokens)
    if any(value is None or not value <= 0 for value in values[1:]):
        raise WrongEchoError("a token behind the first has no log-probability, or one above 0")
    generated = [(token, value) for token, value in zip(tokens, values, strict=True)][read:]
    first = values[0]
    return EchoedPrompt(
        tokens=tuple(tokens[:read]),
        values=(None if first is None or first >= 0 else first, *values[1:read]),
        best=tuple(best[:read]),
        ends=_ends(tokens[:read], text),
        generated=tuple((token, value or 0.0) for token, value in generated) or (("", 0.0),),
        usage=Usage(prompt=min(read, 2**40), completion=written),
    )


def _highest(top: Any) -> float | None:
    return max(map(float, top.values())) if isinstance(top, dict) and top else None


def _ends(tokens: Sequence[str], text: str) -> tuple[int | None, ...]:
    """Return where each token ends in a text, from the back.

    None inside of a character that several tokens make.

    What stands before the text (a BOS that the server put there) ends at 0.
    """
    ends: list[int | None] = []
    at: int | None = len(text)
    for number in range(len(tokens) - 1, -1, -1):
        token = tokens[number]
        if at is None:  # behind a part of a character: the next whole token tells where we are
            # An unknown token ends before the last one known.
            last_end = next((end for end in reversed(ends) if end is not None), len(text))
            at = _token_end(tokens, number, text, last_end)
        ends.append(at if token or not at else None)
        if not token:  # as some servers write the first part of a character
            continue
        if any(mark in token for mark in _PARTIAL):
            at = None
        elif at is not None and text.endswith(token, 0, at):
            at -= len(token)
        elif at == 0:
            continue
        else:
            raise WrongEchoError(f"the tokens echoed are not the prompt: {token[:40]!r}")
    return tuple(reversed(ends))


def _token_end(tokens: Sequence[str], number: int, text: str, before: int) -> int | None:
    """Return where a whole token in front of parts of characters ends; None for a part."""
    token = tokens[number]
    if any(mark in token for mark in _PARTIAL):
        return None
    place = text.rfind(token, 0, before)
    if place < 0:
        return 0
    return place + len(token)
