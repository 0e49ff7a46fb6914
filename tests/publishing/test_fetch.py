import functools
import hashlib
import http.server
import json
import threading

import pytest
from tests import makers

import medassay
from medassay.errors import IntegrityError
from medassay.publishing.fetch import listed_names


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fetch")
    makers.write_bank(folder / "bank", makers.law_items())
    makers.write_models(folder, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(folder), secrets={})
    for name in ("one", "two"):
        medassay.publish(run, folder / "site", publication=name)
    return folder / "site"


@pytest.fixture(scope="module")
def server(site):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_GET(self):
            if self.path == "/moved/log.jsonl":
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.2/")
                self.end_headers()
            else:
                super().do_GET()

    handler = functools.partial(Handler, directory=site.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


@pytest.mark.slow
def test_a_site_a_publication_and_an_answer_are_checked_on_their_server(site, server, cli):
    here = json.loads(cli("--json", "verify", site)[1])
    there = json.loads(cli("--json", "verify", f"{server}/site/index.html")[1])
    assert there["ok"]
    assert there["checks"] == here["checks"]
    code, shown, _ = cli("verify", f"{server}/site/p/two/")
    assert code == 0
    assert "scores recomputed" in shown
    trial = (site / "p/two/data/run/scores.jsonl").read_bytes().splitlines()[0]
    digest = hashlib.sha256(trial).hexdigest()
    code, shown, _ = cli("verify", f"{server}/site", "--answer", digest)
    assert code == 0
    assert "proof: ledger: log.jsonl line 2" in shown


def test_a_flipped_or_missing_file_on_the_server_is_found(site, server, cli):
    path = site / "p/one/methodology/index.html"
    path.chmod(0o644)
    whole = path.read_bytes()
    for data in (whole[:-1] + b"x", None):
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        code, _, errors = cli("verify", f"{server}/site")
        assert code == 6
        assert "one: methodology/index.html" in errors
        path.write_bytes(whole)


def test_an_address_without_a_site_a_dead_server_and_a_redirection_are_told(server, cli):
    for address, code, says in (
        (f"{server}/nothing", 3, "neither log.jsonl nor data/MANIFEST.sha256"),
        ("http://127.0.0.1:9/", 5, "nothing was checked"),
        (f"{server}/moved/", 5, "302 to http://127.0.0.2/; give that address"),
        (f"{server}/site?x=1", 3, "expected http(s)://host/path/"),
    ):
        found, _, errors = cli("verify", address)
        assert (found, errors.count("\n")) == (code, 1), errors
        assert says in errors


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "", "a\\b", "a\0b", "x" * 300]
)
def test_a_list_cannot_name_a_file_outside(name):
    with pytest.raises(IntegrityError, match="line 2"):
        listed_names(f"00  ok\n00  {name}\n".encode())
