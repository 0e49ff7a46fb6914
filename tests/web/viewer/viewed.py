"""What tests of the viewer share: a viewer that listens, hostile replies, and addresses."""

import threading
from urllib.parse import urlencode

import uvicorn

from medassay.viewer.place import ViewedPlace
from medassay.web.serve import ListenAddress, address_of, bound
from medassay.web.viewer.app import guarded_viewer

HOSTILE_MODEL = "hostile <b>\u202e"
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
        listener = bound(where)
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
