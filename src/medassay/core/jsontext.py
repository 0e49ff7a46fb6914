"""Reading JSON that may be broken or hostile: one error, whatever is wrong with it."""

from typing import Any

import msgspec

from medassay.errors import InputError

_BOM = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode


def parse_json(data: bytes, where: str) -> Any:
    """Return the JSON value in `data` (UTF-8, a byte order mark is allowed).

    Raises
    ------
    InputError
        Saying `where`: broken UTF-8, broken JSON, NaN, numbers or nesting beyond reason.
    """
    try:
        return _decode(data.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
