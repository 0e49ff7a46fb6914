"""The structured health record: typed, strict, and the schema that models are held to."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from medassay.core.records.health_record import (
    MONOLOGUE,
    RECORD,
    SECTIONS,
    STEPS,
    origin_from,
    record_from,
    reply_schema,
    required_keys,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/health_record.json").read_text())
GOLD = GOLDEN["gold"][RECORD]


def test_the_golden_record_is_read_and_written_as_it_stands():
    assert record_from(GOLD).to_dict() == GOLD


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_is_absent_is_named(section):
    given = {key: value for key, value in GOLD.items() if key != section}
    with pytest.raises(ValueError, match=f"^{section}: Field required"):
        record_from(given)


def spoilt(change):
    given = copy.deepcopy(GOLD)
    change(given)
    return given


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda r: r.update(note="x"), "note"),
        (lambda r: r["relevant_metrics"][0].update(value=93), "relevant_metrics.0.value"),
        (lambda r: r["medications"].pop("discontinued"), "medications.discontinued"),
        (lambda r: r["medications"]["current"].append("Ramipril"), "medications.current.2"),
        (lambda r: r["date_and_source"].update(date=20250922), "date_and_source.date"),
        (lambda r: r.update(follow_up="in 6 Wochen"), "follow_up"),
        (lambda r: r.update(diagnosis=[None]), "diagnosis.0"),
    ],
)
def test_a_field_of_another_kind_is_named(change, where):
    with pytest.raises(ValueError, match=f"^{where}: "):
        record_from(spoilt(change))


@pytest.mark.parametrize("given", [None, [], "text", 3])
def test_what_is_no_object_is_refused(given):
    with pytest.raises(ValueError, match="record: "):
        record_from(given)


def test_an_origin_says_who():
    given = {"standing": "silver", "maker": "strong", "family": "acme", "prompt_sha256": "0a"}
    assert origin_from(given).to_dict() == given
    for wrong in (
        {},
        {"standing": "bronze", "maker": "m"},
        {"standing": "gold", "maker": " "},
        {"standing": "silver", "maker": "m"},
        {**given, "prompt_sha256": ""},
    ):
        with pytest.raises(ValueError, match=r"standing|maker|silver"):
            origin_from(wrong)


def test_a_record_without_a_medical_field_is_refused():
    with pytest.raises(ValueError, match="categories: empty"):
        record_from({**GOLD, "categories": []})


@pytest.mark.parametrize("monologue", [True, False])
def test_the_schema_takes_the_golden_reply_and_nothing_short_of_it(monologue):
    schema = reply_schema(monologue=monologue)
    jsonschema.Draft202012Validator.check_schema(schema)
    thoughts = {MONOLOGUE: dict.fromkeys(STEPS, "…")} if monologue else {}
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({**thoughts, RECORD: GOLD})
    assert not valid({**thoughts, RECORD: {**GOLD, "note": ""}})
    for section in SECTIONS:
        assert not valid({**thoughts, RECORD: {k: v for k, v in GOLD.items() if k != section}})
    assert valid({MONOLOGUE: dict.fromkeys(STEPS, "…"), RECORD: GOLD}) is monologue
    assert valid({RECORD: GOLD}) is not monologue


def test_the_schema_and_the_typed_record_agree_on_every_field():
    """A field added to one of them only would let vendors return what we refuse."""

    def names(schema):
        if schema["type"] == "array":
            return names(schema["items"])
        if schema["type"] != "object":
            return None
        assert schema["required"] == list(schema["properties"])
        return {key: names(inner) for key, inner in schema["properties"].items()}

    def keys(value):
        if isinstance(value, list):
            return keys(value[0]) if value else None
        return {k: keys(v) for k, v in value.items()} if isinstance(value, dict) else None

    assert names(reply_schema(monologue=False))[RECORD] == keys(record_from(GOLD).to_dict())


def test_without_thinking_only_the_record_is_required():
    assert required_keys("health_record_direct@0123456789ab") == RECORD
    assert required_keys("health_record@0123456789ab") == f"{MONOLOGUE} and {RECORD}"
