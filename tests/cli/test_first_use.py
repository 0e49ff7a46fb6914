"""What a newcomer meets: paths as text, the version, completion, tables at 80 columns, an item of
any run.
"""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from tests import makers

import medassay
from medassay import pipeline
from medassay.cli.output import Output
from medassay.errors import InputError
from medassay.exchange.predictions import import_predictions


def test_paths_may_be_text(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_models(tmp_path, makers.fake(reply="A"))
    plan = makers.write_plan(tmp_path)
    assert medassay.load_plan(str(plan)) == medassay.load_plan(plan)
    assert medassay.load_models(str(tmp_path / "models.json")).keys() == {"m"}
    run = pipeline.run(str(plan), secrets={})
    assert medassay.open_run(str(run.path)).id == run.id
    page = medassay.publish(str(run.path), str(tmp_path / "site"))
    assert page.is_file()
    table = tmp_path / "t.csv"
    table.write_text("i,m,d,s\n" + "".join(f"q{n},a,law,1\n" for n in range(12)))
    columns = {"item": "i", "model": "m", "domain": "d", "score": "s"}
    assert medassay.import_predictions(str(table), columns, to=str(tmp_path / "run")).sealed
    for call in (medassay.open_run, medassay.load_plan, medassay.load_models):
        with pytest.raises(InputError):
            call("not-here")


def test_the_version_is_told():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", medassay.__version__)


@pytest.mark.parametrize(
    ("shell", "more", "expected"),
    [
        ("bash", {"COMP_WORDS": "medassay rep", "COMP_CWORD": "1"}, "report"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "medassay rep"}, '"report"'),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "medassay rep",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
            "report",
        ),
    ],
)
def test_shells_complete_commands(shell, more, expected):
    def said(**environment):
        return subprocess.run(
            [sys.executable, "-m", "medassay"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    assert expected in said(_MEDASSAY_COMPLETE=f"complete_{shell}", **more)
    assert "_MEDASSAY_COMPLETE" in said(_MEDASSAY_COMPLETE=f"source_{shell}")


@pytest.fixture
def board(tmp_path):
    chance = np.random.default_rng(5)
    rows = [
        f"q{n:03},{name},medicine-of-the-heart,{int(chance.random() < skill)}"
        for name, skill in (
            ("meta-llama/Llama-3.3-70B-Instruct", 0.8),
            ("deepseek-ai/DeepSeek-R1-Distill", 0.7),
            ("a", 0.5),
        )
        for n in range(90)
    ]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["item,model,domain,score", *rows]) + "\n")
    names = ("item", "model", "domain", "score")
    return import_predictions(table, {n: n for n in names}, to=tmp_path / "run")


@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_fit_the_terminal_and_break_no_word(board, cli, monkeypatch, width):
    monkeypatch.setattr(
        Output, "console", lambda self: Console(width=width, no_color=True, highlight=False)
    )
    for command in (("report", board.path), ("compare", board.path)):
        code, out, _ = cli(*command)
        assert code == 0
        table = [line for line in out.splitlines() if line[:1] in "┏┃┡│└"]
        assert table
        assert max(map(len, table)) <= width
        assert "…" not in out
        words = {word for line in table for word in re.findall(r"[\w./-]+", line)}
        for whole in ("model" if command[0] == "report" else "reading", "a"):
            assert whole in words
        if command[0] == "report":
            assert {"meta-llama/Llama-3.3-70B-Instruct", "score", "rank"} <= words
        else:
            assert {"difference", "first", "second"} <= words


def test_show_finds_an_item_of_any_run(tmp_path, cli):
    for name in ("first", "second"):
        place = tmp_path
        items = [{**one, "id": f"{name}-{one['id']}"} for one in makers.many_items(12, name)]
        makers.write_bank(place / name, items, name=name, domains=(name,))
        makers.write_models(place, makers.fake(reply="A"))
        pipeline.run(makers.write_plan(place, banks=[name]), secrets={})
    for name in ("first", "second"):
        code, out, _ = cli("show", f"{name}-q00003")
        assert code == 0
        assert f"{name}-q00003 · {name}" in out
    code, _, errors = cli("show", "nobody")
    assert (code, errors.count("\n")) == (3, 1)
    assert "none of the 2 finished runs here has an item 'nobody'" in errors


def test_only_may_be_given_once_for_each_model(board, cli):
    names = ("deepseek-ai/DeepSeek-R1-Distill", "a")  # whole at 140 columns
    together = cli("compare", board.path, "--only", ",".join(names))[1]
    apart = cli("compare", board.path, "--only", names[0], "--only", names[1])[1]
    assert together == apart
    assert names[0] in apart


def test_beside_the_workspace_of_the_demo_its_bank_is_still_found(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo" / "runs").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    code, out, _ = cli("--json", "bank", "show", "demo")
    assert (code, json.loads(out)["version"]) == (0, "demo-2026.1")
    code, _, errors = cli("bank", "show", "other")
    assert (code, "other/bank.toml: no such file" in errors) == (3, True)
