"""Who may look: the browser that opened the link, and nobody else."""

import http.client
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests import makers

import medassay

PAGES = ("/", "/keys", "/static/view.css", "/static/view.js", "/static/style.css", "/nothing")


def test_without_the_link_nothing_is_shown(fetch, shown):
    run = shown.run_of("closed")
    for path in (*PAGES, f"/run/{run}/", f"/run/{run}/trials", f"/run/{run}/record"):
        status, headers, body = fetch(path, inside=False)
        assert (status, b"opens by the link" in body) == (403, True)
        assert "set-cookie" not in headers
    for wrong in ("/?token=", "/?token=x", "/?token=%00", f"/?token={'x' * 100_000}"):
        assert fetch(wrong, inside=False)[0] in (403, 431, 400)


def test_the_link_works_once(fetch, shown):
    link = urlsplit(shown.link)
    path = f"{link.path}?{link.query}"
    assert fetch(path, inside=False)[0] == 403  # the fixture has used it
    status, headers, _ = fetch(f"{path}&sort=x", inside=True)
    assert (status, headers["location"]) == (303, "/?sort=x")
    assert "set-cookie" not in headers


def test_the_link_leads_to_no_other_site(fetch, shown):
    token = shown.link.partition("token=")[2]
    for path in ("//evil.example/", "/%2fevil.example/", "/\\evil.example"):
        status, headers, _ = fetch(f"{path}?token={token}", inside=True)
        assert status in (303, 404)
        assert not headers.get("location", "/").startswith(("//", "http"))


def test_another_host_another_site_and_another_method_are_refused(fetch, shown):
    own = shown.url
    assert fetch("/keys", origin=own)[0] == 200
    assert (
        fetch("/keys", **{"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})[0] == 200
    )
    for headers in (
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
    ):
        status, _, body = fetch("/keys", **headers)
        assert (status, b"<h1>" in body) == (403, False), headers
    assert fetch("/keys", host=f"localhost:{urlsplit(own).port}")[0] == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert fetch("/keys", method=method, origin=own)[0] in (403, 405)


def test_every_answer_forbids_scripts_frames_and_keeping(fetch, shown):
    run = shown.run_of("closed")
    for path in ("/", f"/run/{run}/", f"/run/{run}/reply?x", "/nothing"):
        _, headers, _ = fetch(path)
        assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"


def test_the_cookie_is_for_this_server_alone(tmp_path, monkeypatch):
    from starlette.testclient import TestClient

    from medassay.viewer.place import ViewedPlace
    from medassay.web.viewer.app import guarded_viewer

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "runs").mkdir()
    for address, secure in (("http://127.0.0.1:8766", False), ("https://view.example.org", True)):
        app, token = guarded_viewer(ViewedPlace(str(tmp_path)), address)
        client = TestClient(app, base_url=address, client=("127.0.0.1", 5), follow_redirects=False)
        cookie = client.get(f"/?token={token}").headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert ("secure" in cookie) is secure
        assert client.get("/").status_code == 200
        assert (
            TestClient(app, base_url=address, client=("127.0.0.1", 5)).get("/").status_code == 403
        )


@pytest.mark.slow
def test_the_command_prints_a_link_serves_and_ends_without_a_trace(tmp_path):
    plan = makers.workspace(tmp_path / "w", makers.law_items(), makers.fake("m", reply="A"))
    run = medassay.run(plan, secrets={})
    before = {p: p.read_bytes() for p in sorted((tmp_path / "w").rglob("*")) if p.is_file()}
    process = subprocess.Popen(
        [sys.executable, "-m", "medassay", "view", str(tmp_path / "w"), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin", "PYTHONPATH": "src"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    try:
        page = _looked_at(process.stdout.readline().strip(), run.path.name)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert "10 trials" in page
    assert process.returncode == 0
    assert errors == "medassay view: open this link, which works once (Ctrl-C stops)\n"
    after = {p: p.read_bytes() for p in sorted((tmp_path / "w").rglob("*")) if p.is_file()}
    assert after == before


def _looked_at(link, run):
    """Return the first page of trials, as the browser that opened the link has it."""
    parts = urlsplit(link)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}")
        reply = connection.getresponse()
        assert (reply.status, reply.getheader("location")) == (303, "/")
        cookie = reply.getheader("set-cookie").partition(";")[0]
        reply.read()
        connection.request("GET", f"/run/{run}/trials", headers={"cookie": cookie})
        return connection.getresponse().read().decode()


def test_plain_http_is_served_on_this_machine_only(cli, tmp_path):
    (tmp_path / "runs").mkdir()
    code, _, errors = cli("view", tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert (code, "plain HTTP is served on this machine only" in errors) == (3, True)
    assert "--proxy" not in errors  # which this command has not
    code, _, errors = cli("view", tmp_path / "nowhere")
    assert (code, "no workspace and no run" in errors) == (3, True)


def test_cookies_of_other_servers_do_not_lock_anybody_out(fetch, cookie):
    own = f"{cookie['name']}={cookie['value']}"
    for before, after in (
        ('prefs={"a": 1}; ', ""),
        ("foo; a b=c d; ", "; =x"),
        ('x="a; ', '; a[b]=["x","y"]'),
        ("expires=x; ", ";;;"),
    ):
        assert fetch("/keys", inside=False, cookie=f"{before}{own}{after}")[0] == 200
    assert fetch("/keys", inside=False, cookie=f"x{own}")[0] == 403
    assert fetch("/keys", inside=False, cookie=f"{own}x")[0] == 403


def test_a_preview_of_the_link_does_not_use_it_up(tmp_path, monkeypatch):
    from starlette.testclient import TestClient

    from medassay.viewer.place import ViewedPlace
    from medassay.web.viewer.app import guarded_viewer

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "runs").mkdir()
    address = "http://127.0.0.1:8766"
    app, token = guarded_viewer(ViewedPlace(str(tmp_path)), address)
    client = TestClient(app, base_url=address, client=("127.0.0.1", 5), follow_redirects=False)
    assert client.head(f"/?token={token}").status_code == 403
    ahead = {"sec-purpose": "prefetch;prerender"}
    assert client.get(f"/?token={token}", headers=ahead).status_code == 403
    assert client.get(f"/?token={token}").status_code == 303


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_the_command_and_its_reader_end_when_they_are_told(tmp_path, end):
    (tmp_path / "runs").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "medassay", "view", str(tmp_path), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin", "PYTHONPATH": "src"},
        preexec_fn=lambda: signal.signal(end, signal.SIG_DFL),  # noqa: PLW1509
    )
    try:
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(end)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in errors
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_without_its_extra_the_command_says_what_to_install(cli, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    monkeypatch.setitem(sys.modules, "medassay.web.serve", None)
    code, _, errors = cli("view", tmp_path)
    assert (code, "pip install 'medassay[web]'" in errors) == (3, True)
