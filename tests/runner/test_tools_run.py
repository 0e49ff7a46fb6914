"""The mode `tools` over whole runs: every call kept, none repeated, replayed without a network,
published apart.
"""

import json
import os
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from tests import makers
from tests.context.services import Services
from tests.contract.endpoint import Endpoint, chat

import medassay
from medassay import pipeline
from medassay.core.canonical import sha256_hex
from medassay.core.records.trial import TracedCall
from medassay.errors import GateError, IncompleteError, InputError
from medassay.kinds.results import leaderboard
from medassay.publishing.publish import publish
from medassay.runner.prepare import prepare
from medassay.runner.preview import preview
from medassay.storage.jsonl import read_jsonl
from medassay.storage.response import ResponseStore


@pytest.fixture
def services():
    made = Services()
    yield made
    made.stop()


def caller(name="m", turns=None, **script):
    """Return a scripted model that calls tools, as its entry says."""
    looks = [
        {"name": tool, "arguments": {"query": "{item}"}}
        for tool in ("pubmed_search", "arxiv_search", "web_search")
    ]
    made = makers.fake(name, reply="B", tools=[looks] if turns is None else turns, **script)
    return {**made, "capabilities": ["chat", "tools"]}


def place_of(folder, services, items, model=None, **more):
    makers.write_bank(folder / "bank", items)
    makers.write_models(folder, model or caller())
    return plan_of(folder, services, **more)


def plan_of(folder, services, **more):
    rules = services.rules(**more.pop("tools", {}))
    return makers.write_plan(folder, **{"modes": ["solo", "tools"], "tools": rules, **more})


def trials(run, mode="tools"):
    return [t for t in read_jsonl(run.path / "trials.jsonl") if t["mode"] == mode]


def stored(folder, keys):
    """Return what the response store holds under some keys."""
    with ResponseStore(folder / "responses") as store:
        return [json.loads(store.get(key).text) for key in keys]


def named(n, word):
    """Return n items whose ids hold a word, since ids are what the scripted model looks for."""
    return [{**item, "id": f"{item['id']}-{word}"} for item in makers.many_items(n)]


def test_every_call_is_kept_with_its_result_and_hash(tmp_path, services):
    run = medassay.run(place_of(tmp_path, services, makers.many_items(3)), secrets={})
    for trial in trials(run):
        assert trial["tool_use"] == {"calls": 3, "failed": 0, "unavailable": 0}
        assert [t["tool"] for t in trial["trace"]] == [
            "pubmed_search",
            "arxiv_search",
            "web_search",
        ]
        assert all(
            len(t["sha256"]) == 64 and trial["item"] in t["arguments"] for t in trial["trace"]
        )
        kept = stored(tmp_path, [t["response"] for t in trial["trace"]])
        assert [sha256_hex(k["text"].encode()) for k in kept] == [
            t["sha256"] for t in trial["trace"]
        ]
        assert json.loads(kept[0]["text"])["results"][0]["abstract"]
        assert "+tools@" in trial["template"]
    assert not any("trace" in t or "tool_use" in t for t in trials(run, "solo"))
    assert medassay.verify(run.path).ok


def test_a_replay_reads_the_same_findings_without_a_network(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(8))
    first = medassay.run(plan, secrets={})
    asked = services.asked.total()
    services.server.shutdown()
    services.server.server_close()
    before = makers.set_aside(first)
    again = medassay.run(plan, secrets={})
    assert (again.path / "trials.jsonl").read_bytes() == (before / "trials.jsonl").read_bytes()
    assert services.asked.total() == asked
    services.__init__()


def test_solo_and_tools_are_two_series_with_their_difference(tmp_path, services):
    items = makers.many_items(24)
    model = caller()
    model["script"]["replies"] = {item["id"]: item["expected"] for item in items[:12]}
    run = medassay.run(place_of(tmp_path, services, items, model), secrets={})
    rows = run.statistics.document["domains"]["overall"]
    assert sorted(row["mode"] for row in rows) == ["solo", "tools"]
    [overall, law] = run.statistics.document["tools_minus_solo"]
    assert (overall["domain"], law["domain"], law["n"]) == ("overall", "law", 24)
    assert (law["diff"], law["different"]) == (0, False)
    assert (law["lo"], law["hi"]) == pytest.approx((-1 / 24, 1 / 24))  # as much as one item
    use = next(row["tool_use"] for row in rows if row["mode"] == "tools")
    assert (use["calls"], use["answers"], use["with_calls"]) == (72, 24, 24)
    assert use["calls_an_answer"]["score"] == 3
    page = publish(run, tmp_path / "site").parent
    shown = (page / "tools" / "index.html").read_text()
    assert "Tools minus solo" in shown
    assert (page / "track" / "tools" / "index.html").exists()
    facts = (page / "run" / run.id / "index.html").read_text()
    assert 'data-calls="72"' in facts
    assert "calls of tools" in "".join(p.read_text() for p in page.glob("cell/**/index.html"))
    assert medassay.verify(page).ok


def test_of_synthetic_items_counts_are_published_and_nothing_that_was_looked_up(tmp_path, services):
    items = [{**item, "kind": "synthetic"} for item in named(12, "zebrafinch")]
    run = medassay.run(place_of(tmp_path, services, items), secrets={})
    page = publish(run, tmp_path / "site").parent
    public = [*read_jsonl(page / "data" / "run" / "trials.jsonl")]
    assert {t["tool_use"]["calls"] for t in public if t["mode"] == "tools"} == {3}
    assert not any("trace" in t for t in public)
    texts = [p.read_text(errors="replace") for p in page.rglob("*") if p.is_file()]
    assert not any("It was gout" in text or "Question number" in text for text in texts)
    assert medassay.verify(page).ok


@pytest.mark.parametrize(("n", "published"), [(19, False), (20, True)])
def test_a_run_that_could_not_reach_its_tools_is_not_published(tmp_path, services, n, published):
    items = [*named(1, "busy"), *named(n, "fine")[1:]]
    turns = [[{"name": "web_search", "arguments": {"query": "{item}"}}]]
    plan = place_of(tmp_path, services, items, caller(turns=turns), modes=["tools"])
    run = medassay.run(plan, secrets={})
    [row] = run.statistics.document["domains"]["overall"]
    assert ("unavailable" in row["flags"]) == (not published)
    if published:  # 5 % is the bound
        assert publish(run, tmp_path / "site").exists()
        return
    with pytest.raises(GateError, match=r"1 of 19 calls .* \(5\.3 %, at most 5 %\).*mode solo"):
        publish(run, tmp_path / "site")
    assert not (tmp_path / "site" / "p").exists() or not any((tmp_path / "site" / "p").iterdir())


@pytest.mark.slow
def test_five_hundred_items_with_faults_are_counted_and_survive_a_kill(tmp_path, services):
    words = [
        "fine",
        "hiccup",
        "torn",
        "down",
        "nothing",
        "busy",
        "fine",
        "fine",
        "fine",
        "fine",
    ]
    items = [named(500, "slow" if n % 50 == 9 else words[n % 10])[n] for n in range(500)]
    # Few are slow and may take long: on a loaded machine no other must come too late.
    plan = place_of(tmp_path, services, items, modes=["tools"], tools={"timeout": 6})
    code = "import medassay, sys; medassay.run(sys.argv[1], secrets={})"
    process = subprocess.Popen([sys.executable, "-c", code, str(plan)])
    until(lambda: services.asked.total() > 600, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # what was under way on the server's side ends
    kept = kept_calls(tmp_path)
    assert len(kept) > 100
    before = services.asked.copy()
    run = medassay.run(plan, secrets={})
    again = services.asked - before
    for tool, query in kept:
        assert not [asked for asked in again if asked == (PATHS[tool], shown(tool, query))]
    statuses = {}
    for trial in trials(run):
        assert trial["tool_use"]["calls"] == 3
        word = trial["item"].rpartition("-")[2]
        statuses.setdefault(word, set()).add(
            (trial["tool_use"]["failed"], trial["tool_use"]["unavailable"])
        )
    assert statuses == {
        "fine": {(0, 0)},
        "hiccup": {(0, 0)},
        "nothing": {(0, 0)},
        "torn": {(3, 0)},
        "down": {(3, 3)},
        "busy": {(3, 3)},
        "slow": {(3, 3)},
    }
    assert run.statistics.document["lookups"]["calls"] == {
        "calls": 1500,
        "failed": 480,
        "unavailable": 330,
    }
    with pytest.raises(GateError, match=r"330 of 1500 calls of tools were unavailable \(22\.0 %"):
        publish(run, tmp_path / "site")


PATHS = {
    "pubmed_search": "/entrez/esearch.fcgi",
    "arxiv_search": "/arxiv",
    "web_search": "/search",
}


def shown(tool, query):
    if tool != "arxiv_search":
        return query
    return " AND ".join(f"all:{word}" for word in query.replace("-", " ").split())


def until(condition, process):
    end = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.02)


def kept_calls(folder):
    """Return (tool, query) of every finding that was on disk when the process was killed."""
    found = []
    for path in (folder / "responses").glob("active-*.jsonl"):
        for line in path.read_bytes().splitlines():
            record = json.loads(line) if line.endswith(b"}") else {}
            if "tool" in record:
                found.append((record["tool"], record["item"]))
    return found


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"capabilities": ["chat"]}, 'add "tools" to its capabilities'),
        ({"provider": "transformers", "path": "x"}, "local weights call no tools here"),
        (
            {"provider": "openai_compatible", "url": "http://x/v1", "protocol": "completions"},
            'it needs protocol "chat"',
        ),
    ],
)
def test_models_without_tools_are_refused_with_the_reason(tmp_path, services, model, says):
    entry = {k: v for k, v in caller().items() if k != "script"} | model
    plan = place_of(tmp_path, services, makers.many_items(2), entry)
    with pytest.raises(InputError, match=says):
        medassay.run(plan, secrets={})


def test_a_baseline_is_asked_once_and_calls_nothing(tmp_path, services):
    makers.write_bank(tmp_path / "bank", makers.many_items(4))
    makers.write_models(tmp_path, caller(), {"id": "r", "provider": "baseline", "model": "random"})
    run = medassay.run(plan_of(tmp_path, services, models=["m", "r"]), secrets={})
    assert sorted({(t["model"], t["mode"]) for t in read_jsonl(run.path / "trials.jsonl")}) == [
        ("m", "solo"),
        ("m", "tools"),
        ("r", "solo"),
    ]


def test_a_bank_that_may_not_leave_is_looked_up_in_no_search(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(2))
    makers.write_bank(tmp_path / "bank", makers.many_items(2), may_leave=False)
    with pytest.raises(InputError, match=r"what a model looks up by .*web_search does"):
        medassay.run(plan, secrets={})
    assert not services.asked


def test_the_rules_of_tools_are_part_of_the_methodology_and_no_key_is_kept(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(2))
    one = medassay.run(plan, secrets={})
    keyed = {"search": "brave", "search_url": f"{services.url}/brave", "search_key_env": "KEY"}
    plan_of(tmp_path, services, tools=keyed)
    with pytest.raises(IncompleteError, match="KEY is not set"):
        medassay.run(plan, secrets={})
    other = medassay.run(plan, secrets={"KEY": "s3cret-value"})
    assert one.manifest_document["methodology"] != other.manifest_document["methodology"]
    assert "s3cret-value" in [h.get("X-Subscription-Token") for h in services.headers]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"s3cret-value" not in path.read_bytes()


def test_a_budget_ends_a_conversation_without_losing_what_was_found(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(6), modes=["tools"], budget={"calls": 5})
    with pytest.raises(IncompleteError, match="the budget is spent"):
        medassay.run(plan, secrets={})
    before = services.asked.copy()
    plan_of(tmp_path, services, modes=["tools"])
    run = medassay.run(plan, secrets={})
    assert len(trials(run)) == 6
    assert all(count <= 1 for count in services.asked.values())
    assert services.asked.total() >= before.total()


def test_fresh_asks_models_and_services_anew(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(3), modes=["tools"])
    medassay.run(plan, secrets={})
    asked = services.asked.total()
    pipeline.run(plan, secrets={}, fresh=True)
    assert services.asked.total() == 2 * asked


def test_what_a_tool_found_otherwise_is_the_cause_of_another_answer():
    from medassay.runner.replication import _cause

    def trial(text, *calls):
        keys = ("turn", "tool", "arguments", "sha256")
        trace = tuple(TracedCall(**dict(zip(keys, call, strict=True))) for call in calls)
        return makers.trial(text=text, trace=trace)

    old = trial("A", (1, "web_search", "{}", "x"), (2, "web_search", "{}", "y"))
    other = trial("B", (1, "web_search", "{}", "z"), (2, "web_search", '{"q":1}', "y"))
    asked = trial("B", (1, "web_search", '{"q":1}', "z"))
    assert _cause(old, other, closed=True) == "tool"
    assert _cause(old, asked, closed=True) == "unknown"
    assert _cause(old, msgspec.structs.replace(old, text="B"), closed=True) == "unknown"
    assert _cause(old, old, closed=True) == "bug"


def test_forgetting_an_item_forgets_what_was_looked_up_for_it(tmp_path, services):
    from medassay.publishing.tombstone import forget

    plan = place_of(tmp_path, services, makers.many_items(3), modes=["tools"])
    run = medassay.run(plan, secrets={})
    found = forget("q00001", tmp_path, reason="asked for", at="2026-11-22T00:00:00Z")
    assert found.replies == 2 + 3  # two turns, three findings
    kept = [t for t in read_jsonl(run.path / "trials.jsonl") if t["item"] == "q00001"]
    assert not any("trace" in t for t in kept)
    assert leaderboard(run)


def test_a_preview_bounds_what_conversations_may_cost_and_looks_nothing_up(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(3), modes=["tools"])
    found = preview(plan)
    assert found.calls == 3 * (8 + 2 + 1)
    assert not services.asked
    run = medassay.run(plan, secrets={})
    used = sum(t["prompt_tokens"] + t["completion_tokens"] for t in trials(run))
    assert found.tokens > used


def test_retrieval_and_the_tool_that_searches_the_same_index_work_in_one_run(
    tmp_path, services, monkeypatch
):
    """The embedder is closed after the passages are found, and must be brought back for the
    tool.
    """
    from medassay.context.retrieval.embed import FakeEmbedder

    closed, asked = set(), []
    real = FakeEmbedder.embed

    async def embed(self, texts):
        assert id(self) not in closed
        asked.extend(texts)
        return await real(self, texts)

    async def close(self):
        closed.add(id(self))

    makers.write_index(tmp_path)
    monkeypatch.setattr(FakeEmbedder, "embed", embed)
    monkeypatch.setattr(FakeEmbedder, "close", close)
    kept = []

    def init(self):
        kept.append(self)  # so that ids stay apart

    monkeypatch.setattr(FakeEmbedder, "__init__", init)
    makers.write_bank(tmp_path / "bank", makers.pathway_items(), domains=("gout", "anaemia"))
    turns = [[{"name": "doc_retrieval", "arguments": {"query": "{item}"}}]]
    makers.write_models(tmp_path, caller(turns=turns))
    plan = makers.write_plan(
        tmp_path,
        modes=["tools"],
        settings=["rag"],
        retrieval={"index": "index", "query_prefix": "find: "},
        tools={"use": ["doc_retrieval"]},
    )
    run = medassay.run(plan, secrets={})
    assert {t["tool_use"]["failed"] for t in trials(run)} == {0}
    assert all(text.startswith("find: ") for text in asked)


def test_a_new_version_of_the_bank_and_another_name_of_the_model_find_the_same_again(
    tmp_path, services
):
    plan = place_of(tmp_path, services, makers.many_items(4), modes=["tools"])
    medassay.run(plan, secrets={})
    asked = services.asked.total()
    makers.write_bank(tmp_path / "bank", makers.many_items(4), question_bank_version="law-2026.2")
    makers.write_models(tmp_path, {**caller("other"), "model": "m"})
    run = medassay.run(plan_of(tmp_path, services, modes=["tools"], models=["other"]), secrets={})
    assert len(trials(run)) == 4
    assert services.asked.total() == asked


def test_a_replay_needs_no_key(tmp_path, services):
    keyed = {"search": "brave", "search_url": f"{services.url}/brave", "search_key_env": "KEY"}
    plan = place_of(tmp_path, services, makers.many_items(2), modes=["tools"], tools=keyed)
    first = medassay.run(plan, secrets={"KEY": "s3cret-value"})
    again = medassay.run(plan, secrets={})
    assert (again.path / "trials.jsonl").read_bytes() == (first.path / "trials.jsonl").read_bytes()


def test_another_list_of_hosts_is_another_methodology_and_looks_up_anew(tmp_path, services):
    plan = place_of(tmp_path, services, makers.many_items(2), modes=["tools"])
    medassay.run(plan, secrets={})
    asked = services.asked.total()
    plan_of(tmp_path, services, modes=["tools"], tools={"deny": ["example.org"]})
    medassay.run(plan, secrets={})
    assert services.asked.total() == 2 * asked


def test_a_model_without_a_system_line_is_told_of_tools_before_the_question(tmp_path, services):
    from medassay.core.records.plan import load_plan

    for role in ("none", "system"):
        model = {**caller(), "system_role": role, "system_line": "Be brief."}
        plan = place_of(tmp_path, services, makers.many_items(1), model)
        schedule = prepare(load_plan(plan), tmp_path, tmp_path).schedule
        cells = {cell.mode: cell for cell in schedule.cells}
        item = schedule.trial(0)[1]
        shown = {mode: schedule.prompt(cell, item) for mode, cell in cells.items()}
        told = "up to 8 calls"
        whole = {m: "".join(x["content"] for x in p.messages) for m, p in shown.items()}
        assert (told in whole["tools"], told in whole["solo"]) == (True, False)
        assert (told in shown["tools"].messages[-1]["content"]) == (role == "none")
        assert ("Be brief." in whole["tools"]) == (role == "system")
        assert shown["tools"].tools == schedule.tools != shown["solo"].tools == b""


def test_a_hostile_call_is_a_failed_call_and_no_end_of_the_run(tmp_path, services):
    wishes = [
        {"id": "a", "function": {"name": "pubmed_search", "arguments": '{"\\ud800": 1}'}},
        {"id": "b", "function": {"name": "\ud800", "arguments": "{}"}},
    ]
    endpoint = Endpoint()
    endpoint.replies = [
        (200, {}, chat(None, finish="tool_calls", tool_calls=wishes)),
        (200, {}, chat("B")),
    ]
    model = makers.endpoint(endpoint.url, capabilities=["chat", "tools"])
    plan = place_of(tmp_path, services, makers.many_items(1), model, modes=["tools"])
    run = medassay.run(plan, secrets={})
    [trial] = trials(run)
    assert (trial["tool_use"]["failed"], trial["value"]) == (2, "B")
    assert medassay.verify(run.path).ok
    endpoint.server.shutdown()
    endpoint.server.server_close()
