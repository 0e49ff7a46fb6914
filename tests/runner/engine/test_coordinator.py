"""Many workers do what one process does, whatever happens to them.

The workers here share a process, Ray's do not.
"""

import asyncio
import threading
import time
from collections import Counter

import pytest
from tests import makers
from tests.commands import requests_in, wait_for_requests
from tests.runner.engine.in_process import InProcessWorker
from tests.runner.engine.scripted_workers import keys_of, sealed, workspace

import medassay
from medassay import pipeline
from medassay.errors import IncompleteError, InputError, Interrupted, Permanent
from medassay.runner import stages
from medassay.runner.ask import Tally, wait_while_in_doubt
from medassay.runner.engine import coordinator
from medassay.runner.engine.worker import Worker
from medassay.storage.jsonl import read_jsonl


def test_many_workers_seal_what_one_process_seals(tmp_path, mock_server, in_process):
    log = tmp_path / "asked"
    models = [makers.endpoint(mock_server("--log", log, "--fail", "0.1"))]
    models += [
        makers.fake("scripted", letters="hash"),
        {"id": "base", "provider": "baseline", "model": "majority"},
    ]
    items = makers.many_items(300)
    options = {"repeats": 2, "shuffle_options": True, "engine": {"shard": 40}}
    alone = medassay.run(workspace(tmp_path / "a", items, *models, **options), secrets={})
    once = requests_in(log)
    engines = in_process()
    plan = workspace(tmp_path / "b", items, *models, **options)
    many = medassay.run(plan, secrets={}, engine="in_process")
    assert sealed(many) == sealed(alone)
    assert many.id == alone.id
    assert requests_in(log) - once == once
    assert len([handle for handle in engines[0].handles if handle.beats]) == 3
    assert not (many.path / "leases").exists()
    assert not (many.path / "journal").exists()


@pytest.mark.parametrize("beat", [1, 2, 3, 5, "leave"])
def test_a_lost_workers_shards_are_taken_over_and_no_journalled_answer_is_asked_again(
    tmp_path, mock_server, in_process, beat
):
    log = tmp_path / "asked"
    items = makers.many_items(600)
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "4"), concurrency=12)
    plan = workspace(tmp_path, items, model, engine={"shard": 50})
    lost = []

    def lose(name, now):
        # One worker in three, at its first, second … beat; whoever takes its place lives.
        if now == beat and not lost:
            lost.append(name)
            return True
        return False

    in_process(lose=lose)
    run = medassay.run(plan, secrets={}, engine="in_process")
    assert lost
    assert len((run.path / "trials.jsonl").read_text().splitlines()) == 600
    stored = Counter(
        key for path in (tmp_path / "responses").glob("*.jsonl.zst") for key in keys_of(path)
    )
    assert not list((tmp_path / "responses").glob("active-*"))
    # What was under way when the worker died may be asked again, nothing else.
    twice = sum(times - 1 for times in requests_in(log).values())
    assert twice <= 12
    assert max(stored.values()) == 1


def test_a_run_cut_off_here_is_finished_by_many_and_the_reverse(tmp_path, mock_server, in_process):
    log = tmp_path / "asked"
    in_process()
    items = makers.many_items(200)
    model = makers.endpoint(mock_server("--log", log))
    whole = medassay.run(workspace(tmp_path / "whole", items, model), secrets={})
    log.write_text("")
    for first, second in (("local", "in_process"), ("in_process", "local")):
        folder = tmp_path / first
        budget = {"budget": {"calls": 70}}
        with pytest.raises(IncompleteError, match="the budget is spent"):
            medassay.run(workspace(folder, items, model, **budget), secrets={}, engine=first)
        assert sum(requests_in(log).values()) == 70
        run = medassay.run(workspace(folder, items, model), secrets={}, engine=second)
        assert sealed(run) == sealed(whole)
        assert sum(requests_in(log).values()) == 200
        log.write_text("")


def test_many_workers_stop_at_a_budget_of_calls_to_the_call(tmp_path, mock_server, in_process):
    log = tmp_path / "asked"
    in_process(workers=4)
    model = makers.endpoint(mock_server("--log", log), concurrency=16)
    plan = workspace(
        tmp_path,
        makers.many_items(400),
        model,
        budget={"calls": 123},
        engine={"shard": 20},
    )
    with pytest.raises(IncompleteError, match="the budget is spent"):
        medassay.run(plan, secrets={}, engine="in_process")
    assert sum(requests_in(log).values()) == 123


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("budget", [{"calls": 50}, {"tokens": 6000}])
def test_a_budget_ends_a_run_of_more_workers_than_the_endpoint_bears(
    tmp_path, in_process, mock_server, workers, budget
):
    """A worker whose share of an endpoint is nothing still ends, and reserves go to whoever needs
    more.
    """
    in_process(workers=workers)
    model = makers.endpoint(mock_server(), concurrency=2, max_tokens=400)
    plan = workspace(tmp_path, makers.many_items(300), model, budget=budget, engine={"shard": 20})
    with pytest.raises(IncompleteError, match="the budget is spent"):
        medassay.run(plan, secrets={}, engine="in_process")
    assert not list((tmp_path / "runs").glob("*/leases/*"))


def test_ctrl_c_ends_workers_that_may_not_ask(tmp_path, in_process, mock_server):
    log = tmp_path / "asked"
    engines = in_process(workers=3)
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "5"), concurrency=1)
    plan = workspace(tmp_path, makers.many_items(400), model, engine={"shard": 50})

    def interrupt():
        wait_for_requests(log, 20)
        engines[0].stage_job.stop.ask()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted, match="of 400 trials are answered and kept"):
        medassay.run(plan, secrets={}, engine="in_process")
    thread.join()
    assert not list((tmp_path / "runs").glob("*/leases/*"))
    medassay.run(plan, secrets={})
    assert max(requests_in(log).values()) == 1


@pytest.mark.parametrize("shard", [1, 2])
def test_the_smallest_shards_are_given_out_too(tmp_path, in_process, shard):
    in_process()
    plan = workspace(
        tmp_path, makers.many_items(30), makers.fake(reply="A"), engine={"shard": shard}
    )
    assert medassay.run(plan, secrets={}, engine="in_process").sealed


def test_a_worker_without_further_models_leaves_its_place_to_others(
    tmp_path, in_process, monkeypatch
):
    """Two pools of one model each where only one worker finds room: the second begins when the
    first is done.
    """
    engines = in_process(workers=2)
    room = asyncio.Semaphore(1)
    real_ready, real_leave = InProcessWorker.ready, InProcessWorker.leave
    names = iter((frozenset(["a"]), frozenset(["b"])))
    real_init = InProcessWorker.__init__

    def init(self, engine, name):
        real_init(self, engine, name)
        self.models = next(names)

    async def ready(self):
        await room.acquire()
        await real_ready(self)

    async def leave(self):
        report = await real_leave(self)
        room.release()
        return report

    monkeypatch.setattr(InProcessWorker, "__init__", init)
    monkeypatch.setattr(InProcessWorker, "ready", ready)
    monkeypatch.setattr(InProcessWorker, "leave", leave)
    models = [makers.fake("a", reply="A"), makers.fake("b", reply="B")]
    plan = workspace(tmp_path, makers.many_items(40), *models, engine={"shard": 10})
    assert medassay.run(plan, secrets={}, engine="in_process").sealed
    assert [len(handle.models) for handle in engines[0].handles] == [1, 1]


def test_a_worker_that_freezes_when_it_is_to_leave_is_given_up(tmp_path, in_process, monkeypatch):
    engines, frozen = in_process(workers=2), []
    real_leave = InProcessWorker.leave

    async def leave(self):
        if frozen:
            return await real_leave(self)
        frozen.append(self.name)
        await self.die()  # its process is stopped, say: no lease is renewed, no word is said
        await asyncio.Event().wait()

    monkeypatch.setattr(InProcessWorker, "leave", leave)
    plan = workspace(tmp_path, makers.many_items(60), makers.fake(letters="hash"))
    run = medassay.run(plan, secrets={}, engine="in_process")
    assert frozen
    assert len(engines[0].handles) == 2
    alone = workspace(tmp_path / "alone", makers.many_items(60), makers.fake(letters="hash"))
    assert sealed(run) == sealed(medassay.run(alone, secrets={}))


def test_a_worker_whose_lease_is_refused_is_heard_and_ends_the_run(
    tmp_path, in_process, monkeypatch
):
    from medassay.runner.engine.lease import Lease

    in_process()
    real, times = Lease.renew, []

    def refuse(self):
        times.append(1)
        if len(times) > 6:
            raise InputError("the object store refuses: 403")
        real(self)

    monkeypatch.setattr(Lease, "renew", refuse)
    model = makers.fake(reply="A", delay=0.05)
    plan = workspace(tmp_path, makers.many_items(400), model, engine={"shard": 50})
    with pytest.raises(InputError, match="the object store refuses: 403"):
        medassay.run(plan, secrets={}, engine="in_process")


def test_one_budget_holds_for_answers_and_verdicts_together(tmp_path, in_process, mock_server):
    in_process()
    tested = [makers.fake("m1", reply="Rule binds courts.")]
    names = [judge["id"] for judge in makers.judges()]
    for engine in ("local", "in_process"):
        plan = workspace(
            tmp_path / engine,
            makers.open_items(20),
            *tested,
            *makers.judges(),
            task="open",
            judges=names,
            budget={"calls": 50},
            engine={"shard": 4},
        )
        with pytest.raises(IncompleteError, match="30 verdicts are missing: the budget is spent"):
            medassay.run(plan, secrets={}, engine=engine)


def test_ctrl_c_is_heard_before_any_worker_is_ready(tmp_path, in_process, monkeypatch):
    async def never(self):
        await asyncio.Event().wait()

    engines = in_process()
    monkeypatch.setattr("tests.runner.engine.in_process.InProcessWorker.ready", never)
    plan = workspace(tmp_path, makers.many_items(5), makers.fake(reply="A"))

    def interrupt():
        while not (engines and engines[0].handles):
            time.sleep(0.01)
        engines[0].stage_job.stop.ask()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted, match="0 of 5 trials"):
        medassay.run(plan, secrets={}, engine="in_process")
    thread.join()


def test_where_no_worker_ever_comes_the_run_ends_and_says_why(tmp_path, in_process, monkeypatch):
    async def never(self):
        await asyncio.Event().wait()

    in_process()
    monkeypatch.setattr("tests.runner.engine.in_process.InProcessWorker.ready", never)
    monkeypatch.setattr(coordinator, "NO_WORKER_ARRIVED", 0.5)
    plan = workspace(tmp_path, makers.many_items(5), makers.fake(reply="A"))
    with pytest.raises(IncompleteError, match="no worker was ready within"):
        medassay.run(plan, secrets={}, engine="in_process")


def test_workers_that_die_again_and_again_end_the_run(tmp_path, in_process, monkeypatch):
    monkeypatch.setattr(coordinator, "_MOST_DEATHS", 3)
    in_process(workers=1, lose=lambda name, beat: True)
    plan = workspace(tmp_path, makers.many_items(5), makers.fake(reply="A"))
    with pytest.raises(IncompleteError, match="lost one after the other"):
        medassay.run(plan, secrets={}, engine="in_process")


def test_failures_are_told_together_and_asked_again_by_the_same_command(tmp_path, in_process):
    in_process()
    items = makers.many_items(90)
    bad = [item["id"] for item in items[:7]]
    plan = workspace(tmp_path, items, makers.fake(fail_items=bad, reply="A"), engine={"shard": 10})
    with pytest.raises(IncompleteError, match=r"7 trials have no answer: 7 failed \(7 × "):
        medassay.run(plan, secrets={}, engine="in_process")
    run = pipeline.run(plan, secrets={}, engine="in_process", accept_failures=True)
    outcomes = Counter(trial["outcome"] for trial in read_jsonl(run.path / "trials.jsonl"))
    assert outcomes == {"answered": 83, "failed": 7}


def test_a_disk_that_is_full_at_one_worker_ends_the_pass_and_loses_nothing(
    tmp_path, mock_server, in_process, monkeypatch
):
    from medassay.runner.engine import worker

    log = tmp_path / "asked"
    in_process()
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "2"), concurrency=6)
    plan = workspace(tmp_path, makers.many_items(300), model, engine={"shard": 25})
    written = [0]
    real = worker.SegmentWriter.append

    def append(self, *line):
        written[0] += 1
        if written[0] > 100:
            raise OSError(28, "No space left on device")
        real(self, *line)

    monkeypatch.setattr(worker.SegmentWriter, "append", append)
    with pytest.raises(OSError, match="No space left"):
        medassay.run(plan, secrets={}, engine="in_process")
    monkeypatch.setattr(worker.SegmentWriter, "append", real)
    run = medassay.run(plan, secrets={}, engine="in_process")
    # Replies that were in the store but not in the journal are replayed.
    assert max(requests_in(log).values()) == 1
    assert medassay.verify(run.path).ok


def test_verdicts_are_given_by_many_as_by_one(tmp_path, in_process):
    in_process()
    tested = [makers.fake("m1", reply="Rule binds courts."), makers.fake("m2", reply="No.")]
    options = {
        "task": "open",
        "judges": [judge["id"] for judge in makers.judges()],
        "engine": {"shard": 5},
    }
    found = []
    for engine in ("local", "in_process"):
        plan = workspace(
            tmp_path / engine, makers.open_items(24), *tested, *makers.judges(), **options
        )
        found.append(medassay.run(plan, secrets={}, engine=engine))
    assert sealed(found[0]) == sealed(found[1])
    # Seconds of scripted judges are 0, so even verdicts are the same bytes.
    one, many = (run.path / "verdicts.jsonl" for run in found)
    assert one.read_bytes() == many.read_bytes()


def test_a_worker_that_hears_nobody_begins_no_further_call(tmp_path, in_process, mock_server):
    """So a run that was taken over is not asked twice by workers whose coordinator died."""
    log = tmp_path / "asked"
    engines = in_process()
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "5"), concurrency=2)
    plan = workspace(tmp_path, makers.many_items(500), model, engine={"shard": 500})
    real = Worker.beat
    counts = []

    async def deaf(self, orders):
        report = await real(self, orders)
        if len(counts) < 1:
            counts.append(requests_in(log).total())
            await asyncio.sleep(1.0)  # longer than DEAD_AFTER / 2
            counts.append(requests_in(log).total())
            await asyncio.sleep(0.5)
            counts.append(requests_in(log).total())
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "beat", deaf)
        patch.setattr("medassay.runner.engine.coordinator.DEAD_AFTER", 5.0)
        engines.clear()
        in_process(workers=1)
        medassay.run(plan, secrets={}, engine="in_process")
    assert counts[0] < counts[1] == counts[2] < 500
    assert max(requests_in(log).values()) == 1


def test_the_plan_says_how_it_is_spread_and_is_the_same_plan(tmp_path):
    items = makers.many_items(4)
    one = medassay.load_plan(workspace(tmp_path, items, makers.fake()))
    path = workspace(tmp_path, items, makers.fake(), engine={"workers": 3, "shard": 7})
    path.write_text(path.read_text() + "[engine.replicas]\nm = 2\n")
    other = medassay.load_plan(path)
    assert one.hash == other.hash
    assert other.engine.replicas == {"m": 2}
    with pytest.raises(InputError, match=r"'engine.replicas' names 'm', whose weights are not"):
        medassay.run(path, secrets={})
    path.write_text(path.read_text().replace("= 7", "= 0"))
    with pytest.raises(InputError, match=r"'engine.shard' is 0; 1 to"):
        medassay.load_plan(path)
    with pytest.raises(InputError, match="engine 'dask': expected local or ray"):
        medassay.run(workspace(tmp_path, items, makers.fake(reply="A")), secrets={}, engine="dask")
    assert not (tmp_path / "runs").exists()


@pytest.mark.local_model
def test_many_workers_measure_relaxed_perplexity_as_one_process_does(tmp_path, weights, in_process):
    engines = in_process(workers=2)
    items = makers.open_items(6)
    for item in items:
        item["reference"] = f"{item['question']} It binds courts, with exceptions."
    tiny = {"id": "tiny", "provider": "transformers", "path": str(weights), "device": "cpu"}
    options = {"task": "open", "engine": {"shard": 2}}
    found = {}
    for name in ("local", "in_process"):
        plan = workspace(tmp_path / name, items, tiny, **options)
        setting = "{samples = 3, keep = 2, stride = 4, max_tokens = 8}"
        text = plan.read_text()
        plan.write_text(text.replace("\n[", f"\nrelaxed_perplexity = {setting}\n[", 1))
        found[name] = medassay.run(plan, secrets={}, engine=name)
    assert sum(bool(handle.beats) for handle in engines[0].handles) == 2
    [alone], [many] = (medassay.leaderboard(r).domains["overall"] for r in found.values())
    assert alone["metric"].startswith("relaxed_perplexity")
    assert many["score"] == pytest.approx(alone["score"], rel=1e-6)
    one, other = (list(read_jsonl(run.path / "trials.jsonl")) for run in found.values())
    assert [trial["drawn"] for trial in one] == [trial["drawn"] for trial in other]


def test_before_each_call_it_is_made_sure_that_nobody_took_the_work_over():
    doubt, stop, began = [True], [False], time.monotonic()

    async def check():
        asyncio.get_running_loop().call_later(0.15, doubt.clear)
        await wait_while_in_doubt(lambda: bool(doubt), lambda: stop[0])
        assert time.monotonic() - began > 0.1
        doubt.append(True)
        stop[0] = True
        with pytest.raises(Permanent, match="may have taken this work over"):
            await wait_while_in_doubt(lambda: bool(doubt), lambda: stop[0])

    asyncio.run(check())


@pytest.mark.parametrize(
    ("engine", "module"), [("local", "engine.local"), ("in_process", "engine.worker")]
)
def test_nobody_is_called_where_that_is_not_sure(
    tmp_path, in_process, mock_server, monkeypatch, engine, module
):
    log = tmp_path / "asked"
    in_process()
    plan = workspace(tmp_path, makers.many_items(8), makers.endpoint(mock_server("--log", log)))

    async def unsure(in_doubt, stopped):
        raise Permanent("not asked")

    monkeypatch.setattr(f"medassay.runner.{module}.wait_while_in_doubt", unsure)
    with pytest.raises(IncompleteError, match=r"8 failed .*not asked"):
        medassay.run(plan, secrets={}, engine=engine)
    assert not requests_in(log)
    monkeypatch.undo()
    assert medassay.run(plan, secrets={}).sealed


def test_failures_that_were_counted_twice_are_accepted_but_not_what_was_never_asked(tmp_path):
    """A unit that failed before its worker was lost fails again elsewhere: the count is more than
    the units.
    """
    run = medassay.run(
        workspace(tmp_path, makers.many_items(3), makers.fake(reply="A")), secrets={}
    )
    refuse = stages.refuse_incomplete
    refuse(run, "trials have no answer", 2, Tally(failed=4), True)
    for left, tally in (
        (5, Tally(failed=4)),
        (2, Tally(failed=4, over_budget="the budget is spent")),
    ):
        with pytest.raises(IncompleteError):
            refuse(run, "trials have no answer", left, tally, True)
