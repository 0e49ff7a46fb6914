"""Texts in TOML, read so that whatever is wrong with one is a ValueError."""

import tomllib
from collections.abc import Iterator
from typing import Any

_LEAST, _MOST = -(2**63), 2**64 - 1


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
