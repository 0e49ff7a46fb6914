"""JSON Schemas of what a model is held to: a reply, or the arguments of a tool."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class JsonSchema(TypedDict, total=False):
    """The keywords of JSON Schema that we use."""

    type: str | list[str]
    description: str
    enum: Sequence[str | int]
    minimum: int
    maximum: int
    items: "JsonSchema"
    properties: Mapping[str, "JsonSchema"]
    required: list[str]
    additionalProperties: bool


STRING: JsonSchema = {"type": "string"}
STRING_OR_NULL: JsonSchema = {"type": ["string", "null"]}


def object_schema(
    properties: Mapping[str, JsonSchema], required: Sequence[str] | None = None
) -> JsonSchema:
    """Return the schema of an object with these keys and no others; all are required unless
    `required` names some.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def list_schema(element: JsonSchema) -> JsonSchema:
    """Return the schema of a list."""
    return {"type": "array", "items": element}


def enum_schema(values: Sequence[str]) -> JsonSchema:
    """Return the schema of one of some texts."""
    return {"type": "string", "enum": list(values)}
