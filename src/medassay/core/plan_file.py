"""Plans in TOML files: read strictly, so that a number is no text, and a key that nobody knows is
an error.
"""

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from medassay.errors import InputError

T = TypeVar("T")
_NAMED = 5  # plans of a folder that stands in place of one


def read_toml(path: Path, absent: str) -> dict[str, Any]:
    """Return the table in a TOML file.

    Parameters
    ----------
    absent : what to do where there is no such file, for the message

    Raises
    ------
    InputError
        Naming the file.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such plan file; {absent}") from None
    except IsADirectoryError:
        names = [file.name for file in sorted(path.glob("*.toml"))[:_NAMED]]
        inside = f"; in it are {', '.join(names)}" if names else ", and holds none"
        raise InputError(f"{path}: is a folder; expected a plan, a TOML file{inside}") from None
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # a number of 5,000 digits is a ValueError
        raise InputError(f"{path}: not readable as TOML: {error}") from error


class RecordError(InputError):
    """Say what is wrong with a record as it is made.

    `problem` is that without the record's name.
    """

    def __init__(self, record: object, problem: str) -> None:
        super().__init__(f"{type(record).__name__}: {problem}")
        self.problem = problem


def check_types(record: Any) -> None:
    """Refuse a frozen record whose values have other types than a file may give them.

    Lists become tuples.

    Raises
    ------
    RecordError
        Naming the first field that is wrong, of records in it as well.
    """
    # A class is hashable.
    for name, hint in _hints_of(type(record)).items():  # type: ignore[arg-type]
        value = getattr(record, name)
        if isinstance(value, list):
            object.__setattr__(record, name, tuple(value))
        elif isinstance(value, Mapping) and get_origin(hint) not in (dict, Mapping):
            raise RecordError(record, f"'{name}' is a mapping; expected a record")
    if problem := _wrong_type(record):
        raise RecordError(record, problem)


@cache
def _hints_of(record: type) -> dict[str, Any]:
    """Return the type of each field of a record."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record)}


@cache
def _types_of(record: type) -> dict[str, TypeAdapter[Any]]:
    """Return the type of each field of a record, as a file is checked by it."""
    return {name: TypeAdapter(hint) for name, hint in _hints_of(record).items()}


def _wrong_type(record: object, place: str = "") -> str:
    """Return the first field of a record, or of a record in it, that has a wrong type; "" if none
    has.
    """
    # A class is hashable.
    for name, adapter in _types_of(type(record)).items():  # type: ignore[arg-type]
        value = getattr(record, name)
        if is_dataclass(value):
            problem = _wrong_type(value, f"{place}{name}.")
        else:
            problem = _wrong_value(adapter, value)
            problem = problem and f"'{place}{name}{problem}"
        if problem:
            return problem
    return ""


def _wrong_value(adapter: TypeAdapter[Any], value: object) -> str:
    """Return what is wrong with a value as a file would have it, behind the name of its field; ""
    if nothing is wrong.
    """
    try:
        adapter.validate_json(json.dumps(value, default=_as_in_a_file), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        return "".join(f".{part}" for part in first["loc"]) + f"': {first['msg']}"
    return ""


def _as_in_a_file(value: Any) -> Any:
    """Return what JSON cannot hold as a file would: a record as its table."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)


def typed(
    adapter: TypeAdapter[T], data: Mapping[str, Any], fields: Collection[str], where: str
) -> T:
    """Return the record in a table, checked by its types.

    Parameters
    ----------
    fields : the keys that there may be
    where : names the file in errors

    Raises
    ------
    InputError
        Naming the first key that is unknown or wrong.
    """
    for key in data:
        if key not in fields:
            raise InputError(f"{where}: unknown key '{key}'; known are {', '.join(sorted(fields))}")
    try:
        # Strict and as JSON: true is no number, but a list is a tuple.
        return adapter.validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "plan"
        says = first["msg"]
        if first["type"] == "unexpected_keyword_argument":
            says = "unknown key"
        raise InputError(f"{where}: '{field}': {says}") from error
