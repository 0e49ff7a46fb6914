"""Schemas that are none, hostile, or do not fit their records are refused before anything is asked."""

import json
import os
import re
import time

import pytest
from tests import makers
from tests.kinds.letters import LETTER, letters, schema, workspace

import medassay
from medassay.errors import InputError

WRONG = {
    "no JSON": ("{", "JSON"),
    "no object": ("[1]", "expected a JSON object"),
    "no schema": ('{"type": "objekt"}', "type"),
    "no properties": ('{"type": "object"}', '"properties"'),
    "elsewhere": (
        '{"type": "object", "properties": {"a": {"$ref": "https://example.org/x.json"}}}',
        "within the file",
    ),
    "itself": (
        '{"type": "object", "properties": {"a": {"$ref": "#"}}}',
        "comes back to itself",
    ),
    "nothing": (
        '{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}',
        "points at nothing",
    ),
    "several": (
        '{"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}}',
        "'oneOf' is not understood",
    ),
    "rule": (
        '{"type": "object", "properties": {"a": {"x-medassay": {"compare": "fuzzy"}}}}',
        "compare 'fuzzy'; expected text, exact",
    ),
    "unknown rule": (
        '{"type": "object", "properties": {"a": {"x-medassay": {"wieght": 1}}}}',
        "'wieght' is unknown; expected an object with some of compare",
    ),
    "tolerance": (
        '{"type": "object", "properties": {"a": {"x-medassay": {"tolerance": 1}}}}',
        "a tolerance is for numbers",
    ),
    "keyword": (
        '{"type": "object", "properties": {"a": {"descripton": "x"}}}',
        "'descripton' is no keyword of JSON Schema",
    ),
    "our keyword": (
        '{"type": "object", "properties": {"a": {"x-medasay": {"compare": "code"}}}}',
        "'x-medasay' is no keyword of JSON Schema",
    ),
    "type": (
        '{"type": "object", "properties": {"a": {"type": "nubmer"}}}',
        "'nubmer'; expected string, number",
    ),
    "key": (
        '{"type": "object", "properties": {"a": {"type": "array", "x-medassay": {"key": "id"},'
        ' "items": {"type": "object", "properties": {"b": {}}}}}}',
        "key 'id' is no field of its entries, which have b",
    ),
}


@pytest.mark.parametrize("how", WRONG)
def test_what_is_no_schema_is_refused_with_its_place(tmp_path, how):
    text, why = WRONG[how]
    plan = workspace(tmp_path, makers.fake(reply="{}"))
    (tmp_path / "letter.schema.json").write_text(text)
    with pytest.raises(InputError) as error:
        medassay.run(plan, secrets={})
    assert why in str(error.value)
    assert "letter.schema.json" in str(error.value)


def test_references_that_do_not_fit_and_plans_that_lack_a_schema_are_refused(tmp_path, cli):
    plan = workspace(tmp_path, makers.fake(reply="{}"))
    items = letters()
    items[2]["document"]["age"] = "sixty"
    makers.write_bank(tmp_path / "bank", items)
    with pytest.raises(
        InputError, match="1 reference records do not fit it, the first is 'l2': age"
    ):
        medassay.run(plan, secrets={})
    other = json.loads(json.dumps(LETTER))
    drug = other["properties"]["drugs"]["items"]["properties"]
    drug["idc"] = drug.pop("icd")
    plan = workspace(tmp_path, makers.fake(reply="{}"), document=other)
    with pytest.raises(InputError, match=r"drugs\.icd: is no field of the schema"):
        medassay.run(plan, secrets={})
    makers.workspace(tmp_path, letters(), makers.fake(reply="{}"))
    assert "needs to know the form of a record" in cli("run", "plan.toml")[2]
    makers.workspace(tmp_path, makers.many_items(2), makers.fake(reply="A"), schema="health_record")
    assert "asks for none" in cli("run", "plan.toml")[2]
    makers.write_plan(tmp_path, schema="discharge")
    assert (
        "expected a file that ends in .json, or one of health_record" in cli("run", "plan.toml")[2]
    )


EXPLODING = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/d0"}},
    "$defs": {
        f"d{n}": {
            "type": "object",
            "properties": {c: {"$ref": f"#/$defs/d{n + 1}"} for c in "abcdefgh"},
        }
        for n in range(9)
    }
    | {"d9": {"type": "string"}},
}


HOSTILE = {
    "grows": (EXPLODING, "too large or too deep"),
    "fetches below": (
        {"type": "object", "properties": {"a": {"items": {"$ref": "http://127.0.0.1:1/x"}}}},
        "within the file",
    ),
    "fetches by its name": (
        {"type": "object", "properties": {"a": {"$dynamicRef": "http://127.0.0.1:1/x"}}},
        "'$dynamicRef' is not understood",
    ),
    "false": ({"type": "object", "properties": {"a": False}}, "expected a schema"),
    "text": ({"type": "object", "properties": {"a": "string"}}, "expected a schema"),
    "dots": ({"type": "object", "properties": {"a.b": {}}}, "a field is called 'a.b'"),
    "mark": ({"type": "object", "properties": {"#a": {}}}, "a field is called '#a'"),
    "no weight": (
        {"type": "object", "properties": {"a": {"x-medassay": {"weight": 0}}}},
        "every field has the weight 0",
    ),
    "deep": (
        json.loads('{"type": "object", "properties": {"a": ' * 60 + "{}" + "}}" * 60),
        "too deep",
    ),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_schema_is_refused_at_once_and_fetches_nothing(how, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("asked the network"))
    document, why = HOSTILE[how]
    began = time.monotonic()
    with pytest.raises(InputError, match=re.escape(why)):
        schema(document)
    assert time.monotonic() - began < 5


def test_a_pattern_that_takes_for_ever_is_a_problem_of_the_record():
    slow = schema(
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|a)*$"}}}
    )
    began = time.monotonic()
    problem = slow.problem({"a": "a" * 60 + "b"})
    assert time.monotonic() - began < 10
    assert problem is None or "pattern" in problem or "match" in problem


def test_a_schema_that_is_no_plain_file_is_not_waited_for(tmp_path):
    plan = workspace(tmp_path, makers.fake(reply="{}"))
    (tmp_path / "letter.schema.json").unlink()
    os.mkfifo(tmp_path / "letter.schema.json")
    with pytest.raises(InputError, match="no plain file"):
        medassay.run(plan, secrets={})
    (tmp_path / "letter.schema.json").unlink()
    (tmp_path / "letter.schema.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="no plain file"):
        medassay.run(plan, secrets={})
