"""Entries of the models file → providers; each sees only the secrets that its entry names."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from medassay.core.entry_point import entry_points
from medassay.core.records.model import Chat, ModelSpec
from medassay.core.secret import secrets as known_secrets
from medassay.model.baseline import Baseline
from medassay.model.catalog import PROVIDERS
from medassay.model.package_provider import package_provider


def provide(
    spec: ModelSpec, secrets: Mapping[str, str], majority: Mapping[str, str] = MappingProxyType({})
) -> Chat:
    """Return the provider of one entry; `majority` is what the baseline of that name answers."""
    if spec.provider == "baseline":
        return Baseline(spec, majority=majority)
    if spec.provider in PROVIDERS:
        return PROVIDERS[spec.provider](spec, named_secrets(spec, secrets))
    return package_provider(spec, named_secrets(spec, secrets))


def named_secrets(spec: ModelSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that an entry names and that are set."""
    names = [spec.api_key_env, *spec.headers_env.values()]
    named = {name: secrets[name] for name in names if name and secrets.get(name)}
    known_secrets.learn(named.values())
    return named


def all_named_secrets(
    specs: Iterable[ModelSpec], secrets: Mapping[str, str], more: Iterable[str] = ()
) -> dict[str, str]:
    """Return the secrets that some entries name, and those of `more` names, as far as they are
    set.
    """
    named = {name: secrets[name] for name in more if secrets.get(name)}
    known_secrets.learn(named.values())
    for spec in specs:
        named |= named_secrets(spec, secrets)
    return named


def make_chats(
    specs: Mapping[str, ModelSpec],
    secrets: Mapping[str, str],
    majority: Mapping[str, str],
) -> dict[str, Chat]:
    """Return a provider for each model; none for rules, since nobody is behind them.

    Parameters
    ----------
    majority : what the baseline `majority` answers, by the letters of an item
    """
    return {
        name: provide(spec, secrets, majority)
        for name, spec in specs.items()
        if spec.provider in PROVIDERS or spec.provider in entry_points("providers")
    }


def knows_majority(specs: Mapping[str, ModelSpec]) -> bool:
    """Return whether a baseline among the models needs to know the whole bank."""
    return any(spec.is_baseline and spec.sent_name == "majority" for spec in specs.values())
