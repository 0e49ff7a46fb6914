import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from hashlib import sha256

import pytest
from tests import makers
from tests.commands import result_of, start_command, wait_for_requests
from tests.makers import workspace

import medassay
from medassay import pipeline
from medassay.bank import load_bank
from medassay.errors import IncompleteError, InputError, ModelError
from medassay.kinds.catalog import task_of_run
from medassay.prompt.render import load_template
from medassay.runner.preview import preview
from medassay.statistic.interval.wilson import wilson_interval
from medassay.storage.run import Run
from medassay.summary.breakdown import breakdown


def trials(run):
    return [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]


def test_a_bank_of_law_passes_the_whole_path(tmp_path):
    keys = {item["id"]: item["expected"] for item in makers.law_items()}
    plan = workspace(
        tmp_path,
        makers.law_items(),
        makers.fake(replies=keys),
        makers.fake("wrong", reply="<think>A?</think> Z"),
    )
    run = medassay.run(plan, secrets={})
    rows = {row["model"]: row for row in medassay.leaderboard(run).domains["law"]}
    assert rows["m"]["score"] == 1.0
    assert rows["wrong"]["score"] == 0.0
    assert rows["wrong"]["unparsed_rate"] == 1.0
    assert "not_ranked:fake" in rows["m"]["flags"]
    assert medassay.verify(run.path).ok
    page = medassay.publish(run, tmp_path / "site")
    assert "cassation" in (page.parent / "cell/m/law/zero-shot-solo/index.html").read_text()
    assert medassay.verify(tmp_path / "site").ok


def test_the_same_plan_again_replays_byte_for_byte_without_a_call(tmp_path, mock_server):
    log = tmp_path / "asked"
    url = mock_server("--log", log)
    plan = workspace(
        tmp_path, makers.many_items(40), makers.endpoint(url), repeats=2, shuffle_options=True
    )
    first = medassay.run(plan, secrets={})
    assert medassay.run(plan, secrets={}).id == first.id  # nothing is left to do
    before = makers.set_aside(first)
    second = medassay.run(plan, secrets={})
    assert len(log.read_text().split()) == 80
    assert (before / "trials.jsonl").read_bytes() == (second.path / "trials.jsonl").read_bytes()


def test_a_fresh_run_is_held_against_the_stored_one_cell_by_cell(tmp_path, mock_server, cli):
    items = makers.many_items(60)
    plan = workspace(tmp_path, items, makers.endpoint(mock_server("--text", "A")))
    first = medassay.run(plan, secrets={})
    assert cli("run", plan, "--fresh", "--yes")[0] == 0
    again = sorted((tmp_path / "runs").iterdir())[-1]
    summary = json.loads((again / "rerun.json").read_text())
    assert (summary["differing"], summary["within"]) == (0, True)
    assert summary["of"] == {"run": first.id, "root": first.seal.root}
    assert (again / "findings.jsonl").read_text() == ""
    # An endpoint whose model was changed: the same requests, other replies.
    makers.write_models(tmp_path, makers.endpoint(mock_server("--text", "B")))
    code, _, errors = cli("run", plan, "--fresh", "--yes")
    assert code == 1
    assert f"60 of 60 trials differ from run {first.id}; beyond tolerance: m in law" in errors
    changed = sorted((tmp_path / "runs").iterdir())[-1]
    lines = (changed / "findings.jsonl").read_text().splitlines()
    findings = [json.loads(line) for line in lines]
    assert len(findings) == 60
    assert {f["field"] for f in findings} == {"score", "value"}
    [cell] = json.loads((changed / "rerun.json").read_text())["cells"]
    assert (cell["identical"], cell["same_text"], cell["within"]) == (0, 0, False)
    for side, share in (("old", cell["old"]), ("new", cell["new"])):
        assert cell[f"{side}_ends"] == pytest.approx(wilson_interval(60 * share, 60))
    assert medassay.verify(changed).ok
    page = medassay.publish(medassay.open_run(changed), tmp_path / "site").parent
    shown = next((page / "run").rglob("index.html")).read_text()
    assert 'data-findings="60"' in shown


def test_a_fresh_run_that_was_cut_off_resumes_and_is_told_apart(tmp_path):
    items = makers.many_items(12)
    plan = workspace(tmp_path, items, makers.fake(letters="hash"))
    medassay.run(plan, secrets={})
    makers.write_models(tmp_path, makers.fake(letters="hash", fail_items=["q00003"]))
    with pytest.raises(IncompleteError):
        pipeline.run(plan, secrets={}, fresh=True)
    with pytest.raises(IncompleteError):
        pipeline.run(plan, secrets={}, fresh=True)
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(folders) == 2


def test_a_fresh_run_on_another_bank_version_is_not_held_against_the_old_one(tmp_path, cli):
    plan = workspace(tmp_path, makers.many_items(12), makers.fake(letters="hash"))
    medassay.run(plan, secrets={})
    makers.write_bank(tmp_path / "bank", makers.many_items(14), question_bank_version="law-2026.2")
    code, _, says = cli("run", plan, "--fresh")
    assert code == 0
    assert "no stored run of this plan" in says


def test_a_small_drift_is_within_tolerance():
    from medassay.kinds.choice.tasks import CLOSED
    from medassay.runner.replication import _Cell, _summary

    for identical, old, new, within in (
        (98, 0.80, 0.80, True),
        (97, 0.80, 0.80, False),  # fewer than 98 % alike
        (99, 0.80, 0.81, True),  # a point of 100
        (99, 0.80, 0.86, True),  # inside the old interval
        (99, 0.80, 0.89, False),
    ):
        cell = _Cell(
            trials=100, closed=100, closed_identical=identical, old=[(old, 0)], new=[(new, 0)]
        )
        key = ("law", "m", "zero_shot", "solo")
        assert _summary(key, cell, (0.72, 0.87), CLOSED).within is within


def test_outcomes_of_every_kind_are_scored_and_counted(tmp_path):
    ids = [item["id"] for item in makers.law_items()]
    script = {
        "reply": "A",
        "replies": {ids[0]: "A or B"},
        "refuse_items": [ids[1]],
        "fail_items": [ids[2]],
    }
    plan = workspace(tmp_path, makers.law_items(), makers.fake(**script))
    with pytest.raises(IncompleteError, match=r"1 failed .1 × m: scripted failure"):
        medassay.run(plan, secrets={})
    with pytest.raises(IncompleteError):
        medassay.leaderboard(next((tmp_path / "runs").iterdir()))
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    row = medassay.leaderboard(run).domains["overall"][0]
    assert row["outcomes"] == {
        "answered": 7,
        "unparsed": 1,
        "refused": 1,
        "truncated": 0,
        "failed": 1,
    }
    assert (row["n"], row["coverage"], row["ambiguous_rate"]) == (9, 0.9, 0.1)
    assert row["worst"] < row["score"] < row["best"]
    scores = [
        json.loads(line)["score"] for line in (run.path / "scores.jsonl").read_text().splitlines()
    ]
    assert scores.count(None) == 1
    assert medassay.verify(run.path).ok


def test_resuming_asks_only_what_failed(tmp_path):
    items = makers.law_items()
    plan = workspace(tmp_path, items, makers.fake(reply="A", fail_items=[items[4]["id"]]))
    with pytest.raises(IncompleteError):
        medassay.run(plan, secrets={})
    # An unfinished run of other models is not resumed: a new one starts.
    makers.write_models(tmp_path, makers.fake(reply="B"))
    run = medassay.run(plan, secrets={})
    assert run.id.endswith("-2")
    assert {t["value"] for t in trials(run)} == {"B"}


def test_faults_of_twenty_percent_are_survived_by_retries(tmp_path, mock_server):
    url = mock_server("--fail", 0.2, "--hang", "--seed", 3)
    plan = workspace(
        tmp_path, makers.many_items(200), makers.endpoint(url, concurrency=16, timeout=1)
    )
    run = medassay.run(plan, secrets={})
    assert Counter(t["outcome"] for t in trials(run)) == {"answered": 200}


@pytest.mark.slow
def test_what_still_fails_is_counted_never_scored_and_resumable(tmp_path, mock_server):
    url = mock_server("--fail", 1.0)
    plan = workspace(tmp_path, makers.law_items(), makers.endpoint(url, concurrency=10))
    makers.write_plan(tmp_path, engine={"give_up_after": 1000})
    with pytest.raises(IncompleteError, match="10 trials have no answer: 10 failed"):
        medassay.run(plan, secrets={})
    assert not list((tmp_path / "runs").glob("*/seal.json"))


def test_a_refused_key_stops_its_model_at_once_and_others_go_on(tmp_path):
    plan = workspace(
        tmp_path,
        makers.law_items(),
        makers.endpoint("http://127.0.0.1:9/v1", api_key_env="NO_SUCH_KEY"),
        makers.fake("other", reply="A"),
    )
    with pytest.raises(IncompleteError, match="NO_SUCH_KEY is not set"):
        medassay.run(plan, secrets={})
    alone = makers.write_plan(tmp_path, models=["m"])
    with pytest.raises(ModelError, match="no model answers"):
        medassay.run(alone, secrets={})


def test_the_replay_provider_answers_from_the_store_and_asks_nobody(tmp_path, mock_server):
    log = tmp_path / "asked"
    entry = makers.endpoint(mock_server("--log", log))
    plan = workspace(tmp_path, makers.law_items(), entry)
    first = medassay.run(plan, secrets={})
    makers.write_models(tmp_path, {**entry, "provider": "replay"})
    second = medassay.run(plan, secrets={})
    assert (first.path / "trials.jsonl").read_bytes() == (second.path / "trials.jsonl").read_bytes()
    assert len(log.read_text().split()) == 10
    with pytest.raises(IncompleteError, match="no stored response"):
        medassay.run(
            makers.write_plan(tmp_path, templates=["healthbranches_quiz"], seed=2), secrets={}
        )


def test_replaying_needs_no_key(tmp_path, mock_server):
    plan = workspace(
        tmp_path, makers.law_items(), makers.endpoint(mock_server(), api_key_env="A_KEY")
    )
    makers.set_aside(medassay.run(plan, secrets={"A_KEY": "secret-value"}))
    assert medassay.run(plan, secrets={}).sealed


def test_a_budget_is_never_passed_and_raising_it_resumes(tmp_path, mock_server):
    log = tmp_path / "asked"
    plan = workspace(
        tmp_path,
        makers.many_items(30),
        makers.endpoint(mock_server("--log", log)),
        budget={"calls": 12},
    )
    with pytest.raises(IncompleteError, match="the budget is spent"):
        medassay.run(plan, secrets={})
    assert len(log.read_text().split()) == 12
    makers.write_plan(tmp_path, budget={"calls": 100})
    run = medassay.run(plan, secrets={})
    assert run.id.endswith("-1")
    assert len(set(log.read_text().split())) == len(log.read_text().split()) == 30


def test_preview_counts_calls_and_money_and_calls_nothing(tmp_path, mock_server):
    log = tmp_path / "asked"
    priced = makers.endpoint(
        mock_server("--log", log), price={"input": 2.0, "output": 4.0}, max_tokens=10
    )
    plan = workspace(tmp_path, makers.many_items(10), priced)
    cost = preview(plan)
    assert (cost.calls, cost.stored, log.read_text()) == (10, 0, "")
    assert cost.money > 10 * 10 * 4e-6
    medassay.run(plan, secrets={})
    assert (preview(plan).calls, preview(plan).stored) == (0, 10)


def test_a_private_bank_never_leaves(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items(), may_leave=False)
    makers.write_models(
        tmp_path, {**makers.endpoint("http://127.0.0.1:9/v1"), "location": "external"}
    )
    with pytest.raises(InputError, match="may not leave"):
        medassay.run(makers.write_plan(tmp_path), secrets={})
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("private_first", [True, False])
def test_a_private_bank_never_leaves_beside_another_of_its_name(tmp_path, private_first):
    places = ["private", "open"] if private_first else ["open", "private"]
    for number, place in enumerate(places, 1):
        version = {"question_bank_version": f"law-2026.{number}"}
        items = makers.many_items(3, f"domain{number}")
        domains = {"domains": (f"domain{number}",)}
        makers.write_bank(
            tmp_path / place, items, **version, **domains, may_leave=place != "private"
        )
    elsewhere = {**makers.endpoint("http://127.0.0.1:9/v1"), "location": "external"}
    makers.write_models(tmp_path, elsewhere)
    with pytest.raises(InputError, match="bank 'law' may not leave"):
        medassay.run(makers.write_plan(tmp_path, banks=places), secrets={})
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"banks": ["nowhere"]}, "bank 'nowhere'"),
        ({"models": ["ghost"]}, "model 'ghost' is not an enabled entry"),
        ({"templates": ["none"]}, "template 'none' is unknown"),
        ({"settings": ["few_shot"]}, "few_shot"),
        ({"settings": ["rag"]}, "needs texts: add a table [retrieval]"),
        (
            {"settings": ["rag"], "retrieval": {"index": "no"}},
            "no index; `medassay index build",
        ),
        ({"settings": ["rag"], "retrieval": {"index": "no", "k": 0}}, "'retrieval.k' is 0"),
        ({"settings": ["topline_path"]}, "10 of 10 items have no reasoning path"),
        ({"modes": ["tools"]}, "go together"),
        ({"modes": ["tools"], "tools": {}}, "names no provider for web_search"),
        ({"tools": {"use": ["url_fetch"]}}, "go together"),
        (
            {"modes": ["tools"], "tools": {"use": ["doc_retrieval"]}},
            "doc_retrieval searches an index",
        ),
        (
            {"modes": ["tools"], "tools": {"use": ["url_fetch"]}},
            'add "tools" to its capabilities',
        ),
        ({"banks": ["bank", "again"]}, "share the domain 'law'"),
        ({"repeats": 1_000_000_000}, "asks 10,000,000,000 trials"),
    ],
)
def test_wrong_plans_are_refused_before_any_call(tmp_path, change, says):
    workspace(tmp_path, makers.law_items(), makers.fake(reply="A"))
    makers.write_bank(tmp_path / "again", makers.law_items(), name="again")
    with pytest.raises(InputError) as caught:
        medassay.run(makers.write_plan(tmp_path, **change), secrets={})
    assert says in str(caught.value)


def test_clusters_of_two_banks_that_share_a_name_stay_two(tmp_path):
    for name in ("a", "b"):
        items = [
            {**item, "id": f"{name}{item['id']}", "cluster": "v1"} if n < 2 else item
            for n, item in enumerate(makers.many_items(12, name))
        ]
        makers.write_bank(tmp_path / name, items, name=name, domains=[name])
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = medassay.run(makers.write_plan(tmp_path, banks=["a", "b"]), secrets={})
    [row] = medassay.leaderboard(run).domains["overall"]
    assert (row["n"], row["n_clusters"]) == (24, 22)
    assert row["interval"] == "score_effective"
    [group] = breakdown(run, ["language"], task_of_run(run.manifest).scale)["language"]
    assert (group.estimate.n_clusters, group.estimate.interval) == (22, "score_effective")


def test_a_sample_is_spread_over_domains_and_fixed_by_the_seed(tmp_path):
    items = [
        *makers.many_items(20, "a"),
        *({**i, "id": f"b{i['id']}"} for i in makers.many_items(20, "b")),
    ]
    makers.write_bank(tmp_path / "bank", items, domains=["a", "b"])
    makers.write_models(tmp_path, makers.fake(reply="A"))
    runs, chosen = [], []
    for seed in (1, 1, 2):
        run = medassay.run(makers.write_plan(tmp_path, sample=9, seed=seed), secrets={})
        chosen.append(tuple(t["item"] for t in trials(run)))
        runs.append(Run(makers.set_aside(run)))
    assert Counter(t["domain"] for t in trials(runs[0])) == {"a": 5, "b": 4}
    assert chosen[0] == chosen[1] != chosen[2]


def test_shuffled_options_score_knowledge_not_position(tmp_path):
    items = [
        {**i, "expected": "A", "options": ["right", "wrong", "bad", "worse"]}
        for i in makers.many_items(60)
    ]
    plan = workspace(
        tmp_path,
        items,
        makers.fake("habit", reply="A"),
        makers.fake("knows", reply="right"),
        shuffle_options=True,
    )
    run = medassay.run(plan, secrets={})
    rows = {row["model"]: row["score"] for row in medassay.leaderboard(run).domains["overall"]}
    assert rows["knows"] == 1.0
    assert 0.1 < rows["habit"] < 0.45
    assert medassay.verify(run.path).ok


def start(plan):
    return start_command("run", plan, "--quiet")


def prompt_hashes(folder):
    """Item → the hash by which the mock server logs its prompt."""
    template = load_template("closed")
    items = load_bank(folder, lock=None).items
    return {i.id: sha256(template.fill(i, None).encode()).hexdigest() for i in items}


def journalled_items(folder):
    lines = [
        line
        for p in folder.glob("runs/*/journal/*.jsonl")
        for line in p.read_bytes().splitlines(keepends=True)
    ]
    return {json.loads(line)["record"]["item"] for line in lines if line.endswith(b"\n")}


@pytest.mark.slow
def test_kill_at_random_moments_loses_and_repeats_nothing(tmp_path, mock_server):
    log = tmp_path / "asked"
    items = makers.many_items(500)
    calm = tmp_path / "calm"
    calm.mkdir()
    undisturbed = medassay.run(workspace(calm, items, makers.endpoint(mock_server())), secrets={})
    # Slow enough that no machine finishes the run between the kills: at least 20 s of asking.
    url = mock_server("--delay-ms", 160, "--log", log)
    plan = workspace(tmp_path, items, makers.endpoint(url, concurrency=4))
    hashes = prompt_hashes(tmp_path / "bank")
    rng = random.Random(20261120)
    asked_when_journalled = {}
    for _ in range(10):
        before = log.stat().st_size if log.exists() else 0
        process = start(plan)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not log.exists() or log.stat().st_size <= before):
            time.sleep(0.02)  # a busy machine may need seconds to start
        time.sleep(0.2 + 1.3 * rng.random())
        process.kill()
        process.communicate()
        journalled = journalled_items(tmp_path)
        asked = Counter(log.read_text().split())
        for item in journalled - asked_when_journalled.keys():
            asked_when_journalled[item] = asked[hashes[item]]
    process = start(plan)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    asked = Counter(log.read_text().split())
    assert len(asked_when_journalled) > 20
    assert all(asked[hashes[item]] == count for item, count in asked_when_journalled.items())
    [folder] = (tmp_path / "runs").iterdir()
    # The two endpoints differ in their address, hence only in the key of the stored response.
    ends = [
        [{**t, "response": ""} for t in trials(run)]
        for run in (medassay.open_run(folder), undisturbed)
    ]
    assert ends[0] == ends[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "told"),
    [
        ([signal.SIGINT], "are answered and kept"),
        ([signal.SIGTERM], "are answered and kept"),
        ([signal.SIGINT, signal.SIGTERM], "everything answered is kept"),  # at once
    ],
)
def test_who_is_stopped_keeps_everything_exits_130_and_resumes(
    tmp_path, mock_server, signals, told
):
    log = tmp_path / "asked"
    url = mock_server("--delay-ms", 100, "--log", log)
    # Fifteen seconds: the signal comes in time on a loaded machine.
    plan = workspace(tmp_path, makers.many_items(600), makers.endpoint(url, concurrency=4))
    process = start(plan)
    wait_for_requests(log, 10, process)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.02)
    code, _, errors = result_of(process)
    assert code == 130, errors
    assert told in errors
    assert "the same command resumes" in errors
    assert errors.count("\n") == 1
    makers.write_models(tmp_path, makers.endpoint(url, concurrency=64))
    code, _, errors = result_of(start(plan))
    assert code == 0, errors
    asked_twice = len(log.read_text().split()) - 600
    assert asked_twice == 0 if len(signals) == 1 else asked_twice <= 4


def test_a_full_disk_is_one_line_and_nothing_half_written(tmp_path):
    plan = workspace(tmp_path, makers.many_items(400), makers.fake(reply="A"))
    limited = f"ulimit -f 40; exec {sys.executable} -m medassay run {plan} --quiet"
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {limited}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    place = re.escape(str(tmp_path))
    told = rf"error: {place}/\S+: File too large; free some space and give the same command again\n"
    assert re.fullmatch(told, done.stderr), done.stderr
    assert not list((tmp_path / "runs").glob("*/seal.json"))
    run = medassay.run(plan, secrets={})
    assert len(trials(run)) == 400


def test_it_works_where_a_loop_is_already_running(tmp_path):
    import asyncio

    plan = workspace(tmp_path, makers.law_items(), makers.fake(reply="A"))

    async def notebook():
        return medassay.run(plan, secrets={})

    assert asyncio.run(notebook()).sealed


def test_secrets_are_in_no_file(tmp_path, mock_server):
    entry = makers.endpoint(mock_server("--text", "A"), api_key_env="SOME_KEY")
    plan = workspace(tmp_path, makers.law_items(), entry)
    medassay.run(plan, secrets={"SOME_KEY": "tell-nobody-1234", "OTHER": "x"})
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"tell-nobody-1234" not in path.read_bytes()


def test_rules_of_diagnoses_are_refused_where_none_are_asked_for(tmp_path):
    plan = makers.workspace(
        tmp_path, makers.many_items(3), makers.fake("m", reply="A"), ddx={"rank_limit": 3}
    )
    with pytest.raises(
        InputError, match=r"plan: 'ddx' holds rules of other tasks \(ddx, ddx_names\)"
    ):
        medassay.run(plan, secrets={})
    assert not list(tmp_path.glob("runs/*"))
