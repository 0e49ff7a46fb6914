"""Runs, replies and sites in a real S3 server (moto's), each machine with a cache of its own."""

import json
import sys
import threading
import time

import pytest
from tests import makers
from tests.commands import requests_in, result_of, start_command, wait_for_requests
from tests.makers import workspace

import medassay
from medassay import pipeline
from medassay.errors import IncompleteError, InputError
from medassay.runner.engine import lease
from medassay.runner.rescore import rescore
from medassay.storage.object_store import Mirror, localize, mirror_of, remote
from medassay.storage.object_store import mirror as mirrors
from medassay.storage.response import ResponseStore


def sealed(path):
    return {
        name: (path / name).read_bytes()
        for name in ("items.jsonl", "trials.jsonl", "scores.jsonl", "statistics.json")
    }


def test_a_growing_file_arrives_elsewhere_line_by_line_and_never_a_torn_one(machine):
    mirror = Mirror(f"{machine.bucket}/shop")
    path = mirror.folder / "runs" / "r-1" / "journal" / "00000.jsonl"
    path.parent.mkdir(parents=True)
    mirror.follow(lambda: path)
    mirror.flush()  # not there yet
    path.write_bytes(b"one\ntwo\nto")
    mirror.flush()
    assert mirror.carried(path) == 8
    path.write_bytes(b"one\ntwo\ntorn\nthree\n")
    mirror.flush()
    assert mirror.carried(path) == path.stat().st_size
    machine("two")
    other = Mirror(f"{machine.bucket}/shop")
    assert other.folder != mirror.folder
    other.pull()
    assert (other.folder / path.relative_to(mirror.folder)).read_bytes() == path.read_bytes()
    # What is there already is not appended again.
    other.pull()
    assert (other.folder / path.relative_to(mirror.folder)).read_bytes() == path.read_bytes()


def test_an_object_whose_name_leads_out_of_the_folder_is_refused(machine, tmp_path):
    mirror = Mirror(f"{machine.bucket}/shop")
    mirror._files.pipe_file(f"{machine.bucket}/shop/x/../../../evil", b"x")
    with pytest.raises(InputError, match="an object is named"):
        mirror.pull()
    assert not list(tmp_path.rglob("evil"))


def test_a_run_in_an_object_store_is_the_run_of_a_folder_and_is_read_from_its_address(
    tmp_path, machine, cli
):
    items = makers.many_items(40)
    plan = workspace(tmp_path / "plan", items, makers.fake(letters="hash"))
    folder = medassay.run(plan, secrets={}, workspace=tmp_path / "folder")
    address = f"{machine.bucket}/shop"
    run = medassay.run(plan, secrets={}, workspace=address)
    assert sealed(run.path) == sealed(folder.path)
    names = Mirror(address).listed()
    assert f"runs/{run.id}/seal.json" in names
    assert not [name for name in names if "@" in name or "/journal/" in name or "lease" in name]
    # The seal comes last: what has one is whole.
    puts = [path for path in machine.store.puts if f"/runs/{run.id}/" in path]
    puts = [path for path in puts if "/leases/" not in path]  # renewed until the process ends
    assert puts[-1].endswith("seal.json")
    machine("two")
    place = f"{address}/runs/{run.id}"
    assert cli("verify", place)[0] == 0
    code, out, _ = cli("report", place, "--json")
    assert code == 0
    assert json.loads(out)["run"] == run.id
    # Another machine finds the replies: the plan again asks for nothing.
    code, out, errors = cli("run", plan, "--workspace", address, "--plan", "--json")
    assert code == 0, errors
    assert json.loads(out)["models"][0]["stored"] == 40


def answers_in_store(address):
    """Return how many answers of runs lie in an object store."""
    return sum(
        content.count(b"\n")
        for name, content in Mirror(address).contents("runs").items()
        if "/journal/" in name
    )


@pytest.mark.slow
def test_a_run_killed_on_one_machine_is_finished_on_another_and_asks_nothing_twice(
    tmp_path, machine, mock_server, monkeypatch
):
    log = tmp_path / "asked"
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "20"), concurrency=4)
    plan = workspace(tmp_path / "plan", makers.many_items(1500), model)
    address = f"{machine.bucket}/shop"
    process = start_command("run", plan, "--workspace", address, "--quiet")
    wait_for_requests(log, 300, process)
    while not answers_in_store(address):  # on a loaded machine the first come late
        assert process.poll() is None
        assert requests_in(log).total() < 1400
        time.sleep(0.05)
    process.kill()
    result_of(process)
    killed, safe = requests_in(log).total(), answers_in_store(address)
    assert safe <= killed < 1500
    machine("two")
    monkeypatch.setattr(lease, "DEAD_AFTER", 1.0)
    monkeypatch.setattr(lease, "_RENEW_EVERY", 0.2)
    with pytest.warns(UserWarning, match="may still be at work"):
        run = medassay.run(plan, secrets={}, workspace=address)
    # What lay on the dead machine alone, at most the last seconds, is asked again; nothing that was
    # safe.
    assert requests_in(log).total() <= 1500 + killed - safe + 4
    assert len((run.path / "trials.jsonl").read_text().splitlines()) == 1500
    assert mirror_of(run.path).address == address
    left = [name for name in Mirror(address).listed("responses") if "@" in name]
    assert left == []


@pytest.mark.slow
def test_a_store_that_answers_503_for_a_while_loses_nothing(
    tmp_path, machine, mock_server, monkeypatch
):
    log = tmp_path / "asked"
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "10"), concurrency=4)
    plan = workspace(tmp_path / "plan", makers.many_items(800), model)

    before = machine.store.refused

    def outage():
        wait_for_requests(log, 100)
        machine.store.shut = True
        deadline = time.monotonic() + 60
        while machine.store.refused < before + 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        machine.store.shut = False

    thread = threading.Thread(target=outage)
    thread.start()
    run = medassay.run(plan, secrets={}, workspace=f"{machine.bucket}/shop")
    thread.join()
    assert machine.store.refused >= before + 5
    assert max(requests_in(log).values()) == 1
    machine("two")
    assert medassay.verify(localize(f"{machine.bucket}/shop/runs/{run.id}")).ok


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "dead_after"), [("5", 60.0), ("40", 1.0)], ids=["end", "lease"])
def test_a_store_that_stays_away_stops_the_run_with_the_reason_and_the_same_command_goes_on(
    tmp_path, machine, mock_server, monkeypatch, cli, delay, dead_after
):
    # It is noticed at the end of the run, or before: by a lease that cannot be renewed.
    log = tmp_path / "asked"
    monkeypatch.setattr(mirrors, "PATIENCE", 1.0)
    monkeypatch.setattr(lease, "DEAD_AFTER", dead_after)
    monkeypatch.setattr(lease, "_RENEW_EVERY", 0.2)
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", delay), concurrency=4)
    plan = workspace(tmp_path / "plan", makers.many_items(600), model)

    def outage():
        wait_for_requests(log, 100)
        machine.store.shut = True

    thread = threading.Thread(target=outage)
    thread.start()
    code, _, errors = cli("run", plan, "--workspace", f"{machine.bucket}/shop")
    thread.join()
    assert code == 3
    assert "cannot " in errors
    assert "the same command carries it over" in errors
    assert "test-secret" not in errors
    machine.store.shut = False
    monkeypatch.setattr(lease, "DEAD_AFTER", 1.0)
    code, out, errors = cli("run", plan, "--workspace", f"{machine.bucket}/shop")
    assert code == 0, errors
    assert max(requests_in(log).values()) == 1
    machine("two")
    assert medassay.verify(localize(out.strip().splitlines()[-1].removeprefix("run "))).ok


def test_patience_with_a_store_ends_once_not_once_for_each_file(machine, monkeypatch):
    monkeypatch.setattr(mirrors, "PATIENCE", 1.0)
    calls = []

    def refused():
        calls.append(1)
        raise ConnectionError("the store stays away")

    def tries():
        calls.clear()
        with pytest.raises(OSError, match=r"asked for \d s"):
            Mirror(f"{machine.bucket}/shop")._patiently("store x", refused)
        return len(calls)

    assert (tries(), tries()) == (4, 1)
    # Once it has answered, patience begins anew; so does that with another store.
    assert Mirror(f"{machine.bucket}/shop").listed() == {}
    assert tries() == 4
    assert Mirror(f"{machine.bucket}/other").listed() == {}
    assert tries() == 1


def plain(name, content):
    if not name.endswith(".zst"):
        return content
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.decompress(content)


@pytest.mark.slow
def test_what_the_law_wants_gone_is_gone_from_the_object_store(tmp_path, machine, cli):
    items = makers.many_items(6)
    said = "Reply-of-one-person"
    replies = {item["id"]: said if n == 2 else "A" for n, item in enumerate(items)}
    plan = workspace(tmp_path, items, makers.fake(replies=replies))
    address = f"{machine.bucket}/shop"
    run = medassay.run(plan, secrets={}, workspace=address)
    machine("two")
    gone = items[2]["id"]
    code, out, errors = cli(
        "forget", gone, "--reason", "a request", "--workspace", address, "--yes"
    )
    assert code == 0, errors
    assert "1 stored replies deleted" in out
    for name, raw in Mirror(address).contents("").items():
        content = plain(name, raw)
        # The manifest holds the script of the scripted model.
        assert said.encode() not in content or name.endswith("manifest.json")
        assert items[2]["question"].encode() not in content
    machine("three")
    assert medassay.verify(localize(f"{address}/runs/{run.id}")).ok
    # The segment that held it is gone, too, not only joined by one without it.
    assert len([n for n in Mirror(address).listed("responses") if n.endswith(".zst")]) == 1
    # A machine that still has it does not bring it back with its next run.
    machine("one")
    assert any(said.encode() in plain(".zst", p.read_bytes()) for p in segments(address))
    more = workspace(tmp_path / "more", items, makers.fake(reply="B"))
    medassay.run(more, secrets={}, workspace=address)
    kept = Mirror(address).contents("responses")
    for content in (*kept.values(), *(path.read_bytes() for path in segments(address))):
        assert said.encode() not in plain(".zst", content)


def segments(address):
    return list((Mirror(address).folder / "responses").glob("*.zst"))


def test_what_a_dead_process_left_in_pieces_can_be_forgotten_too(machine):
    address = f"{machine.bucket}/shop"
    line = {"key": "k" * 64, "model": "m", "item": "q", "completion": {"text": "paid for"}}
    piece = f"{address}/responses/active-0123456789abcdef.jsonl@000000000000000"
    Mirror(address)._files.pipe_file(piece, json.dumps(line).encode() + b"\n")
    with (
        remote.changing(address) as folder,
        ResponseStore(folder / "responses") as store,
    ):
        assert store.purge(lambda record: record["item"] == "q") == 1
    assert all("@" not in name for name in Mirror(address).listed("responses"))
    machine("two")
    other = Mirror(address)
    other.pull("responses")
    with ResponseStore(other.folder / "responses") as store:
        assert store.get("k" * 64) is None


@pytest.mark.slow
def test_a_second_machine_waits_for_the_first_and_takes_its_sealed_run(
    tmp_path, machine, mock_server
):
    log = tmp_path / "asked"
    model = makers.endpoint(mock_server("--log", log, "--delay-ms", "60"), concurrency=4)
    plan = workspace(tmp_path / "plan", makers.many_items(900), model)
    address = f"{machine.bucket}/shop"
    first = start_command("run", plan, "--workspace", address, "--quiet")
    wait_for_requests(log, 100, first)
    machine("two")
    with pytest.warns(UserWarning, match="may still be at work"):
        run = medassay.run(plan, secrets={}, workspace=address)
    assert result_of(first)[0] == 0
    assert max(requests_in(log).values()) == 1
    assert [n for n in Mirror(address).listed("runs") if n.endswith("seal.json")] == [
        f"runs/{run.id}/seal.json"
    ]
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize("name", ["runs/r-1/journal/0.jsonl@000000000000000", "runs/r-1/lease"])
def test_what_vanished_since_it_was_listed_is_listed_again(machine, monkeypatch, name):
    """Another machine seals its run between the list and the fetch: its journal is gone, its sealed
    files are new.
    """
    address = f"{machine.bucket}/shop"
    store = Mirror(address)
    store._files.pipe_file(f"{address}/{name}".removeprefix("s3://"), b"one\n")
    machine("two")
    other, listed = Mirror(address), Mirror.listed
    names = []

    def listed_then_sealed(mirror, under=""):
        before = listed(mirror, under)
        if not names:
            store._files.rm(f"{address}/{name}".removeprefix("s3://"))
            store._files.pipe_file(f"{address}/runs/r-1/seal.json".removeprefix("s3://"), b"{}")
        names.append(sorted(before))
        return before

    monkeypatch.setattr(Mirror, "listed", listed_then_sealed)
    other.pull("runs")
    assert names == [[name], ["runs/r-1/seal.json"]]
    assert (other.folder / "runs" / "r-1" / "seal.json").read_bytes() == b"{}"


def test_what_changes_faster_than_it_is_fetched_is_said_to(machine, monkeypatch):
    monkeypatch.setattr(Mirror, "listed", lambda mirror, under="": {"runs/r-1/plan.toml": 3})
    with pytest.raises(InputError, match="changes faster than it can be fetched"):
        Mirror(f"{machine.bucket}/shop").pull("runs")


def test_of_two_machines_that_begin_at_once_none_goes_on_beside_the_other(tmp_path, machine):
    address = f"{machine.bucket}/shop"
    one = Mirror(address).folder / "runs" / "r-1"
    one.mkdir(parents=True)
    with lease.held(one):
        machine("two")
        two = Mirror(address).folder / "runs" / "r-1"
        two.mkdir(parents=True)
        with (
            pytest.raises(IncompleteError, match="another process is working on it"),
            lease.held(two),
        ):
            pass
    assert Mirror(address).listed() == {}


def test_replies_that_another_machine_is_still_writing_are_not_lost(tmp_path, machine):
    """What lies in the store in pieces is taken over before it is removed, whoever wrote it."""
    address = f"{machine.bucket}/shop"
    line = {"key": "k" * 64, "model": "m", "item": "q", "completion": {"text": "paid for"}}
    Mirror(address)._files.pipe_file(
        f"{address}/responses/active-0123456789abcdef.jsonl@000000000000000",
        json.dumps(line).encode() + b"\n",
    )
    plan = workspace(tmp_path, makers.many_items(3), makers.fake(reply="A"))
    medassay.run(plan, secrets={}, workspace=address)
    assert not [name for name in Mirror(address).listed("responses") if "@" in name]
    machine("two")
    other = Mirror(address)
    other.pull("responses")
    with ResponseStore(other.folder / "responses") as store:
        assert store.get("k" * 64).text == "paid for"


def test_a_run_whose_seal_did_not_reach_the_store_is_carried_over_by_the_same_command(
    tmp_path, machine, monkeypatch
):
    plan = workspace(tmp_path, makers.many_items(5), makers.fake(reply="A"))
    address = f"{machine.bucket}/shop"
    real = Mirror.push

    def refuse(self, path):
        if path.name == "seal.json":
            raise OSError(5, "the store stays away")
        real(self, path)

    monkeypatch.setattr(Mirror, "push", refuse)
    with pytest.raises(OSError, match="stays away"):
        medassay.run(plan, secrets={}, workspace=address)
    monkeypatch.setattr(Mirror, "push", real)
    # Reading it there does not put what the store has over what was sealed here.
    [folder] = (Mirror(address).folder / "runs").iterdir()
    before = sealed(folder)
    Mirror(address)._files.pipe_file(f"{address}/runs/{folder.name}/scores.jsonl", b"older\n")
    assert sealed(localize(f"{address}/runs/{folder.name}")) == before
    with remote.changing(address):
        pass
    assert sealed(folder) == before
    with pytest.warns(UserWarning, match="carried over"):
        run = medassay.run(plan, secrets={}, workspace=address)
    assert run.id.endswith("-1")
    assert sealed(run.path) == before
    machine("two")
    assert medassay.verify(localize(f"{address}/runs/{run.id}")).ok


@pytest.mark.slow
def test_fresh_answers_are_asked_for_though_an_older_run_was_left_behind(
    tmp_path, machine, monkeypatch
):
    plan = workspace(tmp_path, makers.many_items(5), makers.fake(reply="A"))
    address = f"{machine.bucket}/shop"
    with monkeypatch.context() as patch:
        patch.setattr(remote.Mirror, "push_new", lambda *args, **more: None)
        first = medassay.run(plan, secrets={}, workspace=address)
    told = []
    second = pipeline.run(plan, secrets={}, workspace=address, fresh=True, tell=told.append)
    assert any("carried over" in line for line in told)
    assert (first.id[-2:], second.id[-2:]) == ("-1", "-2")
    machine("two")
    for run in (first, second):
        assert medassay.verify(localize(f"{address}/runs/{run.id}")).ok


@pytest.mark.slow
def test_a_run_scored_again_on_two_machines_is_two_runs(tmp_path, machine):
    plan = workspace(tmp_path, makers.many_items(5), makers.fake(reply="A"))
    address = f"{machine.bucket}/shop"
    run = medassay.run(plan, secrets={}, workspace=address)
    seals = []
    for name in ("two", "three"):
        machine(name)
        seals.append(rescore(localize(f"{address}/runs/{run.id}")).id)
    assert len(set(seals)) == 2
    machine("four")
    for name in (run.id, *seals):
        assert medassay.verify(localize(f"{address}/runs/{name}")).ok


def test_what_stands_for_a_folder_in_a_bucket_is_no_file(tmp_path, machine):
    address = f"{machine.bucket}/shop"
    files = Mirror(address)._files
    for name in ("runs/", "responses/", "runs/x/"):
        files.call_s3("put_object", Bucket=machine.bucket[5:], Key=f"shop/{name}", Body=b"")
    plan = workspace(tmp_path, makers.many_items(3), makers.fake(reply="A"))
    assert medassay.run(plan, secrets={}, workspace=address).sealed


def test_the_longest_line_is_carried_over_too(machine, monkeypatch):
    monkeypatch.setattr(mirrors, "_BLOCK", 16)
    mirror = Mirror(f"{machine.bucket}/shop")
    path = mirror.folder / "journal" / "x.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"short\n" + b"l" * 100 + b"\nshort\ntorn")
    mirror.follow(lambda: path)
    mirror.flush()
    assert mirror.carried(path) == 113
    machine("two")
    other = Mirror(f"{machine.bucket}/shop")
    other.pull()
    assert (other.folder / "journal" / "x.jsonl").read_bytes() == path.read_bytes()[:113]


def test_an_address_that_is_wrong_is_told_in_one_line(tmp_path, machine, cli):
    plan = workspace(tmp_path, makers.many_items(3), makers.fake(reply="A"))
    for place, told in (
        ("s3://no-such-bucket-here/x", "check the address"),
        ("s3://", "names no bucket"),
        ("nowhere://x/y", "not an address that can be opened"),
        ("s3:/bucket/x", "an address has two slashes"),
    ):
        code, _, errors = cli("run", plan, "--workspace", place)
        assert (code, told in errors, errors.count("\n")) == (3, True, 1), errors
    code, _, errors = cli("report", f"{machine.bucket}/runs/none")
    assert code == 3
    assert "nothing is there" in errors
    code, _, errors = cli(
        "forget", "nobody", "--workspace", machine.bucket, "--reason", "r", "--yes"
    )
    assert (code, errors) == (3, f"error: {machine.bucket}: no run with item 'nobody'\n")


def test_missing_keys_are_told_with_the_names_of_the_variables(tmp_path, machine, cli, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    code, _, errors = cli("report", f"{machine.bucket}/runs/none")
    assert code == 3
    assert "set AWS_ACCESS_KEY_ID" in errors
    assert errors.count("\n") == 1
