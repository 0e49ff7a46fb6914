"""A web server that is asked for a site and is no friend: bounded in time, bytes and files, and
never an OK.
"""

import gzip
import os
import socket
import threading
import time

import pytest

import medassay
from tests import makers

SUMS = "data/MANIFEST.sha256"


class Slow:
    """Sends its head at once and a byte every tenth of a second from then on."""

    def __init__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._drip, args=(connection,), daemon=True).start()

    def _drip(self, connection):
        try:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                connection.sendall(b"x")
                time.sleep(0.1)
        except OSError:
            connection.close()

    def close(self):
        self._listening.close()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return the folder in which copies are made, to see that none is left."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def test_a_byte_at_a_time_ends_with_the_bound_of_seconds(cli, temporary):
    server = Slow()
    began = time.monotonic()
    code, _, errors = cli("verify", server.url, "--most-seconds", 1)
    server.close()
    assert code == 5
    assert time.monotonic() - began < 10
    assert "not read within 1 s" in errors
    assert "--most-seconds" in errors
    assert not any(temporary.iterdir())


def test_a_list_of_very_many_files_ends_with_the_bound_of_files(cli, hostile, temporary):
    names = "".join(f"{'0' * 64}  data/{number}\n" for number in range(400_000))
    server = hostile(
        lambda path, headers, body: (200, {}, names) if path.endswith(SUMS) else (404, {}, "")
    )
    code, _, errors = cli("verify", server.url, "--most-files", 200)
    assert code == 6
    assert "lists more than 200 files" in errors
    assert len(server.requests) <= 202
    assert not any(temporary.iterdir())


def test_files_without_end_end_with_the_bound_of_bytes(cli, hostile, temporary):
    sums = "".join(f"{'0' * 64}  data/{number}\n" for number in range(40))
    big = os.urandom(1 << 20)
    largest = 0

    def respond(path, headers, body):
        nonlocal largest
        held = sum(p.stat().st_size for p in temporary.rglob("*") if p.is_file())
        largest = max(largest, held)
        if path.endswith(SUMS):
            return 200, {}, sums
        return (404, {}, "") if path.endswith("log.jsonl") else (200, {}, big)

    server = hostile(respond)
    code, _, errors = cli("verify", server.url, "--most-bytes", 5 << 20)
    assert code == 6
    assert "more than 5,242,880 bytes" in errors
    assert largest <= 5 << 20
    assert not any(temporary.iterdir())


def test_what_comes_packed_is_not_unpacked(cli, hostile):
    bomb = gzip.compress(bytes(50 << 20))
    server = hostile(lambda path, headers, body: (200, {"Content-Encoding": "gzip"}, bomb))
    code, _, errors = cli("verify", server.url)
    assert code == 5
    assert "comes packed" in errors


def test_of_a_copy_it_is_said_what_cannot_be_seen(cli, hostile, tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    medassay.publish(run, tmp_path / "site", publication="one")
    (tmp_path / "site" / "evil.html").write_text("x")

    def respond(path, headers, body):
        file = tmp_path / "site" / path.lstrip("/")
        return (200, {}, file.read_bytes()) if file.is_file() else (404, {}, "")

    server = hostile(respond)
    code, _, errors = cli("verify", server.url)
    assert code == 0
    assert "only the files that its lists name were seen" in errors
    assert cli("verify", tmp_path / "site")[0] == 6
