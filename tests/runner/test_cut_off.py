"""A kill at any moment of sealing, publishing or releasing leaves nothing that cannot go on."""

import contextlib
import datetime as dt
import shutil
from pathlib import Path

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.bank import load_bank, release
from medassay.errors import GateError, InputError
from medassay.storage.run import lock_run


class Killed(BaseException):
    """Like SIGKILL: nothing after it runs but what has no choice."""


def cut_at(monkeypatch, moment):
    """Let the n-th change of a directory entry be the last."""
    left = [moment]
    for name in ("rename", "replace", "unlink", "rmdir", "chmod"):
        real = getattr(Path, name)

        def step(self, *args, _real=real, **kwargs):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return _real(self, *args, **kwargs)

        monkeypatch.setattr(Path, name, step)


def law(folder):
    makers.write_bank(folder / "bank", makers.law_items())
    makers.write_models(folder, makers.fake(reply="A"))
    return makers.write_plan(folder)


@pytest.mark.parametrize("moment", range(0, 30, 2))
def test_a_run_cut_while_sealing_is_finished_by_the_same_command(tmp_path, moment):
    plan = law(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        cut_at(patch, moment)
        with contextlib.suppress(Killed):
            medassay.run(plan, secrets={})
    run = medassay.run(plan, secrets={})
    for folder in (tmp_path / "runs").iterdir():
        report = medassay.verify(folder)
        assert report.ok, report.first_mismatch
        assert not (folder / "journal").exists()
    assert medassay.publish(run, tmp_path / "site").exists()


def test_a_run_sealed_by_another_process_meanwhile_is_taken_as_it_is(tmp_path, monkeypatch):
    plan, real, sealed = law(tmp_path), pipeline.await_dead, {}

    def meanwhile(path, tell):
        monkeypatch.setattr(pipeline, "await_dead", real)
        other = medassay.run(plan, secrets={})
        assert other.path == path
        sealed.update({p.name: p.read_bytes() for p in path.iterdir()})

    monkeypatch.setattr(pipeline, "await_dead", meanwhile)
    found = medassay.run(plan, secrets={})
    assert sealed
    assert {p.name: p.read_bytes() for p in found.path.iterdir()} == sealed


@pytest.mark.parametrize("moment", range(12))
def test_a_publication_cut_off_is_whole_or_absent(tmp_path, moment):
    run = medassay.run(law(tmp_path), secrets={})
    with pytest.MonkeyPatch.context() as patch:
        cut_at(patch, moment)
        with contextlib.suppress(Killed):
            medassay.publish(run, tmp_path / "site")
    with contextlib.suppress(GateError):
        medassay.publish(run, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").exists()
    assert medassay.verify(tmp_path / "site").ok


def test_publishing_into_the_run_itself_is_refused(tmp_path):
    run = medassay.run(law(tmp_path), secrets={})
    for site in (run.path, run.path / "site"):
        with pytest.raises(InputError, match="sealed run"):
            medassay.publish(run, site)
    assert medassay.verify(run.path).ok


def test_a_release_cut_after_its_registration_does_not_block_the_next(tmp_path):
    folder, lock = (
        makers.write_bank(tmp_path / "law", makers.law_items()),
        tmp_path / "banks.lock",
    )
    today = dt.date(2026, 11, 20)
    release(folder, reason="first", lock=lock, today=today)
    makers_items = makers.law_items()
    shutil.copy(folder / "bank.toml", tmp_path / "before.toml")
    write_items(folder, makers_items[1:])
    assert release(folder, reason="second", lock=lock, today=today)[0] == "law-2026.2"
    shutil.copy(
        tmp_path / "before.toml", folder / "bank.toml"
    )  # as if it had never been written
    write_items(folder, makers_items[2:])
    assert (
        release(folder, reason="a\n\n## forged-2026.9\n", lock=lock, today=today)[0]
        == "law-2026.3"
    )
    assert "\n## forged" not in (folder / "CHANGES.md").read_text()
    assert load_bank(folder, lock=lock).version == "law-2026.3"


def write_items(folder, items):
    import json

    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))


def test_a_lock_is_held_by_one(tmp_path):
    run = medassay.run(law(tmp_path), secrets={})
    with lock_run(run), pytest.raises(InputError, match="another process"):
        lock_run(run)
