"""Every engine: one line each."""

from collections.abc import Callable, Mapping
from pathlib import Path

from medassay.core.records.plan import EngineRules
from medassay.errors import InputError
from medassay.runner.engine.local import LocalEngine
from medassay.runner.engine.stage import Engine


def _ray(rules: EngineRules, responses: Path, secrets: Mapping[str, str]) -> Engine:
    from medassay.runner.engine.ray import RayEngine

    return RayEngine(rules, responses, secrets)


ENGINES: dict[str, Callable[[EngineRules, Path, Mapping[str, str]], Engine]] = {
    "local": lambda rules, responses, secrets: LocalEngine(),
    "ray": _ray,
}


def engine_of(name: str, rules: EngineRules, responses: Path, secrets: Mapping[str, str]) -> Engine:
    """Return an engine by name.

    Parameters
    ----------
    responses : the folder of stored replies
    secrets : those that the entries and tools at work name: workers get theirs by calls alone, no
        process inherits them
    """
    refuse_unknown(name)
    return ENGINES[name](rules, responses, secrets)


def refuse_unknown(name: str) -> None:
    """Refuse a name that is no engine's."""
    if name not in ENGINES:
        raise InputError(f"engine '{name}': expected {' or '.join(sorted(ENGINES))}")
