"""The mode `tools`: the conversation in which a model calls tools until it answers.

Calls of one turn run side by side, within the plan's limits. A call beyond the limit is answered by
a text that says so; a model that goes on calling all the same is stopped after two such turns.

Every reply and every tool result is in the response store before it is used. So a run that is cut
off makes no call twice, and a replay reads the same results without a network.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from medassay.context.tools.result import Status, ToolResult
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import parse_json, record_as
from medassay.core.records.completion import Completion, Reply, ReplyColumns, ToolCall, Usage
from medassay.core.records.context_config import DEAF_TURNS, ToolRules
from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import CalledFunction, Message, MessageCall, Prompt
from medassay.core.records.trial import ToolCalls, TracedCall
from medassay.errors import Permanent
from medassay.storage.response import request_key

if TYPE_CHECKING:  # its clients are slow to import
    from medassay.context.tools.toolbox import Toolbox

_LIMIT = "limit"  # the status of a call that was not made


class AsksModels(Protocol):
    """Asks models and keeps what came back: the runner's `Asker`."""

    async def ask(
        self,
        spec: ModelSpec,
        prompt: Prompt,
        columns: ReplyColumns,
        *,
        repeat: int = 0,
        attempt: int = 0,
    ) -> Reply | None:
        """Return the reply to a prompt, None when the budget forbids the call."""

    def constant(self, spec: ModelSpec) -> bytes:
        """Return what all requests of a model share."""

    async def stored_result(
        self, key: str, make: Callable[[], Awaitable[str]], columns: ReplyColumns
    ) -> str:
        """Return the stored result of a tool call; make the call where there is none."""


Look = Callable[[Prompt, int, ToolCall], Awaitable[ToolResult]]


class _StoredResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the response store has of a call."""

    status: Status
    text: str


class Conversation(msgspec.Struct, kw_only=True):
    """A conversation: the replies in order, and each call with its result."""

    replies: list[Reply] = msgspec.field(default_factory=list)
    trace: list[TracedCall] = msgspec.field(default_factory=list)


class ToolTrace(msgspec.Struct, frozen=True):
    """The end of a conversation: the last reply with all that was spent, and the calls on the
    way.
    """

    reply: Reply
    trace: tuple[TracedCall, ...]
    use: ToolCalls

    def calls(self) -> list[dict[str, str | int | None]]:
        """Return the calls as plain values."""
        calls: list[dict[str, str | int | None]] = msgspec.to_builtins(self.trace, str_keys=True)
        return list(calls)


class ToolLoop:
    """Holds the conversations of a run."""

    def __init__(self, toolbox: "Toolbox", asker: AsksModels) -> None:
        self._toolbox = toolbox
        self._asker = asker
        self._constant = canonical({"tools": toolbox.id})

    @property
    def rules(self) -> ToolRules:
        """Return the limits of a conversation."""
        return self._toolbox.rules

    async def solve(
        self,
        spec: ModelSpec,
        prompt: Prompt,
        columns: ReplyColumns,
        *,
        repeat: int,
        attempt: int = 0,
    ) -> ToolTrace | None:
        """Return how a model answers with tools, None when the budget forbids a call on the way.

        Raises
        ------
        Transient, Permanent
            When there is no reply after the retries.
        """

        async def ask(turn_prompt: Prompt) -> Reply | None:
            return await self._asker.ask(spec, turn_prompt, columns, repeat=repeat, attempt=attempt)

        async def look(turn_prompt: Prompt, place: int, call: ToolCall) -> ToolResult:
            return await self._look(spec, turn_prompt, place, call, columns, repeat)

        talk = await converse(prompt, ask, look, self.rules)
        return None if talk is None else _ended(talk)

    async def _look(
        self,
        spec: ModelSpec,
        turn_prompt: Prompt,
        place: int,
        call: ToolCall,
        columns: ReplyColumns,
        repeat: int,
    ) -> ToolResult:
        """Return what a call gave when it was first made at this point of this conversation."""
        # As the key of the reply that it follows, with the call; the item, since two items may ask
        # the same.
        call_ = canonical([columns["item"], place, call.name, call.arguments])
        constant = self._constant + self._asker.constant(spec)
        key = request_key(constant, turn_prompt.asked + b"\x1f" + call_, repeat)

        async def make() -> str:
            if spec.provider == "replay":
                raise Permanent(
                    f"{spec.id}: no stored result of {call.name} for item '{turn_prompt.item_id}'"
                    " to replay"
                )
            await self._toolbox.ready()
            result = await self._toolbox.call(call)
            return canonical({"status": result.status, "text": result.text}).decode()

        text = await self._asker.stored_result(
            key, make, {"model": spec.id, "tool": call.name, **columns}
        )
        where = f"responses: result of {call.name}"
        stored = record_as(parse_json(text.encode(), where), _StoredResult, where)
        return ToolResult(text=stored.text, status=stored.status, key=key)

    async def close(self) -> None:
        """Close the connections of the tools."""
        await self._toolbox.close()


def _ended(talk: Conversation) -> ToolTrace:
    """Return the last reply of a conversation with the tokens and seconds of all of them."""
    completions = [reply.completion for reply in talk.replies]
    completion: Completion = replace(
        completions[-1],
        usage=sum((completion.usage for completion in completions), Usage()),
        seconds=sum(completion.seconds for completion in completions),
    )
    last = talk.replies[-1]
    replayed = all(reply.replayed for reply in talk.replies)
    use = ToolCalls.of([call.status for call in talk.trace if call.status != _LIMIT])
    return ToolTrace(Reply(last.key, completion, replayed), tuple(talk.trace), use)


async def converse(
    prompt: Prompt,
    ask: Callable[[Prompt], Awaitable[Reply | None]],
    look: Look,
    rules: ToolRules,
) -> Conversation | None:
    """Return the conversation about a prompt, None when the budget forbids a call in it.

    Parameters
    ----------
    ask : returns the reply to a prompt, None when the budget forbids it
    look : makes a call, given the prompt that it answers and its number in that turn
    """
    talk: Conversation = Conversation()
    deaf = n_calls = 0
    while True:
        reply = await ask(prompt)
        if reply is None:
            return None
        talk.replies.append(reply)
        calls = _with_ids(reply.completion.calls)
        if not calls or deaf == DEAF_TURNS:
            return talk
        remaining = max(0, rules.max_calls - n_calls)
        deaf += remaining == 0
        n_calls += len(calls[:remaining])
        results = await _side_by_side(prompt, calls[:remaining], look, rules.parallel)
        notice = canonical(
            {"error": f"no calls are left (the limit is {rules.max_calls}); answer now"}
        ).decode()
        results += [ToolResult(text=notice, status="failed") for _ in calls[remaining:]]
        for place, (call, result) in enumerate(zip(calls, results, strict=True)):
            status = result.status if place < remaining else _LIMIT
            talk.trace.append(_traced(len(talk.replies), call, result, status))
        prompt = _going_on(prompt, reply.completion, calls, results)


async def _side_by_side(
    prompt: Prompt, calls: list[ToolCall], look: Look, at_once: int
) -> list[ToolResult]:
    free = asyncio.Semaphore(at_once)

    async def make_call(place: int, call: ToolCall) -> ToolResult:
        async with free:
            return await look(prompt, place, call)

    return [*await asyncio.gather(*(make_call(place, call) for place, call in enumerate(calls)))]


def _with_ids(calls: tuple[ToolCall, ...]) -> list[ToolCall]:
    """Return calls whose ids can be told apart; some models give none, or one to all."""
    if len({call.id for call in calls}) == len(calls) and all(call.id for call in calls):
        return list(calls)
    return [msgspec.structs.replace(call, id=f"call_{place}") for place, call in enumerate(calls)]


def _traced(turn: int, call: ToolCall, result: ToolResult, status: str) -> TracedCall:
    return TracedCall(
        turn=turn,
        tool=call.name,
        arguments=call.arguments,
        status=status,
        characters=len(result.text),
        sha256=sha256_hex(result.text.encode()),
        response=result.key,
    )


def _going_on(
    prompt: Prompt, completion: Completion, calls: list[ToolCall], results: list[ToolResult]
) -> Prompt:
    """Return the prompt with the turn added: what the model said, and what its calls gave."""
    turn: list[Message] = [
        {
            "role": "assistant",
            "content": completion.text,
            "tool_calls": [_as_message(call) for call in calls],
        }
    ]
    turn += [
        {"role": "tool", "tool_call_id": call.id, "content": result.text}
        for call, result in zip(calls, results, strict=True)
    ]
    return prompt.with_turns(*turn)


def _as_message(call: ToolCall) -> MessageCall:
    """Return a call as it is sent back.

    Arguments that are no JSON object, which endpoints refuse, as an empty one.
    """
    try:
        fine = isinstance(json.loads(call.arguments), dict)
    except (ValueError, RecursionError):
        fine = False
    function: CalledFunction = {
        "name": call.name,
        "arguments": call.arguments if fine else "{}",
    }
    message: MessageCall = {"id": call.id, "type": "function", "function": function}
    if call.details:
        message |= {"details": call.details}
    return message
