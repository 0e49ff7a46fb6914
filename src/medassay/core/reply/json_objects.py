"""The JSON objects of a judge's reply, repaired where none can be read as it stands.

Why this is not `core.reply.json_value` with an option: docs/decisions/0026.
"""

import json
from typing import Any

import msgspec

from medassay.core.reply.thoughts import strip_thoughts

OBJECTS_REVISION = 1

# Characters; repairing costs quadratic time in quotes, and few verdicts are longer.
_LONGEST_REPAIR = 10_000
_MOST_BRACKETS = 400  # that open; deep nesting costs the repair quadratic time
_MOST_OBJECTS = 200
_MOST_TRIES = 200  # at opening braces; keeps hostile nesting from costing quadratic time
_decode = json.JSONDecoder().raw_decode


class JsonObject(msgspec.Struct, frozen=True):
    """One JSON object read from a reply; `repaired` says that it was not valid as written."""

    value: dict[str, Any]
    repaired: bool = False


def find_objects(text: str, *keys: str) -> list[JsonObject]:
    r"""Return the distinct JSON objects of a reply that have one of the keys.

    In the order of their text.

    Of equal objects the last place counts. Thoughts are left out; fences and prose around an object
    do not matter. Only where no object can be read as it stands is the text from the first brace
    repaired (missing quotes, commas, ends).

    Examples
    --------
    >>> find_objects('Sure:\n```json\n{"facts": []}\n```', "facts")
    [JsonObject(value={'facts': []}, repaired=False)]
    >>> find_objects("{'facts': [],", "facts")
    [JsonObject(value={'facts': []}, repaired=True)]
    """
    text = strip_thoughts(text)[0]
    objects: dict[str, JsonObject] = {}
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MOST_TRIES and len(objects) < _MOST_OBJECTS:
        try:
            value, after = _decode(text, position)
            chosen = _with_key(value, keys)
            same = "" if chosen is None else json.dumps(chosen, sort_keys=True)
        except (ValueError, RecursionError):
            position, tries = position + 1, tries + 1
        else:
            position = after
            if chosen is not None:
                objects.pop(same, None)
                objects[same] = JsonObject(chosen)
        position = text.find("{", position)
    return list(objects.values()) or _repaired(text, keys)


def _with_key(value: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the object, or the one that it wraps (`{"result": {…}}`), that has one of the keys."""
    if any(key in value for key in keys):
        return value
    inner = (v for v in value.values() if isinstance(v, dict) and any(key in v for key in keys))
    return next(inner, None)


def _repaired(text: str, keys: tuple[str, ...]) -> list[JsonObject]:
    at = text.find("{")
    brackets = text.count("{") + text.count("[")
    if at < 0 or len(text) > _LONGEST_REPAIR or brackets > _MOST_BRACKETS:
        return []
    import json_repair

    try:
        value = json_repair.loads(text[at:])
    except (ValueError, RecursionError):
        return []
    several = value if isinstance(value, list) else [value]
    return [
        JsonObject(v, repaired=True)
        for v in several
        if isinstance(v, dict) and any(key in v for key in keys)
    ][:1]
