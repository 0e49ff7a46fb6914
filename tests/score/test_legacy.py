"""The worker of legacy metrics: supervised, restarted, timed out; nothing lost, nothing twice."""

import json
import os
import random
import signal
import sys
import threading
import time

import pytest

from medassay.core.scale import Scale
from medassay.errors import IncompleteError
from medassay.score.legacy.client import LegacyMetric, LegacyWorker

# Speaks the worker's protocol with the standard library alone; `mode` says how it misbehaves.
PROGRAM = """
import json, os, sys, time
mode, log = sys.argv[1], sys.argv[2]
print("a library talks", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    with open(log, "a") as file:
        file.write(json.dumps([p[0] for p in request["pairs"]]) + "\\n")
    if mode == "dies":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(9)
    if mode == "hangs":
        time.sleep(60)
    if mode == "slow":
        time.sleep(0.01)
    if mode == "secret":
        print(json.dumps({"id": request["id"], "values": [[float("SECRET" in os.environ)]]}), flush=True)
        continue
    if mode == "torn":
        sys.stdout.write('{"id": 1, "val'); sys.stdout.flush(); os._exit(1)
    if any(p[0] == "poison" for p in request["pairs"]):
        print(json.dumps({"id": request["id"], "error": "ValueError: poison"}), flush=True)
        continue
    values = [[len(p[0]) / 100] for p in request["pairs"]]
    print(json.dumps({"id": request["id"], "values": values}), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(PROGRAM)
    log = tmp_path / "log"
    return lambda mode: [sys.executable, str(path), mode, str(log)]


def metric(command, tmp_path):
    return LegacyMetric("bleurt", tmp_path, "tiny@0", Scale(), command)


def test_values_come_in_order_and_what_a_library_prints_disturbs_nothing(program, tmp_path):
    pairs = [("x" * n, "r") for n in range(40)]
    one = metric(program("good"), tmp_path)
    assert one.score(pairs) == [(n / 100,) for n in range(40)]
    one.close()


def test_a_pair_that_its_library_refuses_is_null_and_the_others_keep_their_values(
    program, tmp_path
):
    one = metric(program("good"), tmp_path)
    assert one.score([("a", "r"), ("poison", "r"), ("bb", "r")]) == [(0.01,), (None,), (0.02,)]
    one.close()


@pytest.mark.parametrize("mode", ["dies", "torn"])
def test_a_worker_that_keeps_dying_ends_the_work_with_its_last_words(program, tmp_path, mode):
    one = metric(program(mode), tmp_path)
    with pytest.raises(IncompleteError, match="died 5 times in a row"):
        one.score([("a", "r")])
    assert len((tmp_path / "log").read_text().splitlines()) == 5


def test_a_worker_that_says_nothing_is_ended(program):
    worker = LegacyWorker(program("hangs"), timeout=0.3)
    with pytest.raises(IncompleteError, match=r"no reply within 0\.3 s"):
        worker.ask({"metric": "bleurt", "pairs": []})
    assert worker.pid is None


def test_a_worker_sees_no_secret(program, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "s3cret")
    one = metric(program("secret"), tmp_path)
    assert one.score([("a", "r")]) == [(0.0,)]
    one.close()


def test_killing_the_worker_at_random_loses_and_doubles_nothing(program, tmp_path):
    """Killed again and again from outside while it works: every pair has its own value in the
    end.
    """
    one = metric(program("slow"), tmp_path)
    pairs = [("x" * n, str(n)) for n in range(400)]
    found: list = []
    rng = random.Random(5)
    over = threading.Event()
    kills = asked_before = 0
    log = tmp_path / "log"

    def work():
        try:
            found.extend(one.score(pairs))
        finally:
            over.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not over.wait(rng.uniform(0.05, 0.15)):
        asked = len(log.read_text().splitlines()) if log.exists() else 0
        # Only after a request was answered since the last kill, however slow this machine is.
        if asked >= asked_before + 2 and (pid := one._worker.pid) is not None:
            try:
                os.kill(pid, signal.SIGKILL)
                kills, asked_before = kills + 1, asked
            except ProcessLookupError:
                time.sleep(0)
    thread.join()
    one.close()
    assert kills > 0
    assert found == [(n / 100,) for n in range(400)]
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(map(len, requests)) >= 400
