"""A JSON Schema with its references put in place, as far as it is understood.

Schemas come from strangers, and are read before anybody agreed to anything: nothing is fetched, a
misspelt keyword is refused rather than ignored, and a small file cannot grow without bound.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from medassay.errors import InputError

RULES = "x-medassay"
DEEPEST = 12
_MOST_NODES = 5_000
_OF_NAMES = ("properties",)  # keywords that hold a schema for each name
_OF_ONE = ("items", "contains", "propertyNames", "additionalProperties")
_OF_SEVERAL = ("anyOf",)
_DROPPED = ("$defs", "definitions", "$id", "$anchor", "$schema", "$comment")
_VALUES = frozenset(
    (
        *("const", "contentEncoding", "contentMediaType", "default", "deprecated", "description"),
        *("enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems"),
        *("minLength", "minProperties", "minimum", "multipleOf", "pattern", "readOnly"),
        *("required", "title", "type", "uniqueItems", "writeOnly"),
    )
)
# Would need more than one form of a record, or fetch something.
_REFUSED = (
    *("$dynamicRef", "$dynamicAnchor", "$vocabulary", "patternProperties", "if", "then", "else"),
    *("not", "oneOf", "allOf", "prefixItems", "dependentRequired", "dependentSchemas"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_IN_NAMES = frozenset('.[]"\\')  # would be taken for steps of a path


def in_place(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its references put in place.

    Raises
    ------
    InputError
        Naming the place of what is not understood.
    """
    return _SchemaReader(document).node(document, (), ())


class _SchemaReader:
    """Reads one document; `_nodes` counts what it became, so that it cannot explode."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._nodes = 0

    def node(
        self, node: Any, place: tuple[str, ...], references: tuple[str, ...]
    ) -> dict[str, Any]:
        where = "/".join(place) or "the schema"
        self._nodes += 1
        if self._nodes > _MOST_NODES or len(place) > 4 * DEEPEST:
            raise InputError(f"{where}: too large or too deep, with references in their places")
        if node is True:
            return {}
        if not isinstance(node, dict):
            raise InputError(f"{where}: {node!r:.40}; expected a schema, an object")
        if "$ref" in node:
            others = {key: value for key, value in node.items() if key != "$ref"}
            reference = self._allowed(node["$ref"], where, references)
            target = self._pointed(reference, where)
            return self.node({**target, **others}, place, (*references, reference))
        return dict(self._keywords(node, place, references))

    def _keywords(
        self, node: Mapping[str, Any], place: tuple[str, ...], references: tuple[str, ...]
    ) -> Iterator[tuple[str, Any]]:
        where = "/".join(place) or "the schema"
        for key, value in node.items():
            if key in _REFUSED:
                raise InputError(f"{where}: '{key}' is not understood here")
            if key in _OF_NAMES:
                yield key, self._named(value, (*place, key), references)
            elif key == "additionalProperties" and isinstance(value, bool):
                yield key, value
            elif key in _OF_ONE:
                yield key, self.node(value, (*place, key), references)
            elif key in _OF_SEVERAL:
                parts = value if isinstance(value, list) else []
                yield key, [self.node(part, (*place, key), references) for part in parts]
            elif key in _VALUES or key == RULES:
                yield key, value
            elif key not in _DROPPED and (key[:2] != "x-" or key[:5] == RULES[:5]):
                raise InputError(
                    f"{where}: '{key}' is no keyword of JSON Schema, nor {RULES}; what is your own"
                    " begins with x-"
                )

    def _named(
        self, parts: Any, place: tuple[str, ...], references: tuple[str, ...]
    ) -> dict[str, dict[str, Any]]:
        where = "/".join(place)
        if not isinstance(parts, dict):
            raise InputError(f"{where}: expected an object with a schema for each name")
        for name in parts:
            if not name or _IN_NAMES & set(name) or name[0] == "#":
                raise InputError(
                    f"{where}: a field is called '{name}'; expected a name without dots, brackets,"
                    " quotes, and without # before it"
                )
        return {name: self.node(part, (*place, name), references) for name, part in parts.items()}

    def _allowed(self, reference: Any, where: str, references: tuple[str, ...]) -> str:
        is_here = isinstance(reference, str) and reference.startswith("#")
        if not is_here or reference in references or len(references) > DEEPEST:
            raise InputError(
                f"{where}: $ref '{reference}'; expected one within the file, and none that comes"
                " back to itself"
            )
        return str(reference)

    def _pointed(self, reference: str, where: str) -> Mapping[str, Any]:
        node: Any = self._document
        for part in filter(None, reference.lstrip("#").split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        if not isinstance(node, dict):
            raise InputError(f"{where}: $ref '{reference}' points at nothing")
        return node
