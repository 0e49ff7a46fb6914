"""Texts in TOML, read so that whatever is wrong with one is a ValueError."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medassay.core.small_file import utf16_problem

_LEAST, _MOST = -(2**63), 2**64 - 1


def load_toml(path: Path) -> dict[str, Any]:
    """Return the table in a TOML file (UTF-8, a byte order mark is allowed).

    Raises
    ------
    OSError
        When it cannot be read.
    ValueError
        As `parse_toml`, or saying that it is no UTF-8.
    """
    data = path.read_bytes()
    if problem := utf16_problem(data):
        raise ValueError(f"it {problem}")
    return parse_toml(data.decode("utf-8-sig"))


def parse_toml(text: str) -> dict[str, Any]:
    r"""Return the table in a TOML text.

    Raises
    ------
    ValueError
        Saying what is wrong; also with an integer of more than 64 bits, which the definition of
        TOML lets readers refuse, and with tables in tables without end.

    Examples
    --------
    >>> parse_toml("[budget]\ncalls = 1" + 20 * "0")
    Traceback (most recent call last):
    ...
    ValueError: 'budget.calls' is an integer of more than 64 bits
    """
    try:
        table = tomllib.loads(text)
        place = next(_too_large(table, ()), None)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of Python, about more digits than it converts
        raise ValueError("an integer of more than 64 bits") from None
    if place is not None:
        raise ValueError(f"'{place}' is an integer of more than 64 bits")
    return table


def _too_large(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the places of integers that are too large."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _too_large(inner, (*keys, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _too_large(inner, keys)
    elif isinstance(value, int) and not _LEAST <= value <= _MOST:
        yield ".".join(keys)
