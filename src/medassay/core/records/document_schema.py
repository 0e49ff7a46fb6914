"""A JSON Schema of one's own records: what models are asked for, and how its fields are compared.

Beside the keywords of JSON Schema a field may have rules under `x-medassay`: `compare` (`text`,
`exact`, `code`, `number`, `date`), `tolerance`, `unit` and `weight`; an array of objects `key`, the
field by which its entries find each other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec

from medassay.core.canonical import canonical
from medassay.core.json import parse_json, unchecked
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


class _RuleValues(msgspec.Struct, frozen=True):
    """What stands under the rules of a field; nothing of it is checked yet."""

    compare: Any = "text"
    tolerance: Any = 0
    unit: Any = ""
    weight: Any = 1


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


class SchemaNode(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a record as its schema describes it, but for whether it may be null.

    Attributes
    ----------
    fields : of an object; None where the schema names none
    entry : what each entry of an array is; None where the schema does not say
    key : field by which entries of two arrays find each other, "" where none is named
    other_fields : whether an object may have fields that are not named
    rule : how a value that is neither object nor array is compared
    """

    fields: "dict[str, SchemaNode] | None" = None
    entry: "SchemaNode | None" = None
    key: str = ""
    other_fields: bool = False
    about: str = ""
    types: str | Sequence[str] = ()
    rule: FieldRule | None = None


UNKNOWN = SchemaNode()  # of a field that the schema does not name


class DocumentSchema(msgspec.Struct, frozen=True):
    """A schema as canonical JSON; read by `read_schema`, so that it is one that is understood."""

    text: bytes

    @property
    def root(self) -> SchemaNode:
        """Return what a record is."""
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
        return canonical(_without_rules(_document(self.text)))

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
    document = parse_json(data, where)
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
    return kind(_without_rules(_document(text)), registry=Registry())


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


def _strange(value: Any, node: SchemaNode, path: tuple[str, ...]) -> str | None:
    """Return the first key of a record that the schema does not name and does not allow either."""
    if isinstance(value, list) and node.entry is not None:
        return next(filter(None, (_strange(v, node.entry, path) for v in value)), None)
    if not isinstance(value, dict) or node.fields is None:
        return None
    for key, part in value.items():
        if key in node.fields:
            if (problem := _strange(part, node.fields[key], (*path, key))) is not None:
                return problem
        elif not node.other_fields:
            place = ".".join((*path, key))
            return (
                f"{place}: is no field of the schema, which has {', '.join(node.fields)} there; add"
                ' it, or allow others with "additionalProperties": true'
            )
    return None


@lru_cache(maxsize=8)
def _document(text: bytes) -> Schema:
    return in_place(json.loads(text))


@lru_cache(maxsize=8)
def _root(text: bytes) -> SchemaNode:
    return _node(_with_keys(_document(text)), ())


def _with_keys(schema: Schema) -> dict[str, Any]:
    """Return a schema in which keys of entries are compared as the entries were found: as codes,
    unless they have a rule.
    """
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {
            name: _with_keys(part) for name, part in schema["properties"].items()
        }
    if "anyOf" in schema:
        result["anyOf"] = [_with_keys(part) for part in schema["anyOf"]]
    if "items" in schema:
        items = _with_keys(schema["items"])
        rules, properties = schema.get(RULES), items.get("properties", {})
        key = rules.get("key") if isinstance(rules, dict) else None
        if isinstance(key, str) and key in properties and RULES not in properties[key]:
            named = {**properties, key: {**properties[key], RULES: {"compare": "code"}}}
            items = {**items, "properties": named}
        result["items"] = items
    return result


@lru_cache(maxsize=8)
def _fields(text: bytes) -> tuple[SchemaField, ...]:
    return tuple(_leaves(_root(text), ()))


def _leaves(node: SchemaNode, path: tuple[str, ...]) -> Iterator[SchemaField]:
    if node.fields is not None:
        for key, part in node.fields.items():
            yield from _leaves(part, (*path, key))
    elif node.entry is not None:
        yield from _leaves(node.entry, path)
    else:
        yield SchemaField(path=".".join(path), about=node.about, rule=node.rule)


def _node(schema: Schema, path: tuple[str, ...]) -> SchemaNode:
    """Return what a schema describes, with the rules of its fields.

    Raises
    ------
    InputError
        Naming the field whose rules are wrong, or which lies too deep.
    """
    name = ".".join(path) or "the schema"
    if len(path) > DEEPEST:
        raise InputError(f"{name}: nested more than {DEEPEST} deep")
    schema = _of_value(schema)
    properties, items = schema.get("properties"), schema.get("items")
    others = schema.get("additionalProperties") not in (None, False)
    if properties is not None:
        if RULES in schema:
            raise InputError(f"{name}: {RULES}: is for fields with a value; this one has fields")
        fields = {key: _node(part, (*path, key)) for key, part in properties.items()}
        return SchemaNode(fields=fields, other_fields=others)
    if items is not None:
        key = _list_key(schema, name)
        return SchemaNode(entry=_node(items, path), key=key)
    about = str(schema.get("description", ""))
    if isinstance(schema.get("enum"), list):
        about = (about + "; " if about else "") + "one of " + ", ".join(map(str, schema["enum"]))
    return SchemaNode(about=about, types=schema.get("type", ()), rule=_rule(schema, path))


def _of_value(schema: Schema) -> Schema:
    """Return the schema of a value that may also be null, without that."""
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}
    return schema


def _rule(schema: Schema, path: tuple[str, ...]) -> FieldRule | None:
    """Return the rule of a field, None where it has none.

    Raises
    ------
    InputError
        Naming what of it is unknown or wrong.
    """
    rules = schema.get(RULES)
    if rules is None:
        return None
    place = f"{'.'.join(path) or 'the schema'}: {RULES}"
    if not isinstance(rules, dict) or not rules.keys() <= {*_KEYS}:
        strange = [key for key in rules if key not in _KEYS] if isinstance(rules, dict) else []
        unknown = f"'{strange[0]}' is unknown; " if strange else ""
        raise InputError(f"{place}: {unknown}expected an object with some of {', '.join(_KEYS)}")
    values = unchecked(rules, _RuleValues)
    compare = values.compare
    if compare not in get_args(Compare):
        raise InputError(f"{place}: compare '{compare}'; expected {', '.join(get_args(Compare))}")
    tolerance, relative = values.tolerance, False
    if isinstance(tolerance, str) and tolerance.endswith("%"):
        relative = True
        try:
            tolerance = float(tolerance[:-1]) / 100
        except ValueError:
            tolerance = -1
    weight = values.weight
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
        unit=str(values.unit),
        weight=float(weight),
    )


def _list_key(schema: Schema, name: str) -> str:
    """Return the field by which the entries of an array find each other, "" where none is named."""
    rules = schema.get(RULES, {})
    properties = _of_value(schema["items"]).get("properties", {})
    if not isinstance(rules, dict) or not rules.keys() <= {*_KEYS_OF_LISTS}:
        raise InputError(f"{name}: {RULES}: of a list expected key alone; rules are for its values")
    key = rules.get("key", "")
    if rules and (not isinstance(key, str) or key not in properties):
        raise InputError(
            f"{name}: {RULES}: key {key!r:.40} is no field of its entries, which have"
            f" {', '.join(properties) or 'none'}"
        )
    return str(key)


def _without_rules(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_rules(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_rules(value) for key, value in node.items() if key != RULES}


def _skeleton(node: SchemaNode) -> Any:
    if node.fields is not None:
        return {key: _skeleton(part) for key, part in node.fields.items()}
    if node.entry is not None:
        return [_skeleton(node.entry)]
    if node.types == "boolean":
        return True
    return 0 if node.types in ("number", "integer") else "…"
