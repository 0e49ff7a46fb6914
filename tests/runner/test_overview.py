"""The runs of a workspace at a glance, whatever became of them."""

import json
import re

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.errors import IncompleteError
from medassay.runner.overview import overview
from medassay.storage.run import lock_run


@pytest.fixture
def workspace(tmp_path):
    """Return a folder with a published run, one scored again, and one that is not finished."""
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(
        tmp_path,
        {**makers.fake("m", reply="A"), "price": {"input": 1, "output": 2}},
        makers.fake("bad", fail_items=["law-03"]),
    )
    first = medassay.run(makers.write_plan(tmp_path, models=["m"], name="monthly"), secrets={})
    medassay.publish(first, tmp_path / "site", publication="one")
    again = medassay.rescore(first)
    with pytest.raises(IncompleteError):
        medassay.run(makers.write_plan(tmp_path, models=["bad"], name="broken"), secrets={})
    return tmp_path, first, again


def test_each_run_says_what_it_is_and_how_far(workspace):
    folder, first, again = workspace
    runs = {run.run: run for run in overview(str(folder))}
    assert len(runs) == 3
    sealed = runs[first.id]
    assert (sealed.plan, sealed.state, sealed.trials, sealed.failed) == ("monthly", "sealed", 10, 0)
    assert (sealed.calls, sealed.models, sealed.task) == (10, ["m"], "closed")
    assert re.fullmatch(r"0\.0\d{3} USD", sealed.spent)
    assert sealed.published == ["site/p/one"]
    assert sealed.size == sum(p.stat().st_size for p in first.path.rglob("*") if p.is_file())
    assert runs[again.id].made_from == f"scored again: {first.id}"
    assert runs[again.id].published == []
    [broken] = [run for run in runs.values() if run.plan == "broken"]
    assert (broken.state, broken.trials, broken.failed) == ("unfinished", 9, 1)
    created = [run.created_at for run in overview(str(folder))]
    assert created == sorted(created, reverse=True)


def test_a_run_that_somebody_works_at_says_so(workspace):
    folder, *_ = workspace
    [unfinished] = [r for r in overview(str(folder)) if r.state == "unfinished"]
    with lock_run(medassay.open_run(folder / unfinished.path)):
        states = {run.run: run.state for run in overview(str(folder))}
    assert states[unfinished.run] == "at work"


def test_a_damaged_run_is_named_and_the_others_are_listed(workspace, cli):
    folder, first, _ = workspace
    manifest = first.path / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_text('{"run": 3}')
    code, text, _ = cli("runs", folder)
    assert code == 0
    assert f"{first.path.name}: manifest.json: " in text
    assert {run.state for run in overview(str(folder))} == {"unreadable", "sealed", "unfinished"}


def test_the_command_lists_them_in_words_and_as_json(workspace, cli, monkeypatch):
    folder, first, _ = workspace
    code, text, _ = cli("runs", folder)
    assert code == 0
    cells = " ".join(text.replace("│", " ").split())
    for word in ("monthly", "sealed", "site/p/one", "9, 1 failed", "scored"):
        assert word in cells
    monkeypatch.chdir(folder)
    code, text, _ = cli("--json", "runs")
    document = json.loads(text)
    assert (code, document["schema_version"], len(document["runs"])) == (0, 1, 3)
    assert {run["run"] for run in document["runs"]} >= {first.id}


def test_no_workspace_and_no_terminal_are_told(tmp_path, cli):
    code, _, errors = cli("runs", tmp_path / "nowhere")
    assert (code, "no workspace; expected a folder with runs/" in errors) == (3, True)
    (tmp_path / "runs").mkdir()
    assert "no runs yet; `medassay run plan.toml` makes one" in cli("runs", tmp_path)[1]
    code, _, errors = cli("runs", tmp_path, "--watch")
    assert (code, "--watch draws on a terminal" in errors) == (2, True)


def test_verdicts_are_counted_while_judges_judge(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.open_items(4))
    judges = [{**makers.fake(f"j{n}", judge=0.5), "family": f"f{n}"} for n in range(3)]
    makers.write_models(tmp_path, makers.fake("m", reply="Rule 1 binds courts."), *judges)
    plan = makers.write_plan(
        tmp_path, models=["m"], judges=["j0", "j1", "j2"], task="open", budget={"calls": 9}
    )
    with pytest.raises(IncompleteError):
        pipeline.run(plan, secrets={})
    [run] = overview(str(tmp_path))
    assert (run.state, run.trials, run.verdicts) == ("unfinished", 4, 5)
    assert len(medassay.open_run(tmp_path / run.path).verdicts()) == 5


def test_an_unfinished_run_is_shown_and_reported_as_far_as_it_is(workspace, cli):
    folder, first, _ = workspace
    [broken] = [run for run in overview(str(folder)) if run.state == "unfinished"]
    run = folder / broken.path
    code, text, _ = cli("report", run, "--provisional")
    assert code == 0
    assert "provisional: no ranks and no intervals" in text
    code, text, _ = cli("--json", "report", run, "--provisional")
    document = json.loads(text)
    [row] = document["rows"]
    assert document["finished"] is False
    assert (row["model"], row["answered"], row["failed"], row["scored"]) == ("bad", 9, 1, 9)
    scores = [s.score for s in medassay.open_run(run).scores() if s.score is not None]
    assert row["mean"] == sum(scores) / len(scores)
    assert "rank" not in text
    code, text, _ = cli("report", run)
    assert code == 4
    code, text, _ = cli("show", "law-01", "--run", run)
    assert code == 0
    assert "bad · zero_shot · solo · repeat 0: '' → None (unparsed" in text
    code, text, _ = cli("--json", "report", first.path, "--provisional")
    assert json.loads(text)["rows"][0]["mean"] == first.leaderboard.rows()[0].score
    code, _, errors = cli("report", run, "--provisional", "--by", "category")
    assert (code, "goes with nothing else" in errors) == (2, True)


def test_a_trial_has_its_hash_before_the_run_is_sealed(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake("m", reply="A"))
    plan = makers.write_plan(tmp_path, models=["m"], budget={"calls": 6})
    with pytest.raises(IncompleteError):
        pipeline.run(plan, secrets={})
    [folder] = (tmp_path / "runs").iterdir()
    run = medassay.open_run(folder)
    item = next(trial.item for trial in run.trials() if trial.outcome == "answered")
    before = medassay.show(item, run)
    sealed = medassay.run(makers.write_plan(tmp_path, models=["m"]), secrets={})
    after = medassay.show(item, sealed)
    assert before.trials[0].sha256 == after.trials[0].sha256
    assert before.trials[0].score == after.trials[0].score
    assert medassay.show(after.trials[0].sha256[:12], sealed).trials == after.trials
