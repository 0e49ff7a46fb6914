import shutil

import pytest
from tests import makers

import medassay
from medassay.storage.run import open_run


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Be a user with a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def asked(tmp_path_factory):
    """Return a run of four models with every kind of outcome."""
    plan = makers.workspace(
        tmp_path_factory.mktemp("viewer") / "work",
        makers.law_items(),
        makers.fake("always-a", reply="The answer is A."),
        makers.fake("always-b", reply="<think>A?</think> I take (B), because of the appeal."),
        makers.fake("mute", reply="Neither of them, on appeal."),
        {
            **makers.fake("mixed", reply="B", refuse_items=["law-01"], fail_items=["law-02"]),
            "price": {"input": 1.0, "output": 2.0, "currency": "EUR"},
        },
        repeats=2,
    )
    return medassay.run(plan, secrets={}, accept_failures=True)


@pytest.fixture
def sealed(asked, tmp_path, cache):
    """Return a copy of that run in a workspace of its own."""
    workspace = tmp_path / "work"
    shutil.copytree(asked.path.parents[1], workspace)
    return open_run(workspace / "runs" / asked.path.name)
