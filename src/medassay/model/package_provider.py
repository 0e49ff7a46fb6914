"""Providers of installed packages: what they return is checked, for it may be anything."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from medassay.core.catch import caught
from medassay.core.entry_point import load
from medassay.core.json import storable
from medassay.core.records.completion import Completion
from medassay.core.records.model import Chat, ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import InputError


class PackageProvider:
    """A provider that passes on what is a completion, and nothing else."""

    def __init__(self, name: str, chat: Chat) -> None:
        self._name, self._chat = name, chat

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return the completion of the package's provider.

        Raises
        ------
        TypeError
            When it returns something else, or a completion with a field of another type.
        """
        completion = await self._chat.complete(prompt, sampling, repeat=repeat)
        where = f"provider '{self._name}' returned"
        if not isinstance(completion, Completion):
            kind = type(completion).__name__
            raise TypeError(f"{where} {kind}; expected a medassay.Completion")
        try:
            msgspec.convert(msgspec.to_builtins(completion), Completion)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"{where} a Completion with other types: {error}") from None
        return replace(completion, text=storable(completion.text))

    async def close(self) -> None:
        """Free what the package's provider holds; what it raises here changes no reply."""
        with caught():
            await self._chat.close()


def package_provider(spec: ModelSpec, secrets: Mapping[str, str]) -> PackageProvider:
    """Return the provider that an installed package adds.

    Raises
    ------
    InputError
        When no package adds it, or it cannot be made.
    """
    make = load("providers", spec.provider)
    with caught() as errors:
        return PackageProvider(spec.provider, make(spec, dict(secrets)))
    raise InputError(
        f"model '{spec.id}': provider '{spec.provider}' cannot be made"
        f" ({type(errors[0]).__name__}: {errors[0]})"
    )
