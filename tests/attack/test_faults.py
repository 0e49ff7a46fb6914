"""Eighteen kinds of fault in a fifth of all requests, under kill −9: the run is sealed, and nobody
is asked without need.
"""

import itertools
import json
import random
import re
import threading
import time
from collections import Counter

import pytest

from tests import makers
from tests.attack.servers import says
from tests.commands import result_of, start_command

N = 150
CONCURRENCY = 8
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
NUMBER = re.compile(rb"Question number (\d+)\?")
FAULTS = [
    (429, {"Retry-After": "0.05"}, {"error": "slow down"}),
    (429, {}, {"error": "slow down"}),
    (503, {"Retry-After": "soon"}, {"error": "loading"}),
    (529, {}, {"error": "overloaded"}),
    (408, {}, ""),
    (500, {}, {"error": "broken"}),
    (502, {}, "<html>bad gateway</html>"),
    (504, {}, "\x00"),
    ("cut", {}, ""),
    ("silent", {}, ""),
    ("raw", {}, b"HTTP/1.1 200 O"),
    ("raw", {}, b"SSH-2.0-OpenSSH_9.2\r\n"),
    ("raw", {}, OK + b'Content-Length: 500\r\n\r\n{"choices": [{"message"'),
    ("raw", {}, OK + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\nZZ\r\n'),
    ("raw", {}, OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x00\x00"),
    (200, {}, ""),
    (200, {}, b"\xff\xfe\x00{"),
    (200, {}, {"error": {"message": "no worker is free"}}),
]


class Unwell:
    """Answers four requests in five, and counts what it answered by question."""

    def __init__(self):
        self.good = Counter()
        self.faults = Counter()
        self._lock = threading.Lock()
        self._kinds = itertools.cycle(range(len(FAULTS)))
        self._chance = random.Random(18)

    def __call__(self, path, headers, body):
        with self._lock:
            if self._chance.random() < 0.2:
                kind = next(self._kinds)
                self.faults[kind] += 1
                return FAULTS[kind]
            number = int(NUMBER.search(body)[1])
            self.good[number] += 1
        time.sleep(0.02)
        return 200, {}, says("AB"[number % 2])


@pytest.mark.slow
def test_a_run_under_faults_and_kills_is_sealed_as_without_them(tmp_path, hostile, cli):
    unwell = Unwell()
    server = hostile(unwell)
    makers.write_bank(tmp_path / "bank", makers.many_items(N))
    makers.write_models(
        tmp_path, makers.endpoint(f"{server.url}/v1", concurrency=CONCURRENCY, timeout=2)
    )
    plan = makers.write_plan(tmp_path, models=["m"])
    for kill in range(1, 4):
        process = start_command("run", plan)
        while unwell.good.total() < kill * 25:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.kill()
        process.communicate()
    code, _, errors = result_of(start_command("run", plan))
    assert code == 0, errors
    assert len(unwell.faults) == len(FAULTS)
    assert len(unwell.good) == N
    # A reply is lost only where the process was killed between hearing it and writing it down.
    assert unwell.good.total() - N <= 3 * CONCURRENCY
    [run] = (tmp_path / "runs").iterdir()
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert len(trials) == N
    assert {t["outcome"] for t in trials} == {"answered"}
    heard = unwell.good.total()
    assert cli("run", plan)[0] == 0
    assert unwell.good.total() == heard
    assert cli("publish", run, "--to", tmp_path / "site", "--id", "2026-11")[0] == 0
    assert cli("verify", tmp_path / "site")[0] == 0
