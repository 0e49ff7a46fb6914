"""Plans in TOML files: read strictly, so that a number is no text, and a key that nobody knows is an error."""

import json
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from medassay.errors import InputError

T = TypeVar("T")


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
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # a number of 5,000 digits is a ValueError
        raise InputError(f"{path}: not readable as TOML: {error}") from error


def wrong_type(adapter: TypeAdapter[Any], value: object) -> str:
    """Return what is wrong with the type of a value as a file would have it, behind the name of its field; "" if nothing is."""
    try:
        adapter.validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        return "".join(f".{part}" for part in first["loc"]) + f"': {first['msg']}"
    return ""


def typed(
    adapter: TypeAdapter[T], data: Mapping[str, Any], known: Collection[str], where: str
) -> T:
    """Return the record in a table, checked by its types.

    Parameters
    ----------
    known : the keys that there may be
    where : names the file in errors

    Raises
    ------
    InputError
        Naming the first key that is unknown or wrong.
    """
    for key in data:
        if key not in known:
            raise InputError(
                f"{where}: unknown key '{key}'; known are {', '.join(sorted(known))}"
            )
    try:
        # Strict and as JSON: true is no number, but a list is a tuple.
        return adapter.validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "plan"
        raise InputError(f"{where}: '{field}': {first['msg']}") from error
