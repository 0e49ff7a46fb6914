"""A scripted provider, for tests, demonstrations and users' own tests. Never ranked.

The keys of an entry's `script` are `core/records/script.py: SCRIPT`.
"""

import asyncio
import hashlib
import json
import math
import re
from typing import Any

import msgspec

from medassay.core.records.completion import Completion, Finish, ToolCall, Usage
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt, message_text
from medassay.errors import InputError, Permanent, Transient


class ScriptedCall(msgspec.Struct):
    """A call of a tool in a script."""

    name: str
    arguments: dict[str, str | int]


class ScriptedLabels(msgspec.Struct):
    """Labels of a scripted judge: name → severity, and golden diagnosis → name → relation."""

    severity: dict[str, str] = {}
    relation: dict[str, dict[str, str]] = {}


class Script(msgspec.Struct):
    """What a scripted model does; `core/records/script.py: SCRIPT` says what each key is."""

    reply: str = ""
    replies: dict[str, str | list[str]] = {}
    letters: str = ""
    finish: Finish = "stop"
    delay: float = 0.0
    fail_every: int = 0
    fail_items: list[str] = []
    refuse_items: list[str] = []
    malformed_items: list[str] = []
    tools: list[list[ScriptedCall]] = []
    judge: float | None = None
    labels: ScriptedLabels | None = None
    graph: float | None = None


class Fake:
    """Answers from its script and counts its calls."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        self._spec = spec
        try:
            self._script = msgspec.convert(spec.script, Script, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"{spec.id}: field 'script': {error}") from None
        self.calls = 0

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return what the script says for this prompt."""
        self.calls += 1
        script = self._script
        if script.delay:
            await asyncio.sleep(script.delay)
        if prompt.item_id in script.fail_items:
            raise Permanent(f"{self._spec.id}: scripted failure")
        if script.fail_every and self.calls % script.fail_every == 0:
            raise Transient(f"{self._spec.id}: scripted failure in passing")
        if prompt.item_id in script.malformed_items:
            raise Transient(f"{self._spec.id}: not a reply of this protocol: '{{'")
        if prompt.item_id in script.refuse_items:
            return Completion(text="I cannot help with that.", finish="refusal")
        if prompt.tools and (calls := _calls(prompt, script.tools)):
            return Completion(text="", finish="tool_calls", usage=_usage(prompt, ""), calls=calls)
        template = prompt.template.partition("@")[0]
        own_reply = script.replies.get(prompt.item_id, script.reply)
        text = script.replies.get(f"{template}/{prompt.item_id}", own_reply)
        if isinstance(
            text, list
        ):  # one for each time that it is asked, the last for all further ones
            text = text[min(repeat, len(text) - 1)]
        if script.letters == "hash" and prompt.letters:
            seed = message_text(prompt.messages[-1]) + str(repeat)
            digest = hashlib.sha256(seed.encode()).digest()
            text = prompt.letters[digest[0] % len(prompt.letters)]
        if script.judge is not None:
            text = _verdicts(message_text(prompt.messages[-1]), script.judge)
        if script.labels is not None:
            text = _labels(message_text(prompt.messages[-1]), script.labels)
        if script.graph is not None:
            text = _step(prompt, script.graph)
        return Completion(text=text, finish=script.finish, usage=_usage(prompt, text))

    async def close(self) -> None:
        """Nothing to free."""


def _usage(prompt: Prompt, text: str) -> Usage:
    words = sum(len(message_text(message).split()) for message in prompt.messages)
    return Usage(prompt=words, completion=max(1, len(text.split())))


def _calls(prompt: Prompt, turns: list[list[ScriptedCall]]) -> tuple[ToolCall, ...]:
    """Return the scripted calls of the turn that a conversation has reached."""
    turn = sum("tool_calls" in message for message in prompt.messages)
    return tuple(
        ToolCall(
            id=f"call-{turn}-{place}",
            name=call.name,
            arguments=json.dumps(call.arguments).replace("{item}", prompt.item_id),
        )
        for place, call in enumerate(turns[turn] if turn < len(turns) else ())
    )


_FACT = re.compile(r"^\[(\S+)\] (.+)$", re.MULTILINE)
_ANSWER = re.compile(r"<<<answer (\w+)>>>\n(.*)\n<<<end of answer \1>>>", re.DOTALL)
_WORD = re.compile(r"\w{4,}")


def _verdicts(prompt_text: str, threshold: float) -> str:
    """Return a scripted judge's reply: a count of shared words, no judgement at all."""
    match = _ANSWER.search(prompt_text)
    answer = set(_WORD.findall(match[2].lower())) if match else set()
    facts = []
    for name, text in _FACT.findall(prompt_text[: match.start()] if match else prompt_text):
        words = set(_WORD.findall(text.lower()))
        entailed = len(words & answer) >= threshold * max(1, len(words))
        facts.append({"id": name, "verdict": "entail" if entailed else "missing", "evidence": ""})
    return json.dumps({"facts": facts, "extra_false_claims": []})


_BETWEEN = r"<<<{0} (\w+)>>>\n(.*)\n<<<end of {0} \1>>>"
_LIST = re.compile(_BETWEEN.format("list"), re.DOTALL)
_REFERENCE = re.compile(_BETWEEN.format("reference"), re.DOTALL)
_ENTRY = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)


def _labels(prompt_text: str, table: ScriptedLabels) -> str:
    """Return a scripted judge's labels of a list: what the table says, no judgement at all."""
    listed, reference = _LIST.search(prompt_text), _REFERENCE.search(prompt_text)
    items: list[dict[str, Any]] = []
    for at, name in _ENTRY.findall(listed[2]) if listed else ():
        if reference is None:
            level = table.severity.get(name, "moderate")
            items.append({"id": int(at), "severity": level})
        else:
            relations = table.relation.get(reference[2], {})
            items.append({"id": int(at), "relation": relations.get(name, "Not Related")})
    return json.dumps({"items": items})


_DOCUMENT = re.compile(r"<<<(expected output|input) (\w+)>>>\n(.*?)\n<<<end of \1 \2>>>", re.DOTALL)
_OUTPUT = re.compile(_BETWEEN.format("actual output"), re.DOTALL)
_SHARE = re.compile(r"Shares (\d+) of (\d+) words")


def _step(prompt: Prompt, threshold: float) -> str:
    """Return a scripted judge's reply to a node of a graph: counted words, no judgement at all."""
    prompt_text = message_text(prompt.messages[-1])
    output = _OUTPUT.search(prompt_text)
    answer = set(_WORD.findall(output[2].lower())) if output else set()
    documents = [set(_WORD.findall(text.lower())) for _, _, text in _DOCUMENT.findall(prompt_text)]
    shared = max(((len(words & answer), len(words)) for words in documents), default=(1, 1))
    if not prompt.schema:
        return f"Shares {shared[0]} of {shared[1]} words with the document."
    if (report := _SHARE.search(prompt_text)) is not None:
        shared = (int(report[1]), int(report[2]))
    verdict_schema = json.loads(prompt.schema)["properties"]["verdict"]
    options = verdict_schema.get("enum", [True, False])
    below = max(0.0, threshold - shared[0] / max(1, shared[1]))
    chosen = options[min(len(options) - 1, math.ceil(10 * below))]
    return json.dumps({"verdict": chosen, "reason": f"{shared[0]} of {shared[1]} words"})
