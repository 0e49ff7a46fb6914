import http.client
import json
import threading
from contextlib import closing
from urllib.parse import urlencode, urlsplit

import pytest
import uvicorn
from tests import makers

import medassay
from medassay.errors import IncompleteError
from medassay.viewer.place import ViewedPlace
from medassay.web.serve import ListenAddress, _bound, address_of
from medassay.web.viewer.app import guarded_viewer

# All that a reply may try: mark-up, scripts, links, reading directions, control characters.
HOSTILE = (
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    "[a](javascript:alert(1)) </pre></main> \u202egnp.exe\u202c \u2066x\u2069 \x1b[31m \x00 \ufeff"
    " {{ 7 * 7 }} {% raw %} &lt;b&gt; The answer is (B).\n" + "W" * 400
)
LONG = "So it is. " * 800_000  # 8 MB


class Shown:
    """A viewer that listens, and the addresses of its pages."""

    def __init__(self, folder):
        self.folder = folder
        self.place = ViewedPlace(str(folder))
        where = ListenAddress(host="127.0.0.1", port=0)
        listener = _bound(where)
        self.url = address_of(listener, where)
        app, token = guarded_viewer(self.place, self.url)
        self.link = f"{self.url}/?token={token}"
        config = uvicorn.Config(app, log_level="error", access_log=False)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [listener]}, daemon=True
        )
        self.thread.start()

    def stop(self):
        self.server.should_exit = True
        self.thread.join(timeout=30)
        self.place.stop()

    def run_of(self, plan):
        return next(run.name for run in self.place.summaries() if run.plan == plan)


def trial_query(model, item, **more):
    place = {"domain": "law", "model": model, "setting": "zero_shot", "mode": "solo", "item": item}
    return urlencode(place | more)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory):
    """Return a workspace with a sealed run of hostile models, a judged one, and one under way."""
    folder = tmp_path_factory.mktemp("viewed")
    makers.workspace(
        folder,
        makers.law_items(),
        makers.fake("steady", reply="I take (B)."),
        makers.fake("hostile <b>\u202e", reply=HOSTILE),
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
