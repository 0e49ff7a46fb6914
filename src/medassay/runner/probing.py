"""Whether an endpoint does what its entry says: one short request for each thing, and what to
change where it does not.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import msgspec

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion
from medassay.core.records.likelihood import LikelihoodRequest
from medassay.core.records.model import Chat, ModelSpec
from medassay.core.records.prompt import Message, Prompt
from medassay.errors import MedassayError, Permanent
from medassay.model.catalog import PROVIDERS
from medassay.model.chats import named_secrets
from medassay.runner.ask import sampling_of

_SHORT, _ROOM = 16, 256  # tokens of a reply that is one letter, and of a call or an object
_SCHEMA = {
    "type": "object",
    "properties": {"letter": {"type": "string"}},
    "required": ["letter"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "answer",
        "description": "Give the answer.",
        "parameters": _SCHEMA,
    },
}


class Probe(msgspec.Struct, kw_only=True):
    """What an entry's endpoint said: its reply, None where there is none, and what is wrong, a
    sentence each.
    """

    text: str | None = None
    problems: list[str] = msgspec.field(default_factory=list)


async def probe(spec: ModelSpec, environment: Mapping[str, str]) -> Probe:
    """Return whether an entry answers, and does what it declares: log-probabilities, likelihood,
    tools, structured replies.
    """
    try:
        finding = Probe(text=(await _ask(spec, environment, _prompt(spec))).text)
    except MedassayError as error:
        refused = isinstance(error, Permanent) and error.refused
        mend = await _mend(spec, environment) if refused else ""
        return Probe(problems=[f"does not answer: {error}{mend}"])
    if spec.is_scripted:
        return finding
    if spec.logprobs:
        finding.problems += await _logprobs(spec, environment)
    if "likelihood" in spec.capabilities and not spec.in_process:
        finding.problems += await _likelihood(spec, environment)
    if "tools" in spec.capabilities and not spec.in_process:
        finding.problems += await _tools(spec, environment)
    if "structured" in spec.capabilities and not spec.in_process:
        finding.problems += await _structured(spec, environment)
    return finding


def _prompt(spec: ModelSpec, *, schema: bytes = b"", tools: bytes = b"") -> Prompt:
    """Return the question, with a system line where the entry says something of it."""
    question = "Call the tool with the letter A." if tools else "Reply with the letter A only."
    messages: list[Message] = [{"role": "user", "content": question}]
    declared = spec.system_line or spec.system_role in ("developer", "user")
    if declared and spec.system_role != "none":
        line = spec.system_line or "You answer briefly."
        messages.insert(0, {"role": spec.system_role, "content": line})
    return Prompt(
        item_id="doctor",
        messages=tuple(messages),
        encoded=canonical(messages),
        template="doctor",
        letters="AB",
        options=("yes", "no"),
        schema=schema,
        tools=tools,
    )


async def _ask(
    spec: ModelSpec, environment: Mapping[str, str], prompt: Prompt, tokens: int = _SHORT
) -> Completion:
    limited = replace(spec, max_tokens=tokens)
    chat: Chat = PROVIDERS[spec.provider](limited, named_secrets(spec, environment))
    try:
        return await chat.complete(prompt, sampling_of(limited, 0), repeat=0)
    finally:
        await chat.close()


async def _mend(spec: ModelSpec, environment: Mapping[str, str]) -> str:
    """Return what to change in the entry so that the endpoint answers.

    Nothing where no single change helps.
    """
    if spec.provider != "openai_compatible":
        return ""
    for advice, changed in _changes(spec):
        try:
            await _ask(changed, environment, _prompt(changed))
        except MedassayError:
            continue
        return f"; it answers with {advice} in its entry"
    return ""


def _changes(spec: ModelSpec) -> Iterator[tuple[str, ModelSpec]]:
    """Yield single changes of an entry that endpoints are known to need."""
    other = {
        "max_tokens": "max_completion_tokens",
        "max_completion_tokens": "max_tokens",
    }.get(spec.token_parameter)
    if other is not None:
        yield f'"token_parameter": "{other}"', replace(spec, token_parameter=other)
    if "no_temperature" not in spec.capabilities:
        more = (*spec.capabilities, "no_temperature")
        yield '"no_temperature" among its capabilities', replace(spec, capabilities=more)
    for role in ("system", "developer", "user", "none"):
        if role != spec.system_role:
            yield f'"system_role": "{role}"', replace(spec, system_role=role)
    if spec.sends_seed:
        yield '"sends_seed": false', replace(spec, sends_seed=False)
    if not spec.url.rstrip("/").endswith("/v1"):
        url = spec.url.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1") + "/v1"
        yield f'"url": "{url}"', replace(spec, url=url)


async def _logprobs(spec: ModelSpec, environment: Mapping[str, str]) -> list[str]:
    reply = await _ask(spec, environment, msgspec.structs.replace(_prompt(spec), alternatives=2))
    if reply.logprobs:
        return []
    return ['gives no log-probabilities although "logprobs" is true: take it out of the entry']


async def _likelihood(spec: ModelSpec, environment: Mapping[str, str]) -> list[str]:
    if (reason := spec.cannot_tell("choices")) is not None:
        return [f'declares "likelihood", but {reason}']
    question = msgspec.structs.replace(
        _prompt(spec), likely=LikelihoodRequest(continuations=(" A", " B"))
    )
    try:
        await _ask(spec, environment, question)
    except MedassayError as error:
        return [f"tells no likelihood: {error}"]
    return []


async def _tools(spec: ModelSpec, environment: Mapping[str, str]) -> list[str]:
    if (reason := spec.no_tools) is not None:
        return [f'declares "tools", but {reason}']
    try:
        reply = await _ask(spec, environment, _prompt(spec, tools=canonical([_TOOL])), _ROOM)
    except MedassayError as error:
        return [f'refuses tools: {error}; take "tools" out of its capabilities']
    if reply.calls:
        return []
    return [
        'called no tool when it was told to: take "tools" out of its capabilities, or start the'
        " server with its tool parser"
    ]


async def _structured(spec: ModelSpec, environment: Mapping[str, str]) -> list[str]:
    try:
        reply = await _ask(spec, environment, _prompt(spec, schema=canonical(_SCHEMA)), _ROOM)
    except MedassayError as error:
        return [f'refuses a JSON schema: {error}; take "structured" out of its capabilities']
    try:
        held = "letter" in json.loads(reply.text)
    except (ValueError, TypeError, RecursionError):
        held = False
    if held:
        return []
    return [
        'does not keep to a JSON schema: take "structured" out of its capabilities, replies are'
        " then read as they come"
    ]
