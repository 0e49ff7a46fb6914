"""One rule for an endpoint that fails: single requests are their trials' own, a row of them ends a
model for this start.
"""

import json
import re
import signal
import threading
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import medassay
from medassay.core.records.plan import EngineRules
from medassay.errors import IncompleteError, ModelError
from medassay.runner.breaker import CircuitBreaker, RecentEnds, Relay
from tests import makers
from tests.attack.servers import says
from tests.commands import result_of, start_command

NUMBER = re.compile(rb"Question number (\d+)\?")
rows = st.lists(
    st.builds(
        RecentEnds, succeeded=st.booleans(), failed=st.integers(0, 3), patient=st.integers(0, 3)
    )
)


def workspace(folder, n, *models, **plan):
    makers.write_bank(folder / "bank", makers.many_items(n))
    makers.write_models(folder, *models)
    return makers.write_plan(folder, models=[m["id"] for m in models], **plan)


def number_in(body):
    return int(NUMBER.search(body)[1])


def trials(run):
    return [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]


def test_one_item_of_two_hundred_refused_by_moderation_leaves_the_others_answered(
    tmp_path, hostile
):
    def respond(path, headers, body):
        if number_in(body) == 16:
            return 403, {}, {"error": {"message": "flagged by moderation"}}
        return 200, {}, says("A")

    server = hostile(respond)
    plan = workspace(tmp_path, 200, makers.endpoint(f"{server.url}/v1"))
    run = medassay.run(plan, secrets={})
    found = Counter((t["outcome"], t["reason"]) for t in trials(run))
    assert found["refused", "moderation"] == 1
    assert sum(n for (outcome, _), n in found.items() if outcome == "answered") == 199
    assert len(server.requests) == 200


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_refusal_of_a_single_request_is_its_own(tmp_path, hostile, status):
    server = hostile(
        lambda path, headers, body: (
            (status, {}, {"error": {"message": f"not item {number_in(body)}"}})
            if body and number_in(body) % 40 == 16
            else (200, {}, says("A"))
        )
    )
    plan = workspace(tmp_path, 200, makers.endpoint(f"{server.url}/v1"))
    with pytest.raises(IncompleteError, match="5 trials have no answer: 5 failed"):
        medassay.run(plan, secrets={})
    # The same command asks these alone, and what is sealed in the end says of each why.
    run = medassay.pipeline.run(plan, secrets={}, accept_failures=True)
    failed = [t for t in trials(run) if t["outcome"] == "failed"]
    asked = [path for path, *_ in server.requests if not path.endswith("/models")]
    assert len(asked) == 205
    for trial, n in zip(failed, range(16, 200, 40), strict=True):
        said = f'm: HTTP {status}: {{"error": {{"message": "not item {n}"}}}}'
        assert trial["reason"].startswith(said)


@pytest.mark.parametrize(
    ("reply", "most"),
    [
        ((401, {}, {"error": "bad key"}), 20 + 8),
        ((500, {}, {"error": "broken"}), 20 + 8),
        ((404, {}, {"error": "no such model"}), 20 + 8),
        (("cut", {}, ""), 20 + 8),
        (("silent", {}, ""), 20 + 8),
        ((200, {}, "<html>"), 20 + 8),
    ],
)
def test_an_endpoint_that_never_answers_is_given_up_and_what_was_not_sent_says_so(
    tmp_path, hostile, reply, most
):
    server = hostile(lambda path, headers, body: reply)
    dead = makers.endpoint(f"{server.url}/v1", name="dead", timeout=0.5, concurrency=8)
    plan = workspace(tmp_path, 48, dead, makers.fake("good", reply="A"))
    with pytest.raises(IncompleteError, match="model 'dead' is given up for this start"):
        medassay.run(plan, secrets={})
    assert 10 <= len(server.requests) <= most  # a connection cut early may bring none
    run = medassay.pipeline.run(plan, secrets={}, accept_failures=True)
    found = trials(run)
    assert all(t["outcome"] == "answered" for t in found if t["model"] == "good")
    reasons = Counter(t["reason"] for t in found if t["model"] == "dead")
    assert reasons["not asked"] >= 48 - 2 * most
    assert set(reasons) - {"not asked"}  # and those that were sent, their own


def test_where_all_models_are_given_up_the_exit_code_is_that_of_providers(cli, tmp_path, hostile):
    server = hostile(lambda path, headers, body: (500, {}, {"error": "broken"}))
    entries = [makers.endpoint(f"{server.url}/v1", name=name) for name in ("one", "two")]
    plan = workspace(tmp_path, 30, *entries)
    code, _, errors = cli("run", plan)
    assert code == 5
    assert "'one' is given up" in errors
    assert "'two' is given up" in errors
    assert "the same command resumes" in errors


def test_the_log_tells_of_a_model_that_is_given_up_and_quotes_nothing(cli, tmp_path, hostile):
    server = hostile(lambda path, headers, body: (404, {}, {"error": f"no: {body!r}"}))
    plan = workspace(tmp_path, 30, makers.endpoint(f"{server.url}/v1", name="one"))
    code, _, errors = cli("run", plan, "--log", "events.jsonl")
    assert (code, "'one' is given up" in errors) == (5, True)
    events = (tmp_path / "events.jsonl").read_text()
    assert '"model_given_up"' in events
    question = json.loads((tmp_path / "bank/items.jsonl").read_text().splitlines()[0])["question"]
    assert question not in events


def test_a_refused_connection_is_tried_twice_again(tmp_path):
    plan = workspace(
        tmp_path,
        3,
        makers.endpoint("http://127.0.0.1:9/v1", concurrency=1),
        engine={"give_up_after": 9},
    )
    began = time.monotonic()
    with pytest.raises(ModelError, match="9 requests in a row failed"):  # 3 items, 3 times each
        medassay.run(plan, secrets={})
    assert time.monotonic() - began < 20


def test_a_burst_of_refusals_and_a_loading_server_end_nobody(tmp_path, hostile):
    asked = []

    def respond(path, headers, body):
        asked.append(body)
        if len(asked) <= 60:
            status = (429, 503)[len(asked) % 2]
            return status, {"Retry-After": "0.05"}, {"error": "loading"}
        return 200, {}, says("A")

    server = hostile(respond)
    plan = workspace(tmp_path, 40, makers.endpoint(f"{server.url}/v1", concurrency=16))
    run = medassay.run(plan, secrets={})
    assert {t["outcome"] for t in trials(run)} == {"answered"}


def test_a_server_that_loads_longer_than_six_requests_take_is_waited_for(tmp_path, hostile):
    def respond(path, headers, body):
        if len(server.requests) <= 9:
            return 503, {"Retry-After": "0"}, {"error": "loading"}
        return 200, {}, says("A")

    server = hostile(respond)
    plan = workspace(tmp_path, 3, makers.endpoint(f"{server.url}/v1", concurrency=1))
    run = medassay.run(plan, secrets={})
    assert {t["outcome"] for t in trials(run)} == {"answered"}
    assert len(server.requests) == 12


def test_what_a_serving_endpoint_refuses_six_times_has_failed(tmp_path, hostile):
    def respond(path, headers, body):
        if number_in(body) == 2:
            return 503, {"Retry-After": "0"}, {"error": "too long for now"}
        return 200, {}, says("A")

    server = hostile(respond)
    plan = workspace(tmp_path, 30, makers.endpoint(f"{server.url}/v1", concurrency=2))
    with pytest.raises(IncompleteError, match="1 trials have no answer: 1 failed"):
        medassay.run(plan, secrets={})
    assert len(server.requests) == 29 + 6


def test_ten_minutes_without_a_success_end_a_model_that_only_asks_for_patience():
    now = [0.0]
    breaker = CircuitBreaker(EngineRules(), clock=lambda: now[0])
    for second in range(0, 600, 10):
        now[0] = second
        assert breaker.hear(RecentEnds(patient=5, last="HTTP 429")) is None
    now[0] = 600.0
    assert "none of 305 requests succeeded in 10 minutes" in breaker.hear(RecentEnds(patient=5))
    assert breaker.hear(RecentEnds(succeeded=True)) is None
    assert breaker.hear(RecentEnds(patient=1)) is None


@given(rows)
def test_many_processes_together_count_as_one_would(ended_rows):
    """However rows are put together on the way, what was heard last is the same."""
    relay, whole = Relay(), RecentEnds()
    for row in ended_rows:
        relay.hear(row)
        whole = whole.then(row)
    assert relay.new() == whole
    assert relay.new() == RecentEnds()


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 30))
def test_a_model_is_given_up_exactly_after_so_many_failures_in_a_row(ends, most):
    breaker = CircuitBreaker(EngineRules(give_up_after=most), clock=lambda: 0.0)
    in_a_row = 0
    for good in ends:
        in_a_row = 0 if good else in_a_row + 1
        told = breaker.hear(RecentEnds(succeeded=True) if good else RecentEnds(failed=1))
        assert (told is not None) == (in_a_row >= most)


@pytest.mark.slow
@pytest.mark.parametrize("stopping", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_graceful_stop_sends_no_request_twice(tmp_path, hostile, stopping):
    seen, lock, stopped = Counter(), threading.Lock(), threading.Event()

    def respond(path, headers, body):
        with lock:
            seen[number_in(body)] += 1
        stopped.wait(0.4)
        return 200, {}, says("A")

    server = hostile(respond)
    plan = workspace(tmp_path, 400, makers.endpoint(f"{server.url}/v1", concurrency=8))
    process = start_command("run", plan)
    while len(seen) < 12:
        time.sleep(0.02)
    process.send_signal(stopping)
    code, _, errors = result_of(process)
    stopped.set()
    assert code == 130, errors
    assert len(seen) < 400
    assert result_of(start_command("run", plan))[0] == 0
    assert set(seen.values()) == {1}
    assert len(seen) == 400


def test_a_stop_waits_no_longer_than_its_grace(tmp_path, hostile):
    server = hostile(
        lambda path, headers, body: (
            ("silent", {}, "") if number_in(body) % 2 else (200, {}, says("A"))
        )
    )
    entry = makers.endpoint(f"{server.url}/v1", concurrency=8)
    plan = workspace(tmp_path, 60, entry, engine={"grace": 1.0})
    process = start_command("run", plan)
    while len(server.requests) < 8:
        time.sleep(0.02)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code, _, errors = result_of(process)
    assert code == 130, errors
    assert time.monotonic() - began < 6  # one second of grace, and a loaded machine


@pytest.mark.parametrize("provider", ["anthropic", "google", "mistral"])
def test_a_vendor_that_never_answers_is_given_up_too(tmp_path, hostile, provider):
    server = hostile(lambda path, headers, body: (500, {}, {"error": {"message": "broken"}}))
    vendor = makers.endpoint(
        server.url, provider=provider, location="external", api_key_env="KEY", concurrency=8
    )
    plan = workspace(tmp_path, 48, vendor)
    with pytest.raises(ModelError, match="'m' is given up for this start: 20 requests in a row"):
        medassay.run(plan, secrets={"KEY": "a-key-of-no-vendor-1"})
    assert 20 <= len(server.requests) <= 28


@pytest.mark.slow
def test_workers_of_ray_give_up_together(tmp_path, hostile):
    def respond(path, headers, body):
        time.sleep(0.3)
        return 500, {}, {"error": "broken"}

    server = hostile(respond)
    entry = makers.endpoint(f"{server.url}/v1", concurrency=4)
    plan = workspace(tmp_path, 120, entry, engine={"workers": 2, "shard": 30})
    code, _, errors = result_of(start_command("run", plan, "--engine", "ray"))
    assert code == 5, errors
    assert "given up for this start" in errors
    # Two workers with four requests each, and a beat of half a second until they hear of it.
    assert 20 <= len(server.requests) <= 20 + 2 * 8 + 8
