"""What could not be used is told, and is asked once more: just that, nothing overwritten, and told
on the board.
"""

import json
import re
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
from tests import makers
from tests.attack.servers import Hostile, says

import medassay
from medassay import pipeline
from medassay.core.again import CLASSES, read_again
from medassay.errors import IncompleteError, InputError
from medassay.storage.response import ResponseStore
from medassay.storage.run import open_run

NUMBER = re.compile(rb"Question number (\d+)\?")


@pytest.fixture
def endpoint():
    """Start servers that count what they were asked and reply as told."""
    started = []

    def start(reply):
        seen, lock = Counter(), threading.Lock()

        def respond(path, headers, body):
            found = NUMBER.search(body)
            number = int(found[1]) if found else body
            with lock:
                seen[number] += 1
            return 200, {}, reply(number, seen[number])

        started.append(Hostile(respond))
        return SimpleNamespace(url=f"{started[-1].url}/v1", seen=seen)

    yield start
    for server in started:
        server.close()


def cut(text):
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return {"choices": [choice]}


def once_unwell(number, times):
    """One in ten is empty, one cut off among its thoughts, one refused.

    Asked again, all are well.
    """
    if times > 1:
        return says("A")
    return {
        0: says(""),
        1: cut("<think>The patient has"),
        2: says("I cannot help with that."),
    }.get(number % 10, says("A"))


def workspace(folder, *entries, n=30, **plan):
    makers.write_bank(folder / "bank", makers.many_items(n))
    makers.write_models(folder, *entries)
    return makers.write_plan(folder, models=[e["id"] for e in entries], **plan)


def trials(run):
    return [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]


def rows(run):
    return {row["model"]: row for row in run.statistics.document["domains"]["overall"]}


def test_just_what_could_not_be_used_is_asked_once_more(tmp_path, endpoint, cli):
    server = endpoint(once_unwell)
    plan = workspace(tmp_path, makers.endpoint(server.url, think_tags=True))
    code, _, errors = cli("run", plan)
    assert code == 0
    assert "m: 9 of 30 replies cannot be used: 3 empty, 3 truncated, 3 refused" in errors
    assert "`--again empty,refused,truncated` asks these once more" in errors
    [first] = (tmp_path / "runs").iterdir()
    before = (first / "trials.jsonl").read_bytes()
    reasons = {t["reason"] for t in map(json.loads, before.decode().splitlines())}
    assert {"blank", "thought not ended", "said"} <= reasons
    code, out, errors = cli("run", plan, "--again", "empty,truncated")
    assert code == 0, errors
    assert Counter(server.seen.values()) == {1: 24, 2: 6}
    assert all(server.seen[n] == 2 for n in range(30) if n % 10 in (0, 1))
    assert "asked again: 6" in out
    again = open_run(tmp_path / "runs" / f"{first.name.rpartition('-')[0]}-2")
    assert again.manifest_document["again_of"]["run"] == first.name
    assert (first / "trials.jsonl").read_bytes() == before
    used = [t for t in trials(again) if "attempt" in t]
    assert {(t["attempt"], t["again"]) for t in used} == {(1, "empty"), (1, "truncated")}
    assert rows(again)["m"]["asked_again"] == 6
    assert rows(again)["m"]["rank"] is not None or "too_few" in str(rows(again)["m"]["flags"])
    assert medassay.verify(again.path).ok
    assert medassay.verify(first).ok
    with ResponseStore(tmp_path / "responses") as store:
        assert sum(usage is not None for usage in store.usages().values()) == 36


def test_a_run_asked_again_is_published_with_its_mark_and_verifies(tmp_path, endpoint, cli):
    server = endpoint(once_unwell)
    plan = workspace(tmp_path, makers.endpoint(server.url, think_tags=True))
    medassay.run(plan, secrets={})
    run = pipeline.run(plan, secrets={}, again="empty")
    medassay.publish(run, tmp_path / "site", publication="one")
    assert medassay.verify(tmp_path / "site").ok
    page = (tmp_path / "site" / "p" / "one" / "index.html").read_text()
    assert "asked again: 3" in page


@pytest.mark.parametrize(
    ("wish", "ranked"), [("empty", True), ("empty:m", False), ("refused", False)]
)
def test_a_row_with_more_chances_than_others_is_not_ranked(tmp_path, endpoint, wish, ranked):
    servers = [endpoint(once_unwell), endpoint(once_unwell)]
    entries = [
        makers.endpoint(server.url, name=name, think_tags=True)
        for server, name in zip(servers, ("m", "other"), strict=True)
    ]
    plan = workspace(tmp_path, *entries, n=60)
    medassay.run(plan, secrets={})
    run = pipeline.run(plan, secrets={}, again=wish)
    found = rows(run)
    assert (found["m"]["rank"] is not None) == ranked
    assert ("not_ranked:asked_again" in found["m"]["flags"]) != ranked
    asked_other = ":" not in wish
    assert ("asked_again" in found["other"]["flags"]) == asked_other
    assert (found["other"]["rank"] is not None) == (ranked or not asked_other)


def test_attempts_add_up_and_a_kill_on_the_way_asks_nobody_twice(tmp_path, endpoint):
    server = endpoint(lambda number, times: says("" if number % 10 == 0 and times < 3 else "A"))
    plan = workspace(tmp_path, makers.endpoint(server.url))
    medassay.run(plan, secrets={})
    pipeline.run(plan, secrets={}, again="empty")
    makers.write_plan(tmp_path, models=["m"], budget={"calls": 2})
    with pytest.raises(IncompleteError, match="the budget is spent"):
        pipeline.run(plan, secrets={}, again="empty")
    makers.write_plan(tmp_path, models=["m"])
    run = pipeline.run(plan, secrets={}, again="empty")
    assert Counter(server.seen.values()) == {1: 27, 3: 3}
    assert {t["attempt"] for t in trials(run) if "attempt" in t} == {2}


def judged_workspace(folder, server, n=20):
    items = makers.open_items(n)
    for number, item in enumerate(items):
        item["question"] = f"Question number {number}?"
    makers.write_bank(folder / "bank", items)
    own = makers.endpoint(server.url, name="one", family="one", max_tokens=256)
    judges = [own, *makers.judges()[:2]]
    makers.write_models(folder, makers.fake("m", reply="rest and fluids"), *judges)
    return makers.write_plan(
        folder, models=["m"], task="open", judges=[judge["id"] for judge in judges]
    )


VERDICT = json.dumps(
    {
        "facts": [{"id": f"f{n}", "verdict": "missing", "evidence": ""} for n in (1, 2, 3)],
        "extra_false_claims": [],
    }
)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_judge_that_replies_with_nothing_is_asked_again_alone(tmp_path, endpoint, cli, sealed):
    recovered = threading.Event()

    def reply(number, times):
        unwell = not recovered.is_set() and number in (3, 7, 11, 15)
        return says("" if unwell else VERDICT)

    server = endpoint(reply)
    plan = judged_workspace(tmp_path, server)
    code, _, errors = cli("run", plan)
    assert code == 4
    told = [line for line in errors.splitlines() if "judge 'one'" in line]
    assert len(told) == 1, errors
    assert "16 of 20 verdicts can be used (4 × empty)" in told[0]
    if sealed:
        code, _, errors = cli("run", plan, "--accept-failures")
        assert code == 0, errors
        [first] = (tmp_path / "runs").iterdir()
        assert medassay.verify(first).ok
    before = Counter(server.seen)
    recovered.set()
    code, _, errors = cli("run", plan, "--again", "unusable")
    assert code == 0, errors
    assert +(server.seen - before) == {3: 1, 7: 1, 11: 1, 15: 1}
    last = sorted((tmp_path / "runs").iterdir())[-1]
    verdicts = [json.loads(line) for line in (last / "verdicts.jsonl").read_text().splitlines()]
    assert {v["outcome"] for v in verdicts} == {"valid"}
    assert Counter(v.get("attempt", 0) for v in verdicts) == {0: 56, 1: 4}
    assert medassay.verify(last).ok
    assert len(list((tmp_path / "runs").iterdir())) == 1 + sealed


def test_judges_of_a_sealed_run_are_asked_again_by_its_folder(tmp_path, endpoint, cli):
    recovered = threading.Event()

    def reply(number, times):
        unwell = not recovered.is_set() and number in (3, 7)
        return says("" if unwell else VERDICT)

    server = endpoint(reply)
    plan = judged_workspace(tmp_path, server)
    assert cli("run", plan, "--accept-failures")[0] == 0
    [first] = (tmp_path / "runs").iterdir()
    recovered.set()
    before = Counter(server.seen)
    code, _, errors = cli(
        "judge", first, "--again", "unusable:one", "--models", tmp_path / "models.json"
    )
    assert code == 0, errors
    assert +(server.seen - before) == {3: 1, 7: 1}
    [made] = [p for p in (tmp_path / "runs").iterdir() if p != first]
    verdicts = [json.loads(line) for line in (made / "verdicts.jsonl").read_text().splitlines()]
    assert Counter(v["outcome"] for v in verdicts) == {"valid": 60}
    assert open_run(made).manifest_document["again_of"]["run"] == first.name
    assert medassay.verify(made).ok
    assert medassay.verify(first).ok
    for wish, told in (
        ("empty", "only verdicts are asked again here"),
        ("unusable:m", "'m' is no judge of run"),
    ):
        code, _, errors = cli("judge", first, "--again", wish)
        assert (code, told in errors) == (3, True), errors
    code, _, errors = cli("judge", first)
    assert (code, "either --panel names who judges, or --again" in errors) == (2, True)


def test_a_wish_that_cannot_be_met_is_refused(tmp_path, endpoint, cli):
    server = endpoint(lambda number, times: says("A"))
    plan = workspace(tmp_path, makers.endpoint(server.url), n=5)
    code, _, errors = cli("run", plan, "--again", "empty")
    assert (code, "was not run yet" in errors) == (3, True)
    medassay.run(plan, secrets={})
    code, _, errors = cli("run", plan, "--again", "blank")
    assert (code, "expected empty, truncated, refused, unusable" in errors) == (3, True)
    code, _, errors = cli("run", plan, "--again", "empty:nobody")
    assert (code, "'nobody' is no model or judge of this plan" in errors) == (3, True)
    code, _, errors = cli("run", plan, "--again", "empty", "--fresh")
    assert (code, "give one of them" in errors) == (2, True)
    with pytest.raises(InputError):
        read_again("")
    assert read_again(",".join(CLASSES)).classes == CLASSES
