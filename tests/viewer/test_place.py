"""What a viewer is started on: a workspace, a run, a place in an object store."""

import time

import pytest
from tests import makers

import medassay
from medassay.errors import IncompleteError, InputError
from medassay.runner.overview import overview
from medassay.storage.run import lock_run, open_run
from medassay.viewer.place import ViewedPlace


@pytest.fixture
def unfinished(tmp_path, cache):
    """Return a workspace with a run that lacks one answer."""
    plan = makers.workspace(
        tmp_path / "w",
        makers.law_items(),
        {**makers.fake("m", reply="A", fail_items=["law-03"]), "price": {"input": 1, "output": 1}},
        name="broken",
    )
    with pytest.raises(IncompleteError):
        medassay.run(plan, secrets={})
    return tmp_path / "w"


def test_a_workspace_lists_its_runs_as_medassay_runs_does(sealed, unfinished):
    for workspace in (sealed.path.parents[1], unfinished):
        place = ViewedPlace(str(workspace))
        for run in overview(str(workspace)):
            shown = place.summary(run.run)
            assert (shown.plan, shown.state, shown.failed) == (run.plan, run.state, run.failed)
            assert shown.trials == run.trials + run.failed
            assert (shown.expected, shown.models) == (shown.trials, run.models)
            assert shown.spent == run.spent
        assert [run.name for run in place.summaries()] == place.names()
        place.stop()


def test_a_run_alone_is_shown_alone(sealed):
    place = ViewedPlace(str(sealed.path))
    assert place.only == sealed.path.name
    assert place.names() == [sealed.path.name]
    assert place.workspace == sealed.path.parents[1]
    place.stop()


def test_who_works_at_a_run_and_how_fast_it_grows(unfinished):
    place = ViewedPlace(str(unfinished))
    [name] = place.names()
    viewed = place.open(name)
    assert place.summary(name).state == "unfinished"
    with lock_run(viewed.run):
        assert place.summary(name).live
    assert place.summary(name).rate is None
    segment = next((viewed.run.path / "journal").iterdir())
    lines = segment.read_bytes()
    viewed._samples[0] = (time.monotonic() - 30, viewed._samples[0][1])
    (viewed.run.path / "journal" / "d-0.jsonl").write_bytes(
        lines.replace(b'"item":"law-0', b'"item":"law-9').replace(b'"failed"', b'"answered"')
    )
    viewed.index.catch_up()
    assert viewed.rate() == pytest.approx(20, rel=0.1)  # ten more in half a minute
    place.stop()


def test_a_run_sealed_meanwhile_is_opened_anew(unfinished):
    place = ViewedPlace(str(unfinished))
    [name] = place.names()
    assert not place.open(name).index.sealed
    medassay.run(unfinished / "plan.toml", secrets={}, accept_failures=True)
    assert place.open(name).index.sealed
    assert place.summary(name).state == "sealed"
    place.stop()


def test_the_process_that_indexes_reads_on_until_the_viewer_ends(unfinished):
    place = ViewedPlace(str(unfinished))
    place.start()
    [name] = place.names()
    viewed = place.open(name)
    segment = next((viewed.run.path / "journal").iterdir())
    with segment.open("ab") as file:
        file.write(segment.read_bytes().splitlines(keepends=True)[0].replace(b"law-00", b"law-77"))
    deadline = time.monotonic() + 60
    while viewed.index.n_trials < 11 and time.monotonic() < deadline:
        place.open(name)
        time.sleep(0.05)
    assert viewed.index.n_trials == 11
    follower = place._follower
    place.stop()
    assert follower.wait(timeout=300) == 0


def test_a_damaged_manifest_is_told_and_the_others_are_listed(sealed):
    manifest = sealed.path / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_text('{"run": 3}')
    [shown] = ViewedPlace(str(sealed.path.parents[1])).summaries()
    assert shown.state == "unreadable"
    assert "manifest.json" in shown.reason


def test_a_place_without_runs_and_a_run_that_is_not_there_are_told(tmp_path, sealed):
    with pytest.raises(InputError, match="no workspace and no run; expected a folder with runs/"):
        ViewedPlace(str(tmp_path / "nowhere"))
    place = ViewedPlace(str(sealed.path.parents[1]))
    for name in ("other", "../runs", "", ".."):
        with pytest.raises(InputError, match="no run"):
            place.open(name)


def test_a_run_in_an_object_store_is_shown_and_read_on(machine, tmp_path):
    address = f"{machine.bucket}/work"
    plan = makers.workspace(tmp_path / "w", makers.law_items(), makers.fake("m", reply="A"))
    run = medassay.run(plan, workspace=address, secrets={})
    machine("two")
    for where in (address, f"{address}/runs/{run.path.name}"):
        place = ViewedPlace(where)
        [shown] = place.summaries()
        assert (shown.name, shown.state, shown.trials) == (run.path.name, "sealed", 10)
        assert place.called == where
        assert open_run(place.open(shown.name).run.path).sealed
        place.stop()
    with pytest.raises(InputError, match="no runs are there"):
        ViewedPlace(f"{machine.bucket}/nothing")


def test_a_run_that_another_machine_goes_on_with_is_fetched_again(machine, tmp_path, monkeypatch):
    monkeypatch.setattr("medassay.viewer.place._PULL_EVERY", 0.2)
    address = f"{machine.bucket}/work"
    plan = makers.workspace(
        tmp_path / "w", makers.law_items(), makers.fake("m", reply="A", fail_items=["law-03"])
    )
    with pytest.raises(IncompleteError):
        medassay.run(plan, workspace=address, secrets={})
    machine("two")
    place = ViewedPlace(address)
    [shown] = place.summaries()
    assert (shown.state, shown.trials, shown.failed) == ("unfinished", 10, 1)
    place.start()
    machine("one")
    medassay.run(plan, workspace=address, secrets={}, accept_failures=True)
    machine("two")
    deadline = time.monotonic() + 60
    while place.summary(shown.name).state != "sealed" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert place.summary(shown.name).state == "sealed"
    place.stop()
