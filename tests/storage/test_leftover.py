"""Cleaning up removes what nobody needs, and nothing that a site, a ledger or a run names."""

import json

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.core.log import log
from medassay.errors import IncompleteError
from medassay.storage.run import lock_run, open_run


@pytest.fixture
def used(tmp_path):
    """Return a workspace: one run published, one superseded, the last of its plan, and one
    unfinished of another plan.
    """
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(
        tmp_path, makers.fake("m", reply="A"), makers.fake("bad", fail_items=["q1", "law-1"])
    )
    plan = makers.write_plan(tmp_path, models=["m"])
    first = medassay.run(plan, secrets={})
    medassay.publish(first, tmp_path / "site", publication="one")
    second = pipeline.run(plan, secrets={}, fresh=True)
    third = pipeline.run(plan, secrets={}, fresh=True)
    unfinished = makers.write_plan(
        tmp_path, models=["m"], budget={"calls": 1}, seed=5, few_shot_k=2
    )
    with pytest.raises(IncompleteError):
        medassay.run(unfinished, secrets={}, workspace=tmp_path)
    [left] = [p for p in (tmp_path / "runs").iterdir() if not (p / "seal.json").exists()]
    (tmp_path / "responses" / "x.part").write_bytes(b"half")
    return tmp_path, first, second, third, left


def test_what_may_go_is_shown_and_removed_after_asking(used, cli):
    folder, first, second, third, left = used
    replies = sorted(p.name for p in (folder / "responses").glob("*.zst"))
    code, out, _ = cli("--json", "clean", folder)
    found = {(one["kind"], one["path"].rpartition("/")[2]) for one in json.loads(out)["leftovers"]}
    assert code == 0
    assert found == {
        ("unfinished", left.name),
        ("superseded", second.id),
        ("orphaned", "x.part"),
    }
    code, out, errors = cli("clean", folder)
    assert (code, "--yes is needed" in errors) == (2, True)
    assert left.exists()
    code, out, _ = cli("clean", folder, "--yes", "--only", "superseded")
    assert (code, second.path.exists(), left.exists()) == (0, False, True)
    code, out, _ = cli("clean", folder, "--yes")
    assert (code, left.exists()) == (0, False)
    assert first.path.exists()
    assert third.path.exists()
    assert sorted(p.name for p in (folder / "responses").glob("*.zst")) == replies
    assert medassay.verify(folder / "site").ok
    code, out, _ = cli("clean", folder)
    assert (code, out.strip()) == (0, "nothing to remove")


def test_a_run_at_which_somebody_works_is_left_alone(used, cli):
    folder, *_, left = used
    with lock_run(open_run(left)):
        assert cli("clean", folder, "--yes")[0] == 0
    assert left.exists()


def test_a_run_of_a_site_elsewhere_is_kept(used, cli, tmp_path_factory):
    folder, _, second, _, _ = used
    site = tmp_path_factory.mktemp("far") / "site"
    medassay.publish(second, site, publication="two")
    assert cli("clean", folder, "--yes", "--site", site)[0] == 0
    assert second.path.exists()


def test_the_run_that_a_fresh_one_is_held_against_is_kept_and_named(tmp_path, cli):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake("m", reply="A"))
    plan = makers.write_plan(tmp_path, models=["m"])
    stored = medassay.run(plan, secrets={})
    fresh = pipeline.run(plan, secrets={}, fresh=True)
    for name, text in (("x-1", '{"run":"x-1"}'), ("y-1", "{")):  # of no version, and damaged
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "manifest.json").write_text(text)
    code, out, _ = cli("clean", tmp_path, "--yes")
    assert (code, [path.name for path in (tmp_path / "runs").glob("[xy]-1")]) == (0, [])
    assert stored.path.exists()
    code, out, _ = cli("--json", "runs", tmp_path)
    origins = {run["run"]: run["made_from"] for run in json.loads(out)["runs"]}
    assert (code, origins) == (0, {stored.id: "", fresh.id: f"asked anew: {stored.id}"})


def test_a_finished_plan_makes_no_second_run(used, cli):
    folder, *_ = used
    plan = makers.write_plan(folder, models=["m"])
    before = sorted((folder / "runs").iterdir())
    log._said.clear()  # the same is told once a minute, and other tests have runs of this id
    code, _, errors = cli("run", plan)
    assert code == 0
    assert "of this plan is finished, nothing is asked" in errors
    assert sorted((folder / "runs").iterdir()) == before


def test_no_workspace_is_told(tmp_path, cli):
    code, _, errors = cli("clean", tmp_path)
    assert (code, "expected a folder with runs/ or responses/" in errors) == (3, True)
