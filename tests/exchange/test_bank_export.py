"""Banks for other tools: whole, with card and licence, and nothing private."""

import csv
import json
import subprocess

import pytest
import yaml
from tests import makers
from tests.conftest import ROOT, absent

from medassay.bank.folder import load_bank
from medassay.core.records.item import Bank, Item
from medassay.core.records.target import Choice
from medassay.errors import GateError, InputError
from medassay.exchange.bank_export import BANK_FORMS, export_bank


@pytest.fixture
def bank(tmp_path):
    items = [*makers.law_items(), *makers.open_items(2)]
    items[0] |= {"context": '=cmd|"x"', "split": "dev"}
    items[-1]["reference"] = "Courts are bound."
    for item in items:
        item.setdefault("source", "test")
    return load_bank(makers.write_bank(tmp_path / "bank", items, limits="Small."), lock=None)


@pytest.mark.parametrize("form", BANK_FORMS)
def test_every_form_has_its_card_with_licence_limits_and_hash(form, bank, tmp_path):
    folder = export_bank(bank, form, tmp_path / "out")
    card = (folder / "README.md").read_text()
    for part in ("licence: CC0-1.0", "law-2026.1", bank.content_hash, "Small."):
        assert part in card
    with pytest.raises(InputError, match="nothing is overwritten"):
        export_bank(bank, form, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("form", BANK_FORMS)
@pytest.mark.parametrize("private", ["item", "card"])
def test_what_is_private_is_never_written(form, private, tmp_path):
    items = makers.law_items()
    if private == "item":
        items[3]["kind"] = "synthetic"
    card = {"may_leave": False} if private == "card" else {}
    bank = load_bank(makers.write_bank(tmp_path / "bank", items, **card), lock=None)
    with pytest.raises(GateError, match="private items are never exported"):
        export_bank(bank, form, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tables_hold_every_field_and_no_formula(bank, tmp_path):
    with (export_bank(bank, "csv", tmp_path / "csv") / "law.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[0]["context"].startswith("'=cmd")
    assert json.loads(rows[0]["options"]) == list(bank.items[0].options)
    facts = json.loads(rows[-1]["more"])["facts"]
    assert [fact["text"] for fact in facts] == [fact.text for fact in bank.items[-1].target.facts]


def test_parquet_and_hub_are_read_by_duckdb(bank, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    file = export_bank(bank, "parquet", tmp_path / "pq") / "law.parquet"
    rows = duckdb.sql(f"SELECT id, options, expected FROM '{file}' ORDER BY id").fetchall()
    assert rows[0] == ("law-00", list(bank.items[0].options), bank.items[0].target.expected)
    folder = export_bank(bank, "hf", tmp_path / "hf")
    head = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert head["license"] == "cc0-1.0"
    counts = {}
    for one in head["configs"][0]["data_files"]:
        counts[one["split"]] = duckdb.sql(
            f"SELECT count(*) FROM '{folder}/{one['path']}'"
        ).fetchall()[0][0]
    assert counts == {"dev": 1, "test": 11}


def test_command_says_what_it_wrote(cli, bank, tmp_path):
    code, shown, _ = cli("--json", "bank", "export", "bank", "--format", "csv")
    assert (code, json.loads(shown)) == (
        0,
        {"schema_version": 1, "path": "law-2026.1-csv", "files": ["README.md", "law.csv"]},
    )
    assert cli("bank", "export", "bank", "--format", "xml")[0] == 3


LM_EVAL = """
import sys, json
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager
class Always(LM):
    def loglikelihood(self, requests):
        return [(0.0 if r.args[1].strip() == "B" else -9.0, False) for r in requests]
    def loglikelihood_rolling(self, requests):
        return [0.0 for _ in requests]
    def generate_until(self, requests):
        return ["Courts are bound." for _ in requests]
found = simple_evaluate(model=Always(), tasks=sys.argv[1:], task_manager=TaskManager(include_path="."), bootstrap_iters=0)
print(json.dumps({name: {k: v for k, v in row.items() if isinstance(v, float)} for name, row in found["results"].items()}))
"""


@pytest.mark.slow
def test_the_real_harness_runs_the_exported_tasks(bank, tmp_path):
    python = ROOT / ".venv-interop/bin/python"
    if not python.exists():
        absent("other harnesses are not installed: make interop")
    folder = export_bank(bank, "lm-eval", tmp_path / "tasks")
    done = subprocess.run(
        [python, "-c", LM_EVAL, "medassay_law_quiz", "medassay_law_open"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(tmp_path / "cache"),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    asked = [i for i in bank.items if i.form == "choice" and i.split == "test"]
    share = sum(item.target.expected == "B" for item in asked) / len(asked)
    assert found["medassay_law_quiz"]["acc,none"] == pytest.approx(share)
    assert found["medassay_law_open"]["exact_match,none"] == 1.0


def test_a_choice_without_a_key_is_named(tmp_path):
    target = Choice(options=("Aspirin", "Apixaban"))
    item = Item(id="q1", domain="law", question="Which?", target=target, source="test")
    bank = Bank(
        name="b",
        version="b-2026.1",
        domains=("law",),
        licence="CC0-1.0",
        items=(item,),
        content_hash="0" * 64,
    )
    with pytest.raises(InputError, match="bank 'b': item 'q1' has options and no key"):
        export_bank(bank, "lm-eval", tmp_path / "out")
    assert [*tmp_path.iterdir()] == []
