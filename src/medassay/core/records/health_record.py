"""The structured health record of a clinical report, and the form that a model's reply has.

Every field must be there; what the report does not say is null or an empty list, never invented.
Texts stay in the report's language and notation ("0,9 mg/dl", "1-0-1").

Source: specification of health-record extraction, "Output schema".
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeVar, cast

from pydantic import ConfigDict, ValidationError

from medassay.core.json_schema import STRING, STRING_OR_NULL, JsonSchema, list_schema, object_schema
from medassay.core.keyed import KeyedRecord, keyed
from medassay.core.record_check import first_wrong, read_record
from medassay.core.records.item_object import OriginObject

RECORD = "structured_health_record"
MONOLOGUE = "internal_monologue"
# The six steps of thinking, in their order.
STEPS = (
    "date_source",
    "categorisation",
    "diagnoses",
    "metrics",
    "medication_logic",
    "follow_up",
)
SECTIONS = (
    "categories",
    "date_and_source",
    "diagnosis",
    "relevant_metrics",
    "medications",
    "follow_up",
)
# What is told apart within sections: of measurements each key, of drugs each list.
FIELDS = (
    "categories",
    "date_and_source.date",
    "date_and_source.source",
    "diagnosis",
    "relevant_metrics.name",
    "relevant_metrics.value",
    "relevant_metrics.unit",
    "relevant_metrics.note",
    "medications.current",
    "medications.advised",
    "medications.discontinued",
    "follow_up",
)
# What a row of a report has besides its sections: likeness, drugs in the right list, replies with
# JSON, length.
SIMILARITY, MEDICATION, READ, LENGTH = "similarity", "medication", "read", "characters"
NUMBERS = (SIMILARITY, MEDICATION, READ, LENGTH)
# What else is told of leaves: which share of the reply's is expected, and of the expected ones
# found, both together, and the rest.
LEAVES = ("precision", "f1", "lost_leaves", "invented_leaves")
# What else is told of drugs that reply and reference have in common: the share of entries that
# agree.
DRUG_DETAILS = ("dose", "unit", "route", "schedule")
GOING_ON = "going_on"  # share of stopped drugs and doses that are listed as current
AS_PUBLISHED = "as_published"  # likeness of the longest JSON value of a reply, whatever it is
# Templates that ask for the record: after the six steps, and at once.
THINKING, DIRECT = "health_record", "health_record_direct"
Standing = Literal["gold", "silver"]
T = TypeVar("T")
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class DateAndSource(KeyedRecord):
    """When a report was written (YYYY-MM-DD where it is a whole date, else as written), and by
    whom.
    """

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("date", "source")

    date: str | None
    source: str | None


@dataclass(frozen=True, kw_only=True)
class Measurement(KeyedRecord):
    """One measured value, as written."""

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("name", "value", "unit", "note")

    name: str
    value: str
    unit: str | None
    note: str | None


@dataclass(frozen=True, kw_only=True)
class Drug(KeyedRecord):
    """One drug with its dose and how it is taken, as written."""

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("name", "dose", "schedule")

    name: str
    dose: str | None
    schedule: str | None


@dataclass(frozen=True, kw_only=True)
class Medications(KeyedRecord):
    """Drugs taken on unchanged (`current`), newly prescribed or recommended (`advised`), stopped
    (`discontinued`).
    """

    __pydantic_config__ = _STRICT

    KEYS: ClassVar = ("current", "advised", "discontinued")

    current: tuple[Drug, ...]
    advised: tuple[Drug, ...]
    discontinued: tuple[Drug, ...]


@dataclass(frozen=True, kw_only=True)
class HealthRecord:
    """What one report says, in six sections."""

    __pydantic_config__ = _STRICT

    categories: tuple[str, ...]
    date_and_source: DateAndSource
    diagnosis: tuple[str, ...]
    relevant_metrics: tuple[Measurement, ...]
    medications: Medications
    follow_up: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        plain: dict[str, Any] = json.loads(json.dumps(keyed(self, *SECTIONS)))
        return plain


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a reference record comes from.

    `gold` was written by people, `silver` by the model `maker` of the vendor `family` ("unknown"
    where nobody says), asked with the prompt of hash `prompt_sha256`. `converted` marks a record
    read from the published six-field Markdown.
    """

    __pydantic_config__ = _STRICT

    standing: Standing
    maker: str
    family: str = ""
    prompt_sha256: str = ""
    converted: bool = False

    def to_dict(self) -> OriginObject:
        """Return the origin as plain JSON values; what is empty is left out."""
        values = keyed(self, "standing", "maker", "family", "prompt_sha256", "converted")
        return cast(OriginObject, {key: value for key, value in values.items() if value})


def record_from(document: Any) -> HealthRecord:
    """Return the record in a parsed JSON value.

    Raises
    ------
    ValueError
        Naming the first field that is absent, unknown or of the wrong type; or that no medical
        field is given.

    Examples
    --------
    >>> record_from({"categories": []})
    Traceback (most recent call last):
    ...
    ValueError: date_and_source: Field required
    """
    record = _validate(HealthRecord, document)
    if not record.categories:
        raise ValueError("categories: empty; expected at least one medical field")
    return record


def origin_from(document: Any) -> Origin:
    """Return the origin in a parsed JSON value; ValueError names what is wrong with it."""
    origin = _validate(Origin, document)
    if not origin.maker.strip():
        raise ValueError("maker: empty; expected who wrote the record")
    if origin.standing == "silver" and not (origin.family.strip() and origin.prompt_sha256):
        raise ValueError(
            "silver: expected the maker's family and the prompt_sha256 it was asked with"
        )
    return origin


def _validate(record: type[T], document: Any) -> T:
    try:
        return read_record(record, json.dumps(document))
    except ValidationError as error:
        place, problem = first_wrong(error, "record")
        raise ValueError(f"{place}: {problem}") from None


def reference_text(record: Mapping[str, Any]) -> str:
    """Return a reference record as the text of a reply, as readers and judges see it."""
    return json.dumps({RECORD: record}, ensure_ascii=False, indent=1)


def asks_for_thoughts(template: str) -> bool | None:
    """Return whether a template (its name or id) asks for the six steps first.

    None if it asks for no record.

    Examples
    --------
    >>> asks_for_thoughts("health_record@0f1e2d"), asks_for_thoughts("health_record_direct")
    (True, False)
    """
    return {THINKING: True, DIRECT: False}.get(template.partition("@")[0])


def required_keys(template: str) -> str:
    """Return the top-level keys that a reply to a template must have, in words."""
    return RECORD if asks_for_thoughts(template) is False else f"{MONOLOGUE} and {RECORD}"


@lru_cache(maxsize=2)
def reply_schema(*, monologue: bool) -> JsonSchema:
    """Return the JSON Schema of a reply: the record, and before it the six steps where they are
    asked for.

    Written out flat, without references: not every vendor resolves them. Every field is required.
    """
    source = object_schema({"date": STRING_OR_NULL, "source": STRING_OR_NULL})
    measured = {"name": STRING, "value": STRING, "unit": STRING_OR_NULL, "note": STRING_OR_NULL}
    drug = {"name": STRING, "dose": STRING_OR_NULL, "schedule": STRING_OR_NULL}
    drugs = list_schema(object_schema(drug))
    record = object_schema(
        {
            "categories": list_schema(STRING),
            "date_and_source": source,
            "diagnosis": list_schema(STRING),
            "relevant_metrics": list_schema(object_schema(measured)),
            "medications": object_schema(dict.fromkeys(Medications.KEYS, drugs)),
            "follow_up": list_schema(STRING),
        }
    )
    steps = {MONOLOGUE: object_schema(dict.fromkeys(STEPS, STRING))} if monologue else {}
    return object_schema({**steps, RECORD: record})
