"""Reference rows that no model should lose to: `random`, `majority`, `longest`. Never ranked.

They answer items with options; to any other item they say nothing, which counts as unparsed.
"""

import random
from collections.abc import Mapping
from types import MappingProxyType

from medassay.core.records.completion import Completion
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import InputError

BASELINES = ("random", "majority", "longest")


class Baseline:
    """One baseline; `majority` maps a set of letters to the key that is most common among items
    with it.
    """

    def __init__(
        self,
        spec: ModelSpec,
        secrets: Mapping[str, str] = MappingProxyType({}),
        *,
        majority: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if spec.sent_name not in BASELINES:
            raise InputError(
                f"models file: '{spec.id}': field 'model': '{spec.sent_name}'; "
                f"expected one of {', '.join(BASELINES)}"
            )
        self._kind = spec.sent_name
        self._majority = majority

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return a letter, or nothing for an item without options."""
        if not prompt.options:
            return Completion(text="")
        if self._kind == "majority":
            return Completion(text=self._majority.get(prompt.letters, prompt.letters[0]))
        if self._kind == "longest":
            longest = max(range(len(prompt.options)), key=lambda i: len(prompt.options[i]))
            return Completion(text=prompt.letters[longest])
        rng = random.Random(f"{sampling.seed}\x1f{repeat}\x1f{prompt.item_id}")
        return Completion(text=rng.choice(prompt.letters))

    async def close(self) -> None:
        """Nothing to free."""
