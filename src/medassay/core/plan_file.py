"""Plans in TOML files: read strictly, so that a number is no text, and a key that nobody knows is
an error.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from medassay.core.record_check import first_wrong, hints_of, read_record
from medassay.core.toml import load_toml
from medassay.errors import InputError

T = TypeVar("T")
_NAMED = 5  # plans of a folder that stands in place of one


def read_toml(path: Path, absent: str, *, what: str = "plan") -> dict[str, Any]:
    """Return the table in a TOML file.

    Parameters
    ----------
    absent : what to do where there is no such file, for the message
    what : what the file is

    Raises
    ------
    InputError
        Naming the file.
    """
    try:
        return load_toml(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what} file; {absent}") from None
    except IsADirectoryError:
        names = [file.name for file in sorted(path.glob("*.toml"))[:_NAMED]]
        inside = f"; in it are {', '.join(names)}" if names else ", and holds none"
        raise InputError(f"{path}: is a folder; expected a {what}, a TOML file{inside}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable as TOML: {error}") from error


def is_suite(path: Path) -> bool:
    """Return whether a TOML file is the plan of a suite."""
    try:
        keys = load_toml(path).keys()
        return bool(keys & {"suite", "benchmark"})
    except (OSError, ValueError):
        return False  # whoever reads it as a plan says what is wrong with it


def typed(record: type[T], data: Mapping[str, Any], where: str) -> T:
    """Return the record in a table, checked by its types.

    Parameters
    ----------
    where : names the file in errors

    Raises
    ------
    InputError
        Naming the first key that is unknown or wrong.
    """
    known = hints_of(record)  # type: ignore[arg-type]
    for key in data:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'; known are {', '.join(sorted(known))}")
    try:
        return read_record(record, json.dumps(data, default=str))
    except ValidationError as error:
        place, problem = first_wrong(error, "plan")
        raise InputError(f"{where}: '{place}': {problem}") from error
