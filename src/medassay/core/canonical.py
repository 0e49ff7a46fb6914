"""Canonical JSON (RFC 8785) and the hashes built on it.

msgspec writes the canonical form for nearly every record we have; `_plain` finds the rest: floats
whose form differs from ECMAScript's are written by the package `rfc8785`, and so are whole values
with keys outside ASCII, ten times slower. The tests compare the two.
"""

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import msgspec
import rfc8785

from medassay.core.json import MOST_EXACT
from medassay.core.records.item_object import ItemObject
from medassay.errors import InputError

_VERBATIM = frozenset((str, bool, type(None)))  # with integers most of what records hold
_encode = msgspec.json.Encoder(order="deterministic").encode


class _NeedsSlowPath(Exception):
    pass


def _plain(value: Any) -> Any:
    """Return `value` with whole floats as integers; signal what C cannot write canonically."""
    kind = type(value)
    if kind is dict:
        members = {}
        for key, inner in value.items():
            if type(key) is not str or not key.isascii():
                raise _NeedsSlowPath
            if type(inner) in _VERBATIM or (
                type(inner) is int and -MOST_EXACT <= inner <= MOST_EXACT
            ):
                members[key] = inner
            else:
                members[key] = _plain(inner)
        return members
    if kind is list or kind is tuple:
        return [inner if type(inner) in _VERBATIM else _plain(inner) for inner in value]
    if kind in _VERBATIM:
        return value
    if kind is int and -MOST_EXACT <= value <= MOST_EXACT:
        return value
    if kind is float and math.isfinite(value):
        return _plain_float(value)
    raise _NeedsSlowPath


def _plain_float(value: float) -> Any:
    if value.is_integer():
        return int(value) if abs(value) <= MOST_EXACT else msgspec.Raw(rfc8785.dumps(value))
    if 1e-4 <= abs(value) < 1e16:  # where msgspec and ECMAScript agree
        return value
    return msgspec.Raw(rfc8785.dumps(value))


def canonical(value: Any) -> bytes:
    """Return `value` as RFC 8785 canonical JSON, UTF-8, without a final newline.

    Raises
    ------
    InputError
        If `value` holds NaN, an infinity, an integer beyond 2^53-1 or a lone surrogate.

    Examples
    --------
    >>> canonical({"b": 1.0, "a": "Größe"}).decode()
    '{"a":"Größe","b":1}'
    """
    try:
        return _encode(_plain(value))
    except (_NeedsSlowPath, UnicodeEncodeError):
        pass
    except RecursionError:
        raise InputError("cannot be written as canonical JSON: nested too deeply") from None
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InputError(
            f"cannot be written as canonical JSON: {error!s:.80}; "
            "use finite numbers, integers up to 2^53-1 (larger ones as text) and valid Unicode"
        ) from error


def record_line(record: msgspec.Struct) -> bytes:
    """Return a record as a line of a file: canonical JSON and the end of the line."""
    return canonical(msgspec.to_builtins(record)) + b"\n"


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def content_hash(records: Iterable[ItemObject]) -> str:
    """Return a bank's content hash: SHA-256 over its items, sorted by id, one canonical line each.

    Source: `bank_versions` in the documentation; golden value in `tests/golden`.
    """
    digest = hashlib.sha256()
    for record in sorted(records, key=lambda r: str(r["id"])):
        digest.update(canonical(record) + b"\n")
    return digest.hexdigest()


def short_hash(value: Any) -> str:
    """Return the first 12 digits of the SHA-256 of `value`'s canonical form."""
    return sha256_hex(canonical(value))[:12]
