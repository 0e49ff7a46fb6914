"""What is written is for its owner alone, whatever the umask; for a group on purpose.

A published site is for everybody.
"""

import os
import stat

import pytest

from tests import makers

PRIVATE = ("responses", "runs")


def modes(folder):
    """Return path → mode of everything in a folder, itself included."""
    found = (folder, *folder.rglob("*"))
    return {p.relative_to(folder.parent).as_posix(): stat.S_IMODE(p.lstat().st_mode) for p in found}


# The most and the least that a umask leaves to others.
@pytest.fixture(params=[0o000, 0o077], ids=["000", "077"])
def call(request, cli, tmp_path, monkeypatch):
    """Run commands under a umask."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = os.umask(request.param)

    def run(*arguments):
        code, _, errors = cli(*arguments)
        assert code in (0, 4), errors

    yield run
    os.umask(before)


@pytest.mark.parametrize("shared", [False, True])
def test_runs_replies_journals_and_logs(tmp_path, call, shared):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    # One item fails, so that the journal stays.
    failing = makers.law_items()[0]["id"]
    makers.write_models(tmp_path, makers.fake(reply="A", fail_items=[failing]))
    makers.write_plan(tmp_path)
    more = ["--shared"] if shared else []
    call("run", "plan.toml", "--log", "events.log", *more)
    folder, file = (0o2770, 0o660) if shared else (0o700, 0o600)
    found = modes(tmp_path / "responses") | modes(next((tmp_path / "runs").iterdir()))
    found["events.log"] = modes(tmp_path)[f"{tmp_path.name}/events.log"]
    assert found["responses"] == folder
    assert {m for name, m in found.items() if name.endswith((".zst", ".sqlite", ".log"))} == {file}
    journals = [m for name, m in found.items() if "/journal/" in name]
    assert journals
    assert set(journals) == {file}
    run = next(
        name for name in found if "/" not in name and name not in ("responses", "events.log")
    )
    assert found[run] == found[f"{run}/journal"] == folder


def test_the_database_of_reviews_and_keys(tmp_path, call):
    old = tmp_path / "review.sqlite"
    call("review", "import", "demo", "--study", "demo")
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    old.chmod(0o644)  # as earlier versions left it
    call("review", "user", "list")
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    call("review", "user", "list", "--shared")
    assert stat.S_IMODE(old.stat().st_mode) == 0o660
    call("keys", "new", "site.key")
    assert stat.S_IMODE((tmp_path / "site.key").stat().st_mode) == 0o600


def test_a_site_is_for_everybody(tmp_path, call):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(reply="A"))
    makers.write_plan(tmp_path)
    call("run", "plan.toml")
    run = next((tmp_path / "runs").iterdir())
    call("publish", run, "--to", "site")
    for name, mode in modes(tmp_path / "site").items():
        if name == "site/.lock":
            continue
        path = tmp_path / name
        assert mode == 0o755 if path.is_dir() else mode in (0o644, 0o444), (name, oct(mode))
