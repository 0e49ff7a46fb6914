"""The shipped JSON Schemas are those of the records, and hold for the files that medassay writes."""

import json
import os
import tomllib
from pathlib import Path

import jsonschema
import pytest
from tests import makers

import medassay
from medassay.bank.catalog import BANKS
from medassay.bank.find import SHIPPED
from medassay.cli.record_schemas import SCHEMAS

SCHEMA_FILES = Path("src/medassay/schemas")


def errors_in(name, document):
    validator = jsonschema.Draft202012Validator(SCHEMAS[name]())
    return [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_shipped_schema_is_what_the_records_say(name):
    path = SCHEMA_FILES / f"{name}.schema.json"
    made = json.dumps(SCHEMAS[name](), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("MEDASSAY_REGENERATE"):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made
    jsonschema.Draft202012Validator.check_schema(json.loads(made))


def test_no_schema_is_shipped_that_nothing_makes():
    shipped = {path.name.partition(".")[0] for path in SCHEMA_FILES.glob("*.json")}
    assert shipped == set(SCHEMAS)


def plans():
    found = sorted(Path("src/medassay").rglob("*.toml"))
    return [p for p in found if "models" in p.read_text() and "banks" in p.read_text()]


@pytest.mark.parametrize("path", plans(), ids=lambda path: path.parent.name + "/" + path.name)
def test_every_shipped_plan_fits(path):
    document = tomllib.loads(path.read_text())
    if {"banks", "models"} <= document.keys() and "maker" not in document:
        assert not errors_in("plan", document)


def test_a_wrong_plan_does_not_fit():
    assert errors_in("plan", {"banks": ["a"], "models": ["b"], "sedd": 1})
    assert errors_in("plan", {"banks": ["a"], "models": ["b"], "task": {"scorrer": "x"}})
    assert not errors_in("plan", {"banks": ["a"], "models": ["b"], "task": {"scorer": "my.py:f"}})


@pytest.mark.parametrize("path", sorted(Path("src/medassay").rglob("models.json")), ids=str)
def test_every_shipped_models_file_fits(path):
    assert not errors_in("models", json.loads(path.read_text()))


@pytest.mark.parametrize("name", [n for n, e in BANKS.items() if e.checked == "shipped"])
def test_every_item_of_shipped_banks_fits(name):
    for line in (SHIPPED / BANKS[name].folder / "items.jsonl").read_text().splitlines():
        assert not errors_in("item", json.loads(line))


def test_the_lines_of_a_run_and_of_a_site_fit(tmp_path):
    plan = makers.workspace(
        tmp_path,
        makers.open_items(3),
        makers.fake(reply="Rule binds courts."),
        task="open",
        judges=[judge["id"] for judge in makers.judges()],
    )
    makers.write_models(tmp_path, makers.fake(reply="Rule binds courts."), *makers.judges())
    run = medassay.run(plan, secrets={})
    medassay.publish(run, tmp_path / "site")
    files = {"trial": "trials", "score": "scores", "verdict": "verdicts"}
    for name, file in files.items():
        for line in (run.path / f"{file}.jsonl").read_text().splitlines():
            assert not errors_in(name, json.loads(line))
    assert not errors_in("statistics", json.loads((run.path / "statistics.json").read_text()))
    for line in (tmp_path / "site/log.jsonl").read_text().splitlines():
        assert not errors_in("log", json.loads(line)["record"])


def test_what_init_writes_names_schemas_that_are_there_and_that_it_fits(tmp_path, cli):
    assert cli("init", "new")[0] == 0
    plan = (tmp_path / "new/plan.toml").read_text()
    named = plan.splitlines()[0].removeprefix("#:schema ")
    schema = json.loads((tmp_path / "new" / named).read_text())
    jsonschema.validate(tomllib.loads(plan), schema)
    models = json.loads((tmp_path / "new/models.json").read_text())
    jsonschema.validate(models, json.loads((tmp_path / "new" / models["$schema"]).read_text()))


def test_the_command_prints_them(cli):
    code, out, _ = cli("schema")
    assert code == 0
    assert out.split() == sorted(SCHEMAS)
    assert json.loads(cli("schema", "plan")[1])["title"] == "A plan of medassay"
    code, _, errors = cli("schema", "plans")
    assert code == 3
    assert "known are item, log" in errors


@pytest.mark.parametrize("name", ["plan", "models", "suite"])
def test_each_key_that_people_write_says_what_it_is(name):
    schema = SCHEMAS[name]()
    entries = schema["properties"]
    if name == "models":
        entries = entries["models"]["items"]["properties"]
    parts = [entries, *(p["properties"] for p in schema["$defs"].values() if "properties" in p)]
    for part in parts:
        for key, field in part.items():
            assert key == "$schema" or field.get("description"), key
