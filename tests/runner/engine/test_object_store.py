"""Many workers on a run in an object store: nothing counts before it is there."""

import pytest
from tests import makers
from tests.commands import requests_in
from tests.runner.engine.scripted_workers import sealed, workspace

import medassay
from medassay.runner.engine.worker import Worker
from medassay.runner.rescore import rescore
from medassay.storage.object_store import Mirror, localize


@pytest.mark.slow
def test_workers_on_an_object_store_seal_what_one_process_seals(tmp_path, in_process, machine):
    in_process()
    tested = [makers.fake("m1", reply="Rule binds courts."), makers.fake("m2", reply="No.")]
    options = {"task": "open", "judges": [j["id"] for j in makers.judges()]}
    models, items = [*tested, *makers.judges()], makers.open_items(20)
    plan = workspace(tmp_path / "plan", items, *models, engine={"shard": 5}, **options)
    folder = medassay.run(plan, secrets={}, workspace=tmp_path / "folder")
    run = medassay.run(plan, secrets={}, workspace=f"{machine.bucket}/shop", engine="in_process")
    assert sealed(run) == sealed(folder)
    names = Mirror(f"{machine.bucket}/shop").listed()
    assert not [
        n for n in names if "@" in n or "lease" in n or "/journal/" in n or "/verdicts/" in n
    ]
    machine("two")
    again = rescore(localize(f"{machine.bucket}/shop/runs/{run.id}"), engine="in_process")
    assert medassay.verify(again.path).ok


@pytest.mark.slow
def test_a_worker_lost_before_its_records_reached_the_store_has_finished_nothing(
    tmp_path, in_process, machine, mock_server, monkeypatch
):
    log, kept = tmp_path / "asked", []

    def lose(name, beat):
        if beat == 6 and not kept:
            kept.append(name)
            return True
        return False

    engines, real = in_process(workers=1, lose=lose), Worker._keep_safe
    monkeypatch.setattr(
        Worker, "_keep_safe", lambda self: self._pages.sync() if not kept else real(self)
    )
    model = makers.endpoint(mock_server("--log", log), concurrency=4)
    plan = workspace(tmp_path, makers.many_items(120), model, engine={"shard": 10})
    # What the lost worker wrote is on this machine: the pass takes it from there, and asks the
    # rest.
    run = medassay.run(plan, secrets={}, workspace=f"{machine.bucket}/shop", engine="in_process")
    assert kept
    assert len(engines[0].handles) == 2
    assert len((run.path / "trials.jsonl").read_text().splitlines()) == 120
    assert sum(times - 1 for times in requests_in(log).values()) <= 4
