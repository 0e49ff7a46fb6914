"""models.json → `ModelSpec`, with errors that name the file, the entry and the field."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from medassay.core.model import ModelSpec
from medassay.errors import InputError

_SECRET = re.compile(r"(sk|key|tok|hf|gsk|xai)[-_][A-Za-z0-9_\-]{12,}")
ModelSpec.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]  # read by TypeAdapter only
_SPEC = TypeAdapter(ModelSpec)


def load_models(path: Path) -> dict[str, ModelSpec]:
    """Return the enabled entries of a models file by id.

    Raises
    ------
    InputError
        Naming the file, the entry, the field and what was expected; also when a value looks like a
        secret, since secrets come from the environment only.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such models file; `medassay init` writes one") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path.name}: not valid JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("models"), list):
        raise InputError(f'{path.name}: expected {{"schema_version": 1, "models": [ … ]}}')
    specs: dict[str, ModelSpec] = {}
    for number, entry in enumerate(document["models"]):
        spec = _entry(entry, f"{path.name}: models[{number}]")
        if spec.id in specs:
            raise InputError(
                f"{path.name}: models[{number}]: field 'id': '{spec.id}' occurs twice"
            )
        specs[spec.id] = spec
    return {name: spec for name, spec in specs.items() if spec.enabled}


def _entry(entry: Any, where: str) -> ModelSpec:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected an object, found {type(entry).__name__}")
    where = f"{where} '{entry.get('id', '?')}'"
    for key, value in entry.items():
        if isinstance(value, str) and _SECRET.search(value):
            raise InputError(
                f"{where}: field '{key}': looks like a secret; put it into an environment variable "
                "and name that variable in 'api_key_env'"
            )
    try:
        spec = _SPEC.validate_python(entry)
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
    if spec.provider == "openai_compatible" and not spec.url.startswith(
        ("http://", "https://")
    ):
        raise InputError(f"{where}: field 'url': '{spec.url}'; expected http://… or https://…")
    for field, least in (
        ("concurrency", 1),
        ("max_tokens", 1),
        ("batch_size", 1),
        ("timeout", 0.001),
    ):
        if getattr(spec, field) < least:
            raise InputError(
                f"{where}: field '{field}': {getattr(spec, field)}; at least {least}"
            )
    return spec
