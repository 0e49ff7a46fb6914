"""A JSON Schema of one's own records: what models are asked for, and how its fields are compared.

Beside the keywords of JSON Schema a field may have rules under `x-medassay`: `compare` (`text`,
`exact`, `code`, `number`, `date`), `tolerance`, `unit` and `weight`; an array of objects `key`, the
field by which its entries find each other.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec

from medassay.core.canonical import canonical
from medassay.core.json import parse_json
from medassay.core.records.schema_in_place import DEEPEST, RULES, in_place
from medassay.errors import InputError

Compare = Literal["text", "exact", "code", "number", "date"]
Schema = Mapping[str, Any]
_LONGEST = 256 * 1024  # bytes
_MOST_FIELDS = 200
_LONGEST_PATTERN = 1.0  # seconds for one pattern on one text
_KEYS = ("compare", "tolerance", "unit", "weight")
_KEYS_OF_LISTS = ("key",)
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


class FieldRule(msgspec.Struct, frozen=True, kw_only=True):
    """How a field is compared.

    Attributes
    ----------
    compare : `text` by likeness, all others right or wrong
    tolerance : of numbers, in the unit of the expected one; with `relative` a share of it
    unit : of numbers that name none
    weight : of each of its values in the score; 0 leaves them out
    """

    compare: Compare = "text"
    tolerance: float = 0.0
    relative: bool = False
    unit: str = ""
    weight: float = 1.0


class SchemaField(msgspec.Struct, frozen=True, kw_only=True):
    """A field that holds a value: its path without indices, what it is, and its rule."""

    path: str
    about: str
    rule: FieldRule | None


class DocumentSchema(msgspec.Struct, frozen=True):
    """A schema as canonical JSON; read by `read_schema`, so that it is one that is understood."""

    text: bytes

    @property
    def root(self) -> Schema:
        """Return the schema with its references put in place."""
        return _root(self.text)

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """Return the fields that hold values, in the order of the schema."""
        return _fields(self.text)

    @property
    def has_rules(self) -> bool:
        """Return whether any field says how it is compared."""
        return RULES.encode() in self.text

    @property
    def reply_schema(self) -> bytes:
        """Return the schema that a reply is held to, as canonical JSON: without our rules."""
        return canonical(_without_rules(self.root))

    @property
    def skeleton(self) -> str:
        """Return the form of a record, as a prompt shows it."""
        return json.dumps(_skeleton(self.root), ensure_ascii=False, indent=1)

    def problem(self, record: Any, *, known_fields: bool = False) -> str | None:
        """Return the first thing that does not fit the schema, with its place; None if all fits.

        Parameters
        ----------
        known_fields : also tell keys that it does not name and does not allow: of references, which
            would be compared by no rule
        """
        error = next(iter(_validator(self.text).iter_errors(record)), None)
        if error is None:
            return _strange(record, self.root, ()) if known_fields else None
        place = ".".join(map(str, error.absolute_path)) or "the record"
        return f"{place}: {error.message}"[:300]


def read_schema(data: bytes, where: str) -> DocumentSchema:
    """Return the schema in a file.

    Raises
    ------
    InputError
        Naming what is no JSON Schema, or more than is understood here.
    """
    if len(data) > _LONGEST:
        raise InputError(f"{where}: {len(data)} bytes; a schema has at most {_LONGEST}")
    try:
        document = parse_json(data, where)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None
    if not isinstance(document, dict):
        raise InputError(f"{where}: expected a JSON object, the schema of a record")
    try:
        root = in_place(document)
        _check_standard(root)
        if root.get("type") != "object" or not root.get("properties"):
            raise InputError('expected {"type": "object", "properties": {…}}')
        schema = DocumentSchema(canonical(document))
        fields = schema.fields
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if len(fields) > _MOST_FIELDS:
        raise InputError(f"{where}: {len(fields)} fields with values; at most {_MOST_FIELDS}")
    if not any(part.rule is None or part.rule.weight for part in fields):
        raise InputError(f"{where}: every field has the weight 0; nothing would be scored")
    return schema


def _check_standard(root: Schema) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(_without_rules(root))
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "the schema"
        message = error.message
        if place.endswith("type"):
            message = f"{error.instance!r:.40}; expected {', '.join(_TYPES)}, or a list of these"
        raise InputError(f"{place}: {message}"[:300]) from None


@lru_cache(maxsize=8)
def _validator(text: bytes) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend
    from referencing import Registry

    # References are in their places; an empty registry fetches none that was overlooked.
    kind = extend(Draft202012Validator, {"pattern": _pattern})
    return kind(_without_rules(_root(text)), registry=Registry())


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Exception]:
    """Yield an error where a text does not fit a pattern; Python's own cannot be stopped."""
    import regex
    from jsonschema import ValidationError

    if not isinstance(value, str):
        return
    try:
        if regex.search(pattern, value, timeout=_LONGEST_PATTERN) is None:
            yield ValidationError(f"{value!r:.60} does not match {pattern!r}")
    except TimeoutError:
        yield ValidationError(f"pattern {pattern!r} takes too long on {value!r:.40}")
    except regex.error as error:
        yield ValidationError(f"pattern {pattern!r}: {error}")


def _strange(value: Any, node: Schema, path: tuple[str, ...]) -> str | None:
    """Return the first key of a record that the schema does not name and does not allow either."""
    node = of_value(node)
    if isinstance(value, list) and isinstance(node.get("items"), dict):
        return next(filter(None, (_strange(v, node["items"], path) for v in value)), None)
    properties = node.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return None
    for key, part in value.items():
        if key in properties:
            if (problem := _strange(part, properties[key], (*path, key))) is not None:
                return problem
        elif node.get("additionalProperties") in (None, False):
            place = ".".join((*path, key))
            return (
                f"{place}: is no field of the schema, which has {', '.join(properties)} there; add"
                ' it, or allow others with "additionalProperties": true'
            )
    return None


@lru_cache(maxsize=8)
def _root(text: bytes) -> Schema:
    root: Schema = _with_keys(in_place(json.loads(text)))
    return root


def _with_keys(node: Schema) -> dict[str, Any]:
    """Return a schema in which keys of entries are compared as the entries were found: as codes,
    unless they have a rule.
    """
    result = dict(node)
    if isinstance(node.get("properties"), dict):
        result["properties"] = {name: _with_keys(part) for name, part in node["properties"].items()}
    if isinstance(node.get("anyOf"), list):
        result["anyOf"] = [_with_keys(part) for part in node["anyOf"]]
    if isinstance(node.get("items"), dict):
        items = _with_keys(node["items"])
        properties, key = items.get("properties", {}), list_key(node)
        if key in properties and RULES not in properties[key]:
            named = {**properties, key: {**properties[key], RULES: {"compare": "code"}}}
            items = {**items, "properties": named}
        result["items"] = items
    return result


@lru_cache(maxsize=8)
def _fields(text: bytes) -> tuple[SchemaField, ...]:
    return tuple(_leaves(_root(text), ()))


def _leaves(node: Schema, path: tuple[str, ...]) -> Iterator[SchemaField]:
    name = ".".join(path) or "the schema"
    if len(path) > DEEPEST:
        raise InputError(f"{name}: nested more than {DEEPEST} deep")
    node = of_value(node)
    if isinstance(node.get("properties"), dict):
        if RULES in node:
            raise InputError(f"{name}: {RULES}: is for fields with a value; this one has fields")
        for key, part in node["properties"].items():
            yield from _leaves(part, (*path, key))
        return
    if isinstance(node.get("items"), dict):
        _check_key(node, name)
        yield from _leaves(node["items"], path)
        return
    about = str(node.get("description", ""))
    if isinstance(node.get("enum"), list):
        about = (about + "; " if about else "") + "one of " + ", ".join(map(str, node["enum"]))
    yield SchemaField(path=".".join(path), about=about, rule=rule_of(node, path))


def of_value(node: Schema) -> Schema:
    """Return the schema of a value that may also be null, without that."""
    options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return {**{key: value for key, value in node.items() if key != "anyOf"}, **options[0]}
    return node


def rule_of(node: Schema, path: tuple[str, ...]) -> FieldRule | None:
    """Return the rule of a field, None where it has none.

    Raises
    ------
    InputError
        Naming what of it is unknown or wrong.
    """
    rules = node.get(RULES)
    if rules is None:
        return None
    place = f"{'.'.join(path) or 'the schema'}: {RULES}"
    if not isinstance(rules, dict) or not rules.keys() <= {*_KEYS}:
        strange = [key for key in rules if key not in _KEYS] if isinstance(rules, dict) else []
        unknown = f"'{strange[0]}' is unknown; " if strange else ""
        raise InputError(f"{place}: {unknown}expected an object with some of {', '.join(_KEYS)}")
    compare = rules.get("compare", "text")
    if compare not in get_args(Compare):
        raise InputError(f"{place}: compare '{compare}'; expected {', '.join(get_args(Compare))}")
    tolerance, relative = rules.get("tolerance", 0), False
    if isinstance(tolerance, str) and tolerance.endswith("%"):
        relative = True
        try:
            tolerance = float(tolerance[:-1]) / 100
        except ValueError:
            tolerance = -1
    weight = rules.get("weight", 1)
    for name, value in (("tolerance", tolerance), ("weight", weight)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            also = ', or a share as "5%"' if name == "tolerance" else ""
            raise InputError(f"{place}: {name} {rules[name]!r:.40}; expected a number from 0{also}")
    if tolerance and compare != "number":
        raise InputError(f'{place}: a tolerance is for numbers; add "compare": "number"')
    return FieldRule(
        compare=compare,
        tolerance=float(tolerance),
        relative=relative,
        unit=str(rules.get("unit", "")),
        weight=float(weight),
    )


def _check_key(node: Schema, name: str) -> None:
    rules = node.get(RULES, {})
    properties = of_value(node["items"]).get("properties", {})
    if not isinstance(rules, dict) or not rules.keys() <= {*_KEYS_OF_LISTS}:
        raise InputError(f"{name}: {RULES}: of a list expected key alone; rules are for its values")
    key = rules.get("key", "")
    if rules and (not isinstance(key, str) or key not in properties):
        raise InputError(
            f"{name}: {RULES}: key {key!r:.40} is no field of its entries, which have"
            f" {', '.join(properties) or 'none'}"
        )


def list_key(node: Schema) -> str:
    """Return the field by which the entries of an array find each other, "" where none is named."""
    rules = node.get(RULES)
    return str(rules.get("key", "")) if isinstance(rules, dict) else ""


def _without_rules(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_rules(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_rules(value) for key, value in node.items() if key != RULES}


def _skeleton(node: Schema) -> Any:
    node = of_value(node)
    if isinstance(node.get("properties"), dict):
        return {key: _skeleton(part) for key, part in node["properties"].items()}
    if isinstance(node.get("items"), dict):
        return [_skeleton(node["items"])]
    types = node.get("type")
    if types == "boolean":
        return True
    return 0 if types in ("number", "integer") else "…"
