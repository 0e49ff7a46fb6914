"""JSON Schemas of medassay's files, made from the records that read them.

They are shipped as files (`schemas/`), so that an editor completes and checks what somebody writes;
a test holds the files to what this makes.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import msgspec
from pydantic import TypeAdapter

from medassay.core.ledger import LedgerEvent
from medassay.core.records.item_object import ItemObject
from medassay.core.records.model import PROVIDER_NAMES, ModelSpec
from medassay.core.records.plan import Plan
from medassay.core.records.sealed_object import ScoreObject, TrialObject, VerdictObject
from medassay.core.records.statistics import LeaderboardRow
from medassay.core.records.trial import TRIAL_KEY
from medassay.suite.plan import SuitePlan

JsonSchema = dict[str, Any]  # a JSON Schema
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> JsonSchema:
    """Return the schema of a plan, a TOML file: `task` is a name, or a table with what is one's
    own.
    """
    schema = _described(TypeAdapter(Plan).json_schema(), Plan)
    keys = schema["properties"]
    own = next(option for option in keys.pop("own")["anyOf"] if "$ref" in option)
    text = described_fields(Plan)["task"]
    keys["task"] = {"anyOf": [{"type": "string"}, own], "default": "", "description": text}
    return _closed("A plan of medassay", schema)


def suite_schema() -> JsonSchema:
    """Return the schema of a suite plan, a TOML file; the task of a benchmark as in a plan."""
    schema = _described(TypeAdapter(SuitePlan).json_schema(), SuitePlan)
    benchmark = schema["$defs"]["Benchmark"]
    keys = benchmark["properties"]
    own = next(option for option in keys.pop("own")["anyOf"] if "$ref" in option)
    text = described_fields(Plan)["task"]
    keys["task"] = {"anyOf": [{"type": "string"}, own], "default": "", "description": text}
    benchmark["required"] = ["name", "bank"]
    return _closed("A suite plan of medassay", schema)


def models_schema() -> JsonSchema:
    """Return the schema of a models file; packages may add providers, so that any name is one."""
    entry = _described(TypeAdapter(ModelSpec).json_schema(), ModelSpec)
    definitions = entry.pop("$defs", {})
    del entry["properties"]["trusted_hosts"]  # stands beside the entries
    provider = entry["properties"]["provider"]
    entry["properties"]["provider"] = {
        "type": "string",
        "examples": [*PROVIDER_NAMES],
        "description": provider["description"],
    }
    text = {"type": "string"}
    return {
        "$schema": DIALECT,
        "title": "A models file of medassay",
        "type": "object",
        "required": ["models"],
        "properties": {
            "$schema": text,
            "schema_version": {"const": 1},
            "models": {"type": "array", "items": {**entry, "additionalProperties": False}},
            "trusted_hosts": {"type": "array", "items": text},
        },
        "$defs": definitions,
    }


def statistics_schema() -> JsonSchema:
    """Return the schema of statistics.json as far as all kinds of task share it: its rows."""
    row = _of_record(LeaderboardRow, "A row of a ranking")
    definitions = row.pop("$defs", {})
    rows = {"type": "array", "items": row}
    return {
        "$schema": DIALECT,
        "title": "The statistics of a sealed run",
        "type": "object",
        "required": ["domains"],
        "properties": {"domains": {"type": "object", "additionalProperties": rows}},
        "$defs": definitions,
    }


SCHEMAS: dict[str, Callable[[], JsonSchema]] = {
    "item": lambda: _of_record(
        ItemObject, "An item of a question bank", ("id", "domain", "question")
    ),
    "log": lambda: _of_record(LedgerEvent, "What a line of a site's log.jsonl says"),
    "models": models_schema,
    "plan": plan_schema,
    "score": lambda: _of_record(ScoreObject, "A line of scores.jsonl", TRIAL_KEY),
    "statistics": statistics_schema,
    "suite": suite_schema,
    "trial": lambda: _of_record(TrialObject, "A line of trials.jsonl", TRIAL_KEY),
    "verdict": lambda: _of_record(VerdictObject, "A line of verdicts.jsonl", TRIAL_KEY),
}


def _of_record(record: Any, title: str, required: Sequence[str] = ()) -> JsonSchema:
    """Return the schema of a typed dictionary or a structure, with its parts beside it."""
    [root], parts = msgspec.json.schema_components(
        [record],
        schema_hook=lambda kind: {"description": "any value"},
        ref_template="#/$defs/{name}",
    )
    name = root["$ref"].rpartition("/")[2] if "$ref" in root else ""
    own = parts.pop(name) if name else root
    schema = {"$schema": DIALECT, **own, "title": title}
    if parts:
        schema["$defs"] = parts
    if required:
        schema["required"] = list(required)
    return schema


def described_fields(record: type) -> dict[str, str]:
    """Return what the docstring of a record says of each of its fields, in one line each.

    Examples
    --------
    >>> described_fields(Plan)["models_file"]
    'relative to the plan'
    """
    texts: dict[str, str] = {}
    names: list[str] = []
    section = ""
    lines = (inspect.getdoc(record) or "").splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and not following.strip("-"):
            section = line
        elif section == "Attributes" and line and line.strip("-"):
            head, colon, text = line.partition(" : ")
            if colon and not line.startswith(" "):
                names = head.split(", ")
                texts |= dict.fromkeys(names, text)
            else:
                texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    return texts


def _described(schema: JsonSchema, *records: type) -> JsonSchema:
    """Return a schema that says of each field what the docstring of its record says."""
    by_title = {record.__name__: record for record in _with_parts(records)}
    for part in (schema, *schema.get("$defs", {}).values()):
        record = by_title.get(part.get("title", ""))
        if record is None:
            continue
        part["description"] = (inspect.getdoc(record) or "").split("\n\n")[0].replace("\n", " ")
        texts = described_fields(record)
        for name, field in part.get("properties", {}).items():
            if name in texts:
                field["description"] = texts[name]
    return schema


def _with_parts(records: Iterable[type]) -> Iterator[type]:
    """Yield records, and those that are fields of theirs."""
    for record in records:
        yield record
        for hint in get_type_hints(record).values():
            for part in (hint, *get_args(hint)):
                if is_dataclass(part) and isinstance(part, type):
                    yield from _with_parts([part])


def _closed(title: str, schema: JsonSchema) -> JsonSchema:
    return {"$schema": DIALECT, **schema, "title": title, "additionalProperties": False}
