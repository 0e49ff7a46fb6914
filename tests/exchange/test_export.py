import csv
import json
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from tests import makers
from tests.conftest import ROOT

import medassay
from medassay.exchange.export import COLUMNS, FORMS, export
from medassay.storage.shown_item import shown_item

SCHEMA = Path(__file__).parent / "schema"
VALIDATOR = ROOT / ".venv-eee/bin/every_eval_ever"  # needs Python 3.12: where somebody made it


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    makers.write_bank(folder / "bank", [*makers.law_items(), *makers.many_items(15)])
    makers.write_models(
        folder,
        {**makers.fake("one", letters="hash"), "family": "acme"},
        makers.fake("two", replies={"law-000": "=HYPERLINK(1)\nThe answer is A", "law-001": ""}),
    )
    return medassay.run(makers.write_plan(folder, models=["one", "two"], repeats=2), secrets={})


def trials(run):
    return [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]


def test_csv_json_lines_and_parquet_hold_the_same_trials(run, tmp_path):
    import duckdb

    for form in ("csv", "jsonl", "parquet"):
        export(run, form, tmp_path / f"x.{form}")
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert len(lines) == len(trials(run))
    with (tmp_path / "x.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    with duckdb.connect() as base:
        found = base.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "x.parquet")])
        assert [column[0] for column in found.description] == list(COLUMNS)
        packed = [dict(zip(COLUMNS, row, strict=True)) for row in found.fetchall()]
    for line, cell, row in zip(lines, cells, packed, strict=True):
        assert line == row
        assert cell["item"] == line["item"]
        assert float(cell["score"]) == line["score"]
        assert cell["text"].removeprefix("'") == line["text"]
        assert not cell["text"].startswith("=")


def test_a_table_says_under_which_letters_options_were_shown(tmp_path):
    plan = makers.workspace(
        tmp_path, makers.many_items(9), makers.fake("m", reply="B"), shuffle_options=True
    )
    run = medassay.run(plan, secrets={})
    with export(run, "csv", tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["text"] for row in rows} == {"B"}  # shown second to all
    assert [row["value"] for row in rows] == [row["order"].split()[1] for row in rows]
    assert len({row["value"] for row in rows}) > 1
    [shown] = shown_item(run, rows[0]["item"]).table_rows()
    assert (shown["value"], shown["order"]) == (rows[0]["value"], rows[0]["order"])


def test_the_shared_schema_is_met_and_the_same_run_gives_the_same_files(run, tmp_path):
    for name in ("a", "b"):
        export(run, "every-eval-ever", tmp_path / name)
    found = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.json*"))
    assert len(found) == 4  # two models, a record and its answers each
    one, many = (
        Draft7Validator(json.loads((SCHEMA / f"{name}.schema.json").read_text()))
        for name in ("eval", "instance_level_eval")
    )
    rows = medassay.leaderboard(run).domains
    for path in found:
        data = (tmp_path / "a" / path).read_bytes()
        assert data == (tmp_path / "b" / path).read_bytes()
        if path.suffix == ".json":
            record = json.loads(data)
            one.validate(record)
            assert record["detailed_evaluation_results"]["total_rows"] == len(trials(run)) / 2
            for result in record["evaluation_results"]:
                [row] = [
                    r
                    for r in rows[result["evaluation_name"]]
                    if r["model"] == record["model_info"]["name"]
                ]
                interval = result["score_details"]["uncertainty"]["confidence_interval"]
                assert (interval["lower"], interval["upper"]) == (row["lo"], row["hi"])
                assert interval["method"] == row["interval"]
        else:
            for line in data.splitlines():
                many.validate(json.loads(line))
    if VALIDATOR.exists():
        files = [str(path) for path in found]
        done = subprocess.run(
            [VALIDATOR, "validate", *files],
            cwd=tmp_path / "a",
            capture_output=True,
            text=True,
            check=False,
        )
        assert "0 failed (0 errors" in done.stdout  # an unknown maker is a warning there


def test_a_judged_run_names_its_judges(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.open_items(3))
    judges = makers.judges()
    makers.write_models(tmp_path, makers.fake("one", letters="hash"), *judges)
    plan = makers.write_plan(
        tmp_path, models=["one"], judges=[j["id"] for j in judges], task="open"
    )
    run = medassay.run(plan, secrets={})
    export(run, "every-eval-ever", tmp_path / "out")
    [path] = (tmp_path / "out").rglob("*.json")
    record = json.loads(path.read_text())
    schema = json.loads((SCHEMA / "eval.schema.json").read_text())
    Draft7Validator(schema).validate(record)
    scoring = record["evaluation_results"][0]["metric_config"]["llm_scoring"]
    assert len(scoring["judges"]) == 3


def test_what_is_in_the_way_is_not_overwritten(run, tmp_path, cli):
    (tmp_path / "x.csv").write_text("mine")
    code, _, errors = cli("export", run.path, "--format", "csv", "--to", tmp_path / "x.csv")
    assert code == 3
    assert "nothing is overwritten" in errors
    assert (tmp_path / "x.csv").read_text() == "mine"
    code, _, errors = cli("export", run.path, "--format", "xml")
    assert code == 3
    assert f"expected one of {', '.join(FORMS)}" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
    assert cli("export", run.path, "--format", "jsonl")[0] == 0
