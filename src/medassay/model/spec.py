"""models.json → `ModelSpec`, with errors that name the file, the entry and the field."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ConfigDict, TypeAdapter, ValidationError

from medassay.core.jsontext import parse_json
from medassay.core.model import FREE, ModelSpec, Price
from medassay.errors import InputError

_OURS = ("messages", "model", "prompt", "stream")
_LIKELY = ("google", "openai_compatible", "transformers")  # may give log-probabilities
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?")
_SECRET = re.compile(r"(sk|key|tok|hf|gsk|xai)[-_][A-Za-z0-9_\-]{12,}")
ModelSpec.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]  # read by TypeAdapter only
Price.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]
_SPEC = TypeAdapter(ModelSpec)


def load_models(path: Path | str) -> dict[str, ModelSpec]:
    """Return the enabled entries of a models file by id.

    Raises
    ------
    InputError
        Naming the file, the entry, the field and what was expected; also when a value looks like a
        secret, since secrets come from the environment only.
    """
    path = Path(path)
    try:
        document = parse_json(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: no such models file; `medassay init` writes one") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("models"), list):
        raise InputError(f'{path.name}: expected {{"schema_version": 1, "models": [ … ]}}')
    trusted = _trusted_hosts(document, path.name)
    specs: dict[str, ModelSpec] = {}
    for number, entry in enumerate(document["models"]):
        spec = _entry(entry, f"{path.name}: models[{number}]")
        if spec.id in specs:
            raise InputError(
                f"{path.name}: models[{number}]: field 'id': '{spec.id}' occurs twice"
            )
        specs[spec.id] = replace(spec, trusted_hosts=trusted)
    return {name: spec for name, spec in specs.items() if spec.enabled}


def named(
    specs: Mapping[str, ModelSpec], name: str, where: str, models_file: str | Path
) -> ModelSpec:
    """Return the entry of a name.

    Parameters
    ----------
    where : what named it, for the message, as "plan: model" or "--judge:"

    Raises
    ------
    InputError
        When there is no such enabled entry, with those that there are.
    """
    if name not in specs:
        known = ", ".join(sorted(specs)) or "none"
        raise InputError(
            f"{where} '{name}' is not an enabled entry of {models_file}; known are {known}"
        )
    return specs[name]


def remembered(entry: dict[str, Any]) -> ModelSpec:
    """Return the entry that a run's manifest remembers."""
    return _SPEC.validate_json(json.dumps(entry))


def _trusted_hosts(document: Mapping[str, Any], file: str) -> tuple[str, ...]:
    hosts = document.get("trusted_hosts", [])
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise InputError(f"{file}: 'trusted_hosts': expected a list of host names")
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise InputError(
                f"{file}: 'trusted_hosts': '{host}'; expected the name or address of a host, as it stands in an entry's 'url', "
                "without scheme and port"
            )
    return tuple(host.casefold().strip("[]") for host in hosts)


def _entry(entry: Any, where: str) -> ModelSpec:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected an object, found {type(entry).__name__}")
    where = f"{where} '{entry.get('id', '?')}'"
    priced = entry.get("price")
    if isinstance(priced, dict) and not {"input", "output"} & priced.keys():
        raise InputError(
            f"{where}: field 'price': names neither input nor output; expected both, per million tokens, or no price at all"
        )
    if "trusted_hosts" in entry:
        raise InputError(
            f"{where}: field 'trusted_hosts': stands beside 'models', for all entries of the file"
        )
    for key, value in entry.items():
        if isinstance(value, str) and _SECRET.search(value):
            raise InputError(
                f"{where}: field '{key}': looks like a secret; put it into an environment variable "
                "and name that variable in 'api_key_env'"
            )
    try:
        # Strict and as JSON: "3" is no number, true no integer, but a list is a tuple.
        spec = _SPEC.validate_json(json.dumps(entry), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where}: field '{field}': {first['msg']}") from None
    from medassay.model.catalog import PROVIDERS

    if spec.provider not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise InputError(f"{where}: field 'provider': '{spec.provider}'; known are {known}")
    if not re.fullmatch(r"\S(.*\S)?", spec.id) or "\x1f" in spec.id:
        raise InputError(f"{where}: field 'id': expected text without outer blanks")
    if spec.provider == "openai_compatible":
        _check_url(spec.url, where)
    if spec.logprobs and spec.provider not in _LIKELY:
        raise InputError(
            f"{where}: field 'logprobs': provider '{spec.provider}' gives none; "
            f"{', '.join(_LIKELY)} may"
        )
    for field, value, problem in _out_of_range(spec):
        raise InputError(f"{where}: field '{field}': {value!r}; {problem}")
    return spec


def _check_url(url: str, where: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise InputError(
            f"{where}: field 'url': '{url}'; expected http://host… or https://host…"
        )


def _out_of_range(spec: ModelSpec) -> Iterator[tuple[str, object, str]]:
    for field in ("concurrency", "max_tokens", "batch_size", "batch_tokens"):
        value = getattr(spec, field)
        if value is not None and value < 1:
            yield field, value, "at least 1"
    for field in ("timeout", "requests_per_minute", "tokens_per_minute", "size", "context"):
        value = getattr(spec, field)
        if value is not None and not 0 < value < 1e12:
            yield field, value, "expected a number above 0"
    yield from _sampling_out_of_range(spec)
    price = spec.price or FREE
    parts = (price.input, price.output, price.cached_input or 0.0, price.reasoning or 0.0)
    if not all(0 <= part < 1e9 for part in parts):
        yield "price", [*parts], "expected money per million tokens, from 0"
    if not 0 < price.batch <= 1:
        yield "price.batch", price.batch, "expected a factor above 0, at most 1"
    for name in (spec.token_parameter, *spec.extra_body):
        if name in _OURS:
            yield "extra_body", name, "set by medassay itself; leave it out"
    for header, variable in spec.headers_env.items():
        if not re.fullmatch(r"[A-Za-z0-9-]+", header) or not variable:
            yield "headers_env", header, "expected header names with environment variables"


def _sampling_out_of_range(spec: ModelSpec) -> Iterator[tuple[str, object, str]]:
    if not 0 <= spec.temperature <= 10:
        yield "temperature", spec.temperature, "expected 0 to 10"
    if not all(spec.stop):
        yield "stop", spec.stop, "expected texts that are not empty"
    if not 0 < spec.top_p <= 1:
        yield "top_p", spec.top_p, "expected a share above 0, at most 1"
