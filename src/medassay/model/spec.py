"""models.json → `ModelSpec`, with errors that name the file, the entry and the field."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pydantic import ValidationError

from medassay.core.json import parse_json, refuse_twins, unchecked
from medassay.core.record_check import RecordError, first_wrong, read_record
from medassay.core.records.model import FROM_A_RUN, ModelSpec, Price, without_secrets
from medassay.core.wording import as_seen
from medassay.errors import InputError

_HOST = re.compile(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?")
ModelsSource = Path | Sequence[ModelSpec]  # a models file, or its entries


def load_models(source: ModelsSource | str) -> dict[str, ModelSpec]:
    """Return the enabled entries of a models file by id; or those of the entries themselves.

    Examples
    --------
    >>> from medassay import ModelSpec, load_models
    >>> list(load_models([ModelSpec(id=n, provider="fake", enabled=n != "b") for n in "abc"]))
    ['a', 'c']

    Raises
    ------
    InputError
        Naming the file, the entry, the field and what was expected; also when a value looks like a
        secret, since secrets come from the environment only.
    """
    return {name: spec for name, spec in load_entries(source).items() if spec.enabled}


def load_entries(source: ModelsSource | str) -> dict[str, ModelSpec]:
    """Return all entries of a models file by id, also those that are not enabled.

    Raises
    ------
    InputError
        As `load_models`.
    """
    path = Path(source) if isinstance(source, str) else source
    specs = _entries(path) if isinstance(path, Path) else list(path)
    by_id: dict[str, ModelSpec] = {}
    looks: dict[str, str] = {}
    for number, spec in enumerate(specs):
        if spec.id in by_id:
            raise InputError(
                f"{source_name(path)}: models[{number}]: field 'id': '{spec.id}' occurs twice"
            )
        if looks.setdefault(as_seen(spec.id), spec.id) != spec.id:
            raise InputError(
                f"{source_name(path)}: models[{number}]: field 'id': {spec.id!r:.60} looks like an"
                " earlier one and is written with other characters"
            )
        by_id[spec.id] = spec
    return by_id


def source_name(source: ModelsSource) -> str:
    """Return what messages call the place that entries come from."""
    return source.name if isinstance(source, Path) else "models"


class _ModelsFile(msgspec.Struct, frozen=True):
    """What a models file holds; nothing of it is checked yet."""

    schema_version: Any = 1
    models: Any = None
    trusted_hosts: Any = []


def _entries(path: Path) -> list[ModelSpec]:
    try:
        data = path.read_bytes()
        document = parse_json(data, str(path))
        refuse_twins(data, document, str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: no such models file; `medassay init` writes one") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    file = unchecked(document if isinstance(document, dict) else {}, _ModelsFile)
    if not isinstance(file.models, list):
        raise InputError(f'{path.name}: expected {{"schema_version": 1, "models": [ … ]}}')
    known = _ModelsFile.__struct_fields__
    if unknown := sorted(k for k in document if k not in known and not k.startswith("$")):
        raise InputError(
            f"{path.name}: '{unknown[0]:.60}' is unknown beside the models; known are"
            f" {', '.join(known)}"
        )
    if file.schema_version != 1 or isinstance(file.schema_version, bool):
        raise InputError(f"{path.name}: schema_version {file.schema_version!r:.40}; expected 1")
    trusted = _trusted_hosts(file.trusted_hosts, path.name)
    return [
        _entry(entry, f"{path.name}: models[{number}]", trusted)
        for number, entry in enumerate(file.models)
    ]


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
        names = ", ".join(sorted(specs)) or "none"
        raise InputError(
            f"{where} '{name}' is not an enabled entry of {models_file}; known are {names}"
        )
    return specs[name]


def remembered(entry: dict[str, Any]) -> ModelSpec:
    """Return the entry that a run's manifest remembers.

    Raises
    ------
    InputError
        Naming the entry and its first field that is wrong.
    """
    token = FROM_A_RUN.set(True)
    where = f"manifest.json: entry '{entry.get('id', '?')!s:.60}'"
    try:
        return read_record(ModelSpec, json.dumps(entry), strict=False)
    except RecordError as error:
        raise InputError(f"{where}: {error.problem}") from None
    except ValidationError as error:
        field, problem = first_wrong(error, "entry")
        raise InputError(f"{where}: field '{field}': {problem}") from None
    finally:
        FROM_A_RUN.reset(token)


def remembered_price(entry: dict[str, Any]) -> Price | None:
    """Return what tokens of a remembered model cost; None where the run does not say, or says what
    no entry may: it was made elsewhere.
    """
    try:
        return remembered(entry).known_price
    except InputError:
        return None


def _trusted_hosts(hosts: Any, file: str) -> tuple[str, ...]:
    if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
        raise InputError(f"{file}: 'trusted_hosts': expected a list of host names")
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise InputError(
                f"{file}: 'trusted_hosts': '{host}'; expected the name or address of a host, as it"
                " stands in an entry's 'url', without scheme and port"
            )
    return tuple(host.casefold().strip("[]") for host in hosts)


def _entry(entry: Any, where: str, trusted: Sequence[str]) -> ModelSpec:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected an object, found {type(entry).__name__}")
    where = f"{where} '{entry.get('id', '?')}'"
    priced = entry.get("price")
    if isinstance(priced, dict) and not {"input", "output"} & priced.keys():
        raise InputError(
            f"{where}: field 'price': names neither input nor output; expected both, per million"
            " tokens, or no price at all"
        )
    if "trusted_hosts" in entry:
        raise InputError(
            f"{where}: field 'trusted_hosts': stands beside 'models', for all entries of the file"
        )
    try:
        return read_record(ModelSpec, json.dumps({**entry, "trusted_hosts": trusted}))
    except RecordError as error:
        raise InputError(without_secrets(f"{where}: {error.problem}")) from None
    except ValidationError as error:
        field, problem = first_wrong(error, "entry")
        raise InputError(without_secrets(f"{where}: field '{field}': {problem}")) from None
