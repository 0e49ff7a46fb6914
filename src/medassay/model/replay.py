"""Answers from the response store only: a prompt that was never asked is a permanent failure."""

from medassay.core.records.completion import Completion
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import Permanent


class Replay:
    """Reached only when the store has no answer, which the runner looks up before any provider."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        self._spec = spec

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Refuse: replay never asks anybody."""
        raise Permanent(
            f"{self._spec.id}: no stored response for item '{prompt.item_id}' to replay"
        )

    async def close(self) -> None:
        """Nothing to free."""
