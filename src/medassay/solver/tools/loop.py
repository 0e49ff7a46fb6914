"""The conversation in which a model calls tools until it answers; every call and every result is kept.

Calls of one turn run side by side, within the plan's limits. A call beyond the limit is answered by a text that says so; a model
that goes on calling all the same is cut off after two such turns.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.lookup import DEAF_TURNS, ToolRules
from medassay.core.trial import Completion, Prompt, ToolCall
from medassay.solver.tools.toolbox import Result

_LIMIT = "limit"  # the status of a call that was not made


class Replied(Protocol):
    """What asking a model gives."""

    @property
    def completion(self) -> Completion:
        """Return what the model said."""


T = TypeVar("T", bound=Replied)
Look = Callable[[Prompt, int, ToolCall], Awaitable[Result]]


@dataclass(kw_only=True)
class Talk(Generic[T]):
    """A conversation: the replies in order, and each call with its result."""

    replies: list[T] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)


async def converse(
    prompt: Prompt,
    ask: Callable[[Prompt], Awaitable[T | None]],
    look: Look,
    rules: ToolRules,
) -> Talk[T] | None:
    """Return the conversation about a prompt, None when the budget forbids a call in it.

    Parameters
    ----------
    ask : returns the reply to a prompt, None when the budget forbids it
    look : makes a call, given the prompt that it answers and its number in that turn
    """
    talk: Talk[T] = Talk()
    deaf = made = 0
    while True:
        reply = await ask(prompt)
        if reply is None:
            return None
        talk.replies.append(reply)
        calls = _with_ids(reply.completion.calls)
        if not calls or deaf == DEAF_TURNS:
            return talk
        left = max(0, rules.max_calls - made)
        deaf += left == 0
        made += len(calls[:left])
        results = await _side_by_side(prompt, calls[:left], look, rules.parallel)
        told = canonical(
            {"error": f"no calls are left (the limit is {rules.max_calls}); answer now"}
        ).decode()
        results += [Result(text=told, status="failed") for _ in calls[left:]]
        for place, (call, result) in enumerate(zip(calls, results, strict=True)):
            status = result.status if place < left else _LIMIT
            talk.trace.append(_traced(len(talk.replies), call, result, status))
        prompt = _going_on(prompt, reply.completion, calls, results)


async def _side_by_side(
    prompt: Prompt, calls: list[ToolCall], look: Look, at_once: int
) -> list[Result]:
    free = asyncio.Semaphore(at_once)

    async def one(place: int, call: ToolCall) -> Result:
        async with free:
            return await look(prompt, place, call)

    return [*await asyncio.gather(*(one(place, call) for place, call in enumerate(calls)))]


def _with_ids(calls: tuple[ToolCall, ...]) -> list[ToolCall]:
    """Return calls whose ids can be told apart; some models give none, or one to all."""
    if len({call.id for call in calls}) == len(calls) and all(call.id for call in calls):
        return list(calls)
    return [replace(call, id=f"call_{place}") for place, call in enumerate(calls)]


def _traced(turn: int, call: ToolCall, result: Result, status: str) -> dict[str, Any]:
    """Return a call as a trial keeps it: what came back stays in the response store, since it is others' text."""
    return {
        "turn": turn,
        "tool": call.name,
        "arguments": call.arguments,
        "status": status,
        "characters": len(result.text),
        "sha256": sha256_hex(result.text.encode()),
        "response": result.key,
    }


def _going_on(
    prompt: Prompt, said: Completion, calls: list[ToolCall], results: list[Result]
) -> Prompt:
    """Return the prompt with the turn added: what the model said, and what its calls gave."""
    turn: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "content": said.text,
            "tool_calls": [_as_message(call) for call in calls],
        }
    ]
    turn += [
        {"role": "tool", "tool_call_id": call.id, "content": result.text}
        for call, result in zip(calls, results, strict=True)
    ]
    messages = (*prompt.messages, *turn)
    return replace(prompt, messages=messages, encoded=canonical(list(messages)))


def _as_message(call: ToolCall) -> dict[str, Any]:
    """Return a call as it is sent back; arguments that are no JSON object, which endpoints refuse, as an empty one."""
    try:
        fine = isinstance(json.loads(call.arguments), dict)
    except (ValueError, RecursionError):
        fine = False
    function = {"name": call.name, "arguments": call.arguments if fine else "{}"}
    made: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    return {**made, "details": call.details} if call.details else made
