"""Sites in a real S3 server (moto's): published, corrected and read from several machines."""

import pytest
from tests import makers
from tests.makers import workspace

import medassay
from medassay.errors import InputError
from medassay.runner.engine import lease
from medassay.storage.object_store import Mirror, localize, remote


@pytest.mark.slow
def test_a_site_in_an_object_store_is_published_read_and_corrected_from_any_machine(
    tmp_path, machine, cli
):
    plan = workspace(tmp_path, makers.many_items(8), makers.fake(reply="A"))
    run = medassay.run(plan, secrets={})
    local = tmp_path / "site"
    medassay.publish(run, local)
    address = f"{machine.bucket}/boards/site"
    code, out, errors = cli("publish", run.path, "--to", address)
    assert code == 0, errors
    assert out.strip() == f"board {address}/p/{run.id}/index.html"
    machine("two")
    code, _, errors = cli("verify", address)
    assert code == 0, errors
    assert cli("verify", f"{address}/p/{run.id}")[0] == 0
    code, _, errors = cli("status", address, run.id, "retracted", "--reason", "a test")
    assert code == 0, errors
    machine("three")
    site = localize(address)
    # Byte for byte what a folder holds.
    for path in (local / "p").rglob("*"):
        if path.is_file():
            assert (site / path.relative_to(local)).read_bytes() == path.read_bytes()
    assert medassay.verify(site).ok
    assert len((site / "log.jsonl").read_text().splitlines()) == 2


def test_of_two_who_publish_at_once_the_later_is_told_and_nothing_is_lost(tmp_path, machine):
    address = f"{machine.bucket}/site"
    with remote.changing(address, last="log.jsonl") as folder:
        (folder / "log.jsonl").write_text("first\n")
    with (
        pytest.raises(InputError, match="changed by somebody else"),
        remote.changing(address, last="log.jsonl") as folder,
    ):
        (folder / "log.jsonl").write_text("first\nmine\n")
        (folder / "page").write_text("mine")
        Mirror(address)._files.pipe_file(f"{address}/log.jsonl", b"first\ntheirs\n")
    assert set(Mirror(address).listed()) == {"log.jsonl"}


def test_a_ledger_that_grows_while_files_are_carried_over_is_not_overwritten(machine, monkeypatch):
    address = f"{machine.bucket}/site"
    with remote.changing(address, last="log.jsonl") as folder:
        (folder / "log.jsonl").write_text("first\n")
    real = Mirror.push

    def meanwhile(self, path):
        real(self, path)
        if path.name == "page":
            self._files.pipe_file(f"{address}/log.jsonl", b"first\ntheirs\n")

    monkeypatch.setattr(Mirror, "push", meanwhile)
    with (
        pytest.raises(InputError, match="changed by somebody else"),
        remote.changing(address, last="log.jsonl") as folder,
    ):
        (folder / "page").write_text("mine")
        (folder / "log.jsonl").write_text("first\nmine\n")
    assert Mirror(address).contents("log.jsonl")["log.jsonl"] == b"first\ntheirs\n"


@pytest.mark.slow
def test_a_site_that_somebody_publishes_to_is_left_alone(tmp_path, machine, cli, monkeypatch):
    for name in ("DEAD_AFTER", "_RENEW_EVERY"):
        monkeypatch.setattr(lease, name, {"DEAD_AFTER": 5.0, "_RENEW_EVERY": 0.2}[name])
    run = medassay.run(
        workspace(tmp_path, makers.many_items(3), makers.fake(reply="A")), secrets={}
    )
    address = f"{machine.bucket}/site"
    site = Mirror(address)
    with lease.held(site.folder):
        site._files.pipe_file(f"{address}/p/theirs/page", b"on its way")
        machine("two")
        code, _, errors = cli("publish", run.path, "--to", address)
        assert (code, "another process is working on it" in errors) == (4, True), errors
        assert address in errors.splitlines()[-1]
    assert "p/theirs/page" in Mirror(address).listed()
    # Its upload was cut off: nobody holds the site, and the ledger knows nothing of it.
    assert cli("publish", run.path, "--to", address)[0] == 0
    assert "p/theirs/page" not in Mirror(address).listed()
    code, _, errors = cli("verify", address)
    assert code == 0, errors


def test_what_a_failed_attempt_left_here_does_not_stand_in_the_way_of_the_next(machine):
    address = f"{machine.bucket}/site"
    with pytest.raises(KeyError), remote.changing(address, last="log.jsonl") as folder:
        (folder / "p").mkdir()
        (folder / "p" / "page").write_text("half")
        raise KeyError
    assert Mirror(address).listed() == {}
    with remote.changing(address, last="log.jsonl") as folder:
        assert not (folder / "p" / "page").exists()
        (folder / "log.jsonl").write_text("first\n")
    assert set(Mirror(address).listed()) == {"log.jsonl"}


@pytest.mark.slow
def test_a_publication_that_was_cut_off_on_its_way_is_published_by_the_same_command(
    tmp_path, machine, cli, monkeypatch
):
    plan = workspace(tmp_path, makers.many_items(4), makers.fake(reply="A"))
    run = medassay.run(plan, secrets={})
    address = f"{machine.bucket}/site"
    real = Mirror.push

    def cut(self, path):
        if path.name == "log.jsonl":
            raise KeyboardInterrupt
        real(self, path)

    monkeypatch.setattr(Mirror, "push", cut)
    assert cli("publish", run.path, "--to", address)[0] == 130
    monkeypatch.setattr(Mirror, "push", real)
    code, _, errors = cli("publish", run.path, "--to", address)
    assert code == 0, errors
    machine("two")
    code, _, errors = cli("verify", address)
    assert code == 0, errors
    # A file that is gone from the store is missed on the machine that has seen it, too.
    gone = f"{address}/p/{run.id}/data/run/trials.jsonl"
    Mirror(address)._files.rm(gone)
    assert cli("verify", address)[0] == 6
