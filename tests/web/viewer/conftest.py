import http.client
import json
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from tests import makers
from tests.web.viewer.viewed import HOSTILE, HOSTILE_MODEL, LONG, Shown

import medassay
from medassay.errors import IncompleteError


@pytest.fixture(scope="session")
def workspace(tmp_path_factory):
    """Return a workspace with a sealed run of hostile models, a judged one, and one under way."""
    folder = tmp_path_factory.mktemp("viewed")
    makers.workspace(
        folder,
        makers.law_items(),
        makers.fake("steady", reply="I take (B)."),
        makers.fake(HOSTILE_MODEL, reply=HOSTILE),
        makers.fake("thinking", reply="<think>A, or B?</think> The answer is C."),
        makers.fake("mute", reply="Neither.", fail_items=["law-02"], refuse_items=["law-03"]),
        makers.fake("endless", replies={"law-00": LONG}, reply="B"),
        name="closed",
    )
    medassay.run(folder / "plan.toml", secrets={}, accept_failures=True)
    makers.write_bank(folder / "open", makers.open_items(3), name="open")
    makers.write_models(
        folder, makers.fake("steady", reply=f"Rule 1 binds. {HOSTILE}"), *makers.judges()
    )
    names = ["judge-alpha", "judge-beta", "judge-gamma"]
    plan = makers.write_plan(
        folder, banks=["open"], models=["steady"], judges=names, task="open", name="judged"
    )
    medassay.run(plan, secrets={})
    makers.write_models(folder, makers.fake("steady", reply="A", fail_items=["law-09"]))
    plan = makers.write_plan(folder, models=["steady"], name="broken")
    with pytest.raises(IncompleteError):
        medassay.run(plan, secrets={})
    return folder


@pytest.fixture(scope="session")
def shown(workspace, tmp_path_factory):
    """Return a viewer of the workspace."""
    # The place of the cache is read when a run is opened; other tests keep the usual one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        viewer = Shown(workspace)
        for name in viewer.place.names():
            viewer.place.open(name).index.catch_up()
    yield viewer
    viewer.stop()


@pytest.fixture(scope="session")
def cookie(shown):
    """Return the cookie of the browser that opened the link."""
    link = urlsplit(shown.link)
    with closing(http.client.HTTPConnection(link.netloc)) as connection:
        connection.request("GET", f"{link.path}?{link.query}")
        reply = connection.getresponse()
        reply.read()
    assert reply.status == 303
    name, _, value = reply.getheader("set-cookie").partition(";")[0].partition("=")
    return {"name": name, "value": value}


@pytest.fixture
def fetch(shown, cookie):
    """Return a function that asks for a page, and gives status, headers and body."""

    def ask(path, *, method="GET", inside=True, **headers):
        sent = {"cookie": f"{cookie['name']}={cookie['value']}"} if inside else {}
        address = urlsplit(shown.url).netloc
        with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
            connection.request(method, path, headers=sent | headers)
            reply = connection.getresponse()
            return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()

    return ask


@pytest.fixture
def as_json(fetch):
    return lambda path: json.loads(fetch(path)[2])
