"""Reading JSON that may be broken or hostile: one error, whatever is wrong with it."""

import json
from typing import Any

from medassay.errors import InputError


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON; expected a finite number")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def parse_json(data: bytes, where: str) -> Any:
    """Return the JSON value in `data` (UTF-8, a byte order mark is allowed).

    Raises
    ------
    InputError
        Saying `where`: broken UTF-8, broken JSON, NaN, numbers or nesting beyond reason.
    """
    try:
        return _decode(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
