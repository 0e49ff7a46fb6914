"""What an endpoint of the OpenAI protocol replies, read as it may be: hostile, or odd.

What a reply stands or falls with is typed. Everything else may be anything, since a strange part is
no reason to lose a reply; it is looked at where it is used, and its size is bounded.
"""

import json
import math
from typing import Any, TypeVar

import msgspec

from medassay.core.json import storable
from medassay.core.records.completion import Completion, Finish, TokenLogprob, ToolCall, Usage

S = TypeVar("S", bound=msgspec.Struct)
# What a hostile reply may raise when it is read as what it should be.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_MOST_CALLS, _LONGEST_ARGUMENTS, _LONGEST_NAME = 64, 20_000, 200
_MOST_TOKENS = 2**40


class ReplyMessage(msgspec.Struct):
    """What a model says in a chat."""

    content: Any = None
    refusal: Any = None
    tool_calls: Any = None


class ReplyChoice(msgspec.Struct):
    """One reply: a message of a chat, or the text of a completion."""

    message: ReplyMessage | None = None
    text: Any = None
    finish_reason: Any = None
    logprobs: Any = None


class OpenAIReply(msgspec.Struct):
    """A reply, of which one choice is asked for."""

    choices: list[ReplyChoice]
    usage: Any = None


class ReplyUsage(msgspec.Struct):
    """The tokens that a reply counts."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_tokens_details: Any = None
    completion_tokens_details: Any = None


class TokenDetails(msgspec.Struct):
    """Parts of the tokens read or written."""

    cached_tokens: Any = None
    reasoning_tokens: Any = None


class ReplyCall(msgspec.Struct):
    """A call of a tool."""

    id: Any = None
    function: Any = None


class ReplyFunction(msgspec.Struct):
    """What a call names."""

    name: Any = None
    arguments: Any = None


class ReplyLogprobs(msgspec.Struct):
    """Log-probabilities: of a chat in `content`, of a completion in the other fields."""

    content: Any = None
    tokens: Any = None
    token_logprobs: Any = None
    top_logprobs: Any = None


class LikelyToken(msgspec.Struct):
    """A token with its log-probability, and the candidates in its place."""

    token: Any
    logprob: Any
    top_logprobs: Any = None


_REPLY = msgspec.json.Decoder(OpenAIReply)


def decode_reply(data: bytes) -> OpenAIReply:
    """Return a reply; what it raises otherwise is among `UNREADABLE`."""
    try:
        return _REPLY.decode(data)
    except msgspec.MsgspecError:
        # A lone surrogate, or a number that is none in JSON, is no reason to lose a reply.
        return msgspec.convert(json.loads(data), OpenAIReply)


def part_of(value: Any, record: type[S]) -> S:
    """Return a part of a reply, with nothing in it where the part is no object."""
    return msgspec.convert(value, record) if isinstance(value, dict) else record()


def read_completion(data: bytes, *, is_chat: bool, seconds: float) -> Completion:
    """Return what a reply says; what it raises otherwise is among `UNREADABLE`."""
    reply = decode_reply(data)
    choice = reply.choices[0]
    text, refusal = choice.text, None
    calls: tuple[ToolCall, ...] = ()
    if is_chat:
        if choice.message is None:
            raise ValueError("a choice without a message")
        text, refusal = choice.message.content, choice.message.refusal
        calls = _calls(choice.message.tool_calls)
    usage = _usage(part_of(reply.usage, ReplyUsage))
    finish = _FINISH.get(str(choice.finish_reason or "stop"), "other")
    logprobs, alternatives = _logprobs(choice.logprobs)
    if refusal:
        return Completion(text=reply_text(refusal), finish="refusal", usage=usage, seconds=seconds)
    if isinstance(text, list):  # content parts
        parts = (part.get("text", "") for part in text if isinstance(part, dict))
        text = "".join(map(reply_text, parts))
    return Completion(
        text=reply_text(text) if isinstance(text, str) else "",
        finish=finish,
        usage=usage,
        seconds=seconds,
        logprobs=logprobs,
        alternatives=alternatives,
        calls=calls,
    )


def reply_text(value: Any) -> str:
    """Return text that can be stored: lone surrogates, which are no characters, become "?"."""
    return storable(str(value))


def token_count(value: Any) -> int:
    """Return a number of tokens within reason: replies are hostile, and budgets rely on it."""
    return min(max(int(value or 0), 0), _MOST_TOKENS)


def _usage(usage: ReplyUsage) -> Usage:
    """Return the tokens that a reply counts, with those that were cached and those that are
    thoughts where it tells them apart.
    """
    read, written = token_count(usage.prompt_tokens), token_count(usage.completion_tokens)
    of_prompt = part_of(usage.prompt_tokens_details, TokenDetails)
    of_completion = part_of(usage.completion_tokens_details, TokenDetails)
    return Usage(
        prompt=read,
        completion=written,
        cached=min(read, _part_count(of_prompt.cached_tokens)),
        reasoning=min(written, _part_count(of_completion.reasoning_tokens)),
    )


def _part_count(value: Any) -> int:
    """Return a part of the tokens, 0 where it is not told in the usual way: no reason to lose a
    reply.
    """
    return token_count(value) if type(value) is int else 0


def _calls(entries: Any) -> tuple[ToolCall, ...]:
    """Return the calls in a reply that name a function.

    Arguments as an object, which some endpoints give, become text.
    """
    calls = []
    for entry in entries[:_MOST_CALLS] if isinstance(entries, list) else ():
        call = part_of(entry, ReplyCall)
        function = part_of(call.function, ReplyFunction)
        if not isinstance(function.name, str) or not function.name:
            continue
        arguments = function.arguments or "{}"
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        calls.append(
            ToolCall(
                id=reply_text(call.id or "")[:_LONGEST_NAME],
                name=reply_text(function.name)[:_LONGEST_NAME],
                arguments=reply_text(arguments)[:_LONGEST_ARGUMENTS],
            )
        )
    return tuple(calls)


def _logprobs(
    value: Any,
) -> tuple[tuple[TokenLogprob, ...] | None, tuple[tuple[TokenLogprob, ...], ...] | None]:
    """Return the tokens with their log-probabilities, and the candidates at each if there are
    any.
    """
    logprobs = part_of(value, ReplyLogprobs)
    tokens, values = logprobs.tokens, logprobs.token_logprobs
    if isinstance(logprobs.content, list):  # chat
        likely_tokens = msgspec.convert(logprobs.content, list[LikelyToken])
        rows = [(t.token, t.logprob, _candidates(t.top_logprobs)) for t in likely_tokens]
    elif isinstance(tokens, list) and isinstance(values, list):  # completions
        tops = [*(logprobs.top_logprobs or ()), *[None] * len(tokens)]
        pairs = [list((top or {}).items()) for top in tops]
        rows = list(zip(tokens, values, pairs, strict=False))
    else:
        return None, None
    rows_read = [(_likely([(token, value)]), _likely(top)) for token, value, top in rows]
    alternatives = tuple(top for is_own, top in rows_read if is_own)
    own_tokens = tuple(likely for tokens, _ in rows_read for likely in tokens)
    return own_tokens, alternatives if any(alternatives) else None


def _candidates(entries: Any) -> list[tuple[Any, Any]]:
    candidates = msgspec.convert(entries or [], list[LikelyToken])
    return [(candidate.token, candidate.logprob) for candidate in candidates]


def _likely(pairs: list[tuple[Any, Any]]) -> tuple[TokenLogprob, ...]:
    """Return pairs of token and log-probability; what is no finite number is left out."""
    known_pairs = [(reply_text(token), float(value)) for token, value in pairs if value is not None]
    return tuple((token, value) for token, value in known_pairs if math.isfinite(value))
