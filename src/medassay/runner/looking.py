"""The mode `tools`: conversations whose every reply and every finding is in the response store before it is used.

So a run that is cut off makes no call twice, and a replay reads the same findings without a network.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from medassay.core.canonical import canonical
from medassay.core.lookup import ToolRules
from medassay.core.model import ModelSpec
from medassay.core.trial import Completion, Prompt, ToolCall, Usage
from medassay.errors import Permanent
from medassay.runner.asking import Asker, Reply
from medassay.storage.response import request_key

if TYPE_CHECKING:
    from medassay.solver.tools.loop import Talk
    from medassay.solver.tools.toolbox import Result, Toolbox


@dataclass(frozen=True, slots=True)
class Looked:
    """The end of a conversation: the last reply with all that was spent, and the calls on the way."""

    reply: Reply
    trace: tuple[dict[str, Any], ...]
    use: Mapping[str, int]


class Looking:
    """Holds the conversations of a run."""

    def __init__(self, toolbox: "Toolbox", asker: Asker) -> None:
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
        columns: Mapping[str, Any],
        *,
        repeat: int,
        attempt: int = 0,
    ) -> Looked | None:
        """Return how a model answers with tools, None when the budget forbids a call on the way.

        Raises
        ------
        Transient, Permanent
            When there is no reply after the retries.
        """
        from medassay.solver.tools.loop import converse

        async def ask(asked: Prompt) -> Reply | None:
            return await self._asker.ask(spec, asked, columns, repeat=repeat, attempt=attempt)

        async def look(asked: Prompt, place: int, call: ToolCall) -> "Result":
            return await self._look(spec, asked, place, call, columns, repeat)

        talk = await converse(prompt, ask, look, self.rules)
        return None if talk is None else _ended(talk)

    async def _look(
        self,
        spec: ModelSpec,
        asked: Prompt,
        place: int,
        call: ToolCall,
        columns: Mapping[str, Any],
        repeat: int,
    ) -> "Result":
        """Return what a call gave when it was first made at this point of this conversation."""
        from medassay.solver.tools.toolbox import Result

        # As the key of the reply that it follows, with the call; the item, since two items may ask the same.
        call_ = canonical([columns["item"], place, call.name, call.arguments])
        constant = self._constant + self._asker.constant(spec)
        key = request_key(constant, asked.asked + b"\x1f" + call_, repeat)

        async def make() -> str:
            if spec.provider == "replay":
                raise Permanent(
                    f"{spec.id}: no stored result of {call.name} for item '{asked.item_id}' to replay"
                )
            await self._toolbox.ready()
            found = await self._toolbox.call(call)
            return canonical({"status": found.status, "text": found.text}).decode()

        stored = json.loads(
            await self._asker.frozen(
                key, make, {"model": spec.id, "tool": call.name, **columns}
            )
        )
        return Result(text=stored["text"], status=stored["status"], key=key)

    async def close(self) -> None:
        """Close the connections of the tools."""
        await self._toolbox.close()


def _ended(talk: "Talk[Reply]") -> Looked:
    """Return the last reply of a conversation with the tokens and seconds of all of them."""
    from medassay.solver.tools.toolbox import counted

    said = [reply.completion for reply in talk.replies]
    whole: Completion = replace(
        said[-1],
        usage=sum((one.usage for one in said), Usage()),
        seconds=sum(one.seconds for one in said),
    )
    last = talk.replies[-1]
    replayed = all(reply.replayed for reply in talk.replies)
    use = counted([one["status"] for one in talk.trace if one["status"] != "limit"])
    return Looked(Reply(last.key, whole, replayed), tuple(talk.trace), use)
