"""Asking a model for a piece of an item until it is usable, and remembering every call."""

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
from msgspec.structs import replace

from medassay.context.tools.loop import ToolLoop
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import storable
from medassay.core.records.completion import Reply, ReplyColumns
from medassay.core.records.model import ModelSpec, SamplingObject
from medassay.core.records.prompt import Message, MessagePart, Prompt
from medassay.errors import OverBudget
from medassay.prompt.render import load_part
from medassay.runner.ask import Asker, sampling_of

T = TypeVar("T")
_SHOWN = 4000  # characters of an unusable reply that its author is shown again
# What fills the holes of a text, by name
Holes = Mapping[str, str | int | Sequence[str]]


class CallNote(TypedDict, total=False):
    """What a workshop notes of one request: of whom it was asked, the reply, what was wrong with
    it, and what the model looked up.
    """

    model: str
    text: str
    prompt_sha256: str
    sampling: SamplingObject
    attempt: int
    response: str
    reply: str
    problem: str
    looked_up: list[dict[str, str | int | None]]


class AuthorReply(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """What came of asking: a value, or why there is none; and the calls, the last one last."""

    value: T | None
    problem: str = ""
    calls: list[CallNote] = msgspec.field(default_factory=list)


_APART = 1000  # attempts of one time, at most


class Author:
    """A model that makes or reviews pieces of items."""

    def __init__(
        self,
        spec: ModelSpec,
        asker: Asker,
        *,
        seed: int,
        tool_loop: tuple[ToolLoop, bytes] | None = None,
    ) -> None:
        self.spec = spec
        self._asker = asker
        self._seed = seed
        self._tool_loop = tool_loop  # what looks up for the model, and the tools that it is offered

    @property
    def searches(self) -> bool:
        """Return whether the model may look something up."""
        return self._tool_loop is not None

    @property
    def sees(self) -> bool:
        """Return whether the model is shown pictures."""
        return "vision" in self.spec.capabilities

    def basis(self, part: str, *, with_limit: bool = False) -> dict[str, Any]:
        """Return what decides the reply besides the holes of a text: the text itself, and the model
        with its sampling.

        Parameters
        ----------
        with_limit : whether the token limit is part of it, as it was in workshops before 2026-12:
            what is finished is not made anew because the limit was raised for what was not
        """
        sampling = sampling_of(self.spec, self._seed).to_dict()
        if not with_limit:
            sampling.pop("max_tokens")
        return {
            "model": [self.spec.id, self.spec.sent_name, self.spec.version, self.spec.family],
            "text": load_part(part).id,
            "sampling": sampling,
            **({} if self._tool_loop is None else {"tools": sha256_hex(self._tool_loop[1])[:16]}),
        }

    def prompt(
        self, part: str, subject: str, holes: Holes, pictures: Sequence[Path] = ()
    ) -> Prompt:
        """Return what the model is asked first."""
        text = load_part(part).text("en", **holes)
        line, role = self.spec.system_line, self.spec.system_role
        content: str | list[MessagePart] = text
        if pictures:
            content = [{"type": "text", "text": text}, *map(_picture, pictures)]
        messages: list[Message] = []
        if line and role != "none":
            messages.append({"role": role, "content": line})
        messages.append({"role": "user", "content": content})
        return Prompt(
            item_id=subject,
            messages=tuple(messages),
            encoded=canonical(messages),
            template=load_part(part).id,
        )

    async def make(
        self,
        part: str,
        subject: str,
        holes: Holes,
        read: Callable[[str], T],
        *,
        attempts: int,
        pictures: Sequence[Path] = (),
        times: int = 0,
    ) -> AuthorReply[T]:
        """Return what a model makes, asked again with what was wrong while `read` raises
        ValueError.

        Parameters
        ----------
        times : how often it was asked for all of this before; replies of each time are stored apart

        Raises
        ------
        Transient, Permanent
            When there is no reply after the retries, or the budget forbids a call.
        """
        first = prompt = self.prompt(part, subject, holes, pictures)
        calls: list[CallNote] = []
        problem = ""
        for attempt in range(times * _APART, times * _APART + attempts):
            columns = {"item": subject, "study": "synthesis"}
            reply, looked_up = await self._ask(prompt, columns, attempt)
            if reply is None:
                raise OverBudget(self._asker.tally.over_budget)  # others that are under way finish
            text = reply.completion.text
            call: CallNote = {
                "model": self.spec.id,
                "text": prompt.template,
                "prompt_sha256": sha256_hex(prompt.encoded),
                "sampling": sampling_of(self.spec, self._seed).to_dict(),
                "attempt": attempt,
                "response": reply.key,
                "reply": storable(text),
                **looked_up,
            }
            calls.append(call)
            try:
                if reply.completion.finish == "length":
                    raise ValueError("the reply was cut off at max_tokens")
                return AuthorReply(value=read(storable(text)), calls=calls)
            except ValueError as error:
                problem = " ".join(str(error).split())
                call["problem"] = problem
            prompt = _again(first, text, problem)
        return AuthorReply(value=None, problem=problem, calls=calls)

    async def close(self) -> None:
        """Close what the model looks things up with."""
        if self._tool_loop is not None:
            await self._tool_loop[0].close()

    async def _ask(
        self, prompt: Prompt, columns: ReplyColumns, attempt: int
    ) -> tuple[Reply | None, CallNote]:
        """Return the reply, None when the budget forbids it, and what was looked up on the way."""
        if self._tool_loop is None:
            return await self._asker.ask(self.spec, prompt, columns, attempt=attempt), {}
        tool_loop, tools = self._tool_loop
        prompt_with_tools = replace(prompt, tools=tools)
        looked = await tool_loop.solve(self.spec, prompt_with_tools, columns, repeat=attempt)
        if looked is None:
            return None, {}
        return looked.reply, {"looked_up": looked.calls()}


def _picture(path: Path) -> MessagePart:
    data = base64.b64encode(path.read_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _again(first: Prompt, text: str, problem: str) -> Prompt:
    """Return the prompt that shows a model its last reply and what was wrong with it."""
    notice = (
        f"That reply could not be used: {problem}. Reply again, with nothing but what was asked"
        " for."
    )
    return first.with_turns(
        {"role": "assistant", "content": storable(text)[:_SHOWN] or "–"},
        {"role": "user", "content": notice},
    )
