"""A budget holds for the run: over starts, kills, retries and engines.

What is spent is written down before it is sent.
"""

import errno
import json
import os
import random
import re
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.attack.servers import Hostile, says
from tests.commands import result_of, start_command

import medassay
from medassay import pipeline
from medassay.core.amount import Amount
from medassay.core.records.completion import Usage
from medassay.core.records.model import ModelSpec, Price
from medassay.errors import IncompleteError, InputError
from medassay.runner.spending import spent_in_all
from medassay.storage import spend
from medassay.storage.run import open_run
from medassay.storage.spend import SpendJournal, spendings

NUMBER = re.compile(rb"Question number (\d+)\?")
PRICE = {"input": 100.0, "output": 1000.0}
USAGE = {"prompt_tokens": 40, "completion_tokens": 20}
COST = (40 * 100 + 20 * 1000) / 1e6


@pytest.fixture
def endpoint():
    """Start servers that count what they answered, and fail as told."""
    started = []

    def start(fail=lambda number, times: None, delay=0.0):
        seen, lock = [], threading.Lock()

        def respond(path, headers, body):
            number = int(NUMBER.search(body)[1])
            with lock:
                seen.append(number)
                fault = fail(number, seen.count(number))
            time.sleep(delay)
            return fault or (200, {}, {**says("A"), "usage": USAGE})

        started.append(Hostile(respond))
        return SimpleNamespace(url=f"{started[-1].url}/v1", seen=seen)

    yield start
    for server in started:
        server.close()


def workspace(folder, server, n, *, plan=None, **entry):
    makers.write_bank(folder / "bank", makers.many_items(n))
    makers.write_models(
        folder,
        makers.endpoint(server.url, price=PRICE, timeout=1.0, max_tokens=32, **entry),
    )
    return makers.write_plan(folder, models=["m"], **(plan or {}))


def test_five_starts_spend_one_budget(tmp_path, endpoint):
    server = endpoint()
    plan = workspace(tmp_path, server, 60, plan={"budget": {"calls": 20}})
    for _ in range(5):
        with pytest.raises(IncompleteError, match=r"the budget is spent \(20 of 20 calls\)"):
            medassay.run(plan, secrets={})
    assert len(server.seen) == 20
    makers.write_plan(tmp_path, models=["m"], budget={"calls": 60})
    run = medassay.run(plan, secrets={})
    assert run.sealed
    assert len(server.seen) == 60


def test_money_is_counted_over_starts(tmp_path, endpoint):
    server = endpoint()
    plan = workspace(tmp_path, server, 60, plan={"budget": {"money": 30 * COST}}, concurrency=4)
    for _ in range(3):
        with pytest.raises(IncompleteError, match="in money"):
            medassay.run(plan, secrets={})
        assert len(server.seen) * COST <= 30 * COST + 1e-9
    assert len(server.seen) >= 27  # the last ones are refused by their upper bound


@pytest.mark.parametrize(
    "fault",
    [("silent", {}, ""), (500, {}, {"error": "broken"}), ("cut", {}, ""), (200, {}, "<html>")],
    ids=["silent", "500", "cut", "malformed"],
)
def test_retries_are_booked(tmp_path, endpoint, fault):
    server = endpoint(lambda number, times: fault)
    plan = workspace(
        tmp_path,
        server,
        40,
        plan={"budget": {"calls": 12}, "engine": {"give_up_after": 500}},
        concurrency=4,
    )
    for _ in range(2):
        with pytest.raises(IncompleteError, match="budget is spent"):
            medassay.run(plan, secrets={})
    assert len(server.seen) <= 12
    if fault[0] != "cut":  # a connection cut early may bring none
        assert len(server.seen) == 12


def test_a_request_cut_off_by_the_budget_has_not_failed(tmp_path, endpoint):
    """It waits for a larger budget, with no other reason than that."""
    server = endpoint(lambda number, times: (500, {}, {"error": "broken"}) if times < 3 else None)
    plan = workspace(tmp_path, server, 3, plan={"budget": {"calls": 2}}, concurrency=1)
    with pytest.raises(IncompleteError, match="the budget is spent"):
        pipeline.run(plan, secrets={}, accept_failures=True)
    makers.write_plan(tmp_path, models=["m"], budget={"calls": 20})
    run = medassay.run(plan, secrets={})
    trials = [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]
    assert {t["outcome"] for t in trials} == {"answered"}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_ten_kills_do_not_pass_a_bound_by_more_than_was_in_flight(tmp_path, endpoint, engine):
    chance, concurrency = random.Random(29), 4
    faults = [("silent", {}, ""), (500, {}, {"error": "broken"}), ("cut", {}, "")]
    server = endpoint(
        lambda number, times: chance.choice(faults) if chance.random() < 0.2 else None, 0.01
    )
    bound, kills = 400 * COST, 10 if engine == "local" else 1
    plan = workspace(
        tmp_path,
        server,
        700,
        plan={"budget": {"money": bound}, "engine": {"workers": 2, "shard": 50}},
        concurrency=concurrency,
    )
    command = ("run", plan, "--yes", "--engine", engine)
    for _ in range(kills):
        process = start_command(*command)
        target = len(server.seen) + 25
        while len(server.seen) < target and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.communicate()
        time.sleep(0.5 if engine == "local" else 6.0)  # workers that lost their driver end
    code, _, errors = result_of(start_command(*command))
    assert code == 4, errors
    assert "the budget is spent" in errors
    workers = 1 if engine == "local" else 2
    assert len(server.seen) * COST <= bound + kills * workers * concurrency * COST
    before = len(server.seen)
    assert result_of(start_command("run", plan, "--yes"))[0] == 4
    assert len(server.seen) == before
    found, _ = spent_in_all(str(tmp_path))
    assert sum(one.amount.money for one in found) <= bound + 1e-9


def test_a_bound_of_the_workspace_holds_over_runs(tmp_path, endpoint):
    server = endpoint()
    plan = workspace(tmp_path, server, 20, concurrency=2)
    (tmp_path / "medassay.toml").write_text(f"[budget]\nmonth = {30 * COST}\n")
    assert medassay.run(plan, secrets={}).sealed
    second = makers.write_plan(tmp_path, models=["m"], seed=7, name="second", few_shot_k=4)
    with pytest.raises(IncompleteError, match=r"the workspace's budget of \d{4}-\d\d has no room"):
        medassay.run(second, secrets={})
    assert len(server.seen) <= 30
    (tmp_path / "medassay.toml").write_text("[budget]\nyear = 3\n")
    with pytest.raises(InputError, match=r"medassay.toml: 'year' is not known here"):
        medassay.run(second, secrets={})


def test_an_unknown_price_and_a_bound_of_money_do_not_go_together(tmp_path, endpoint):
    server = endpoint()
    makers.write_bank(tmp_path / "bank", makers.many_items(5))
    entry = makers.endpoint(server.url, location="external")
    makers.write_models(tmp_path, entry)
    plan = makers.write_plan(tmp_path, models=["m"], budget={"money": 1.0})
    with pytest.raises(InputError, match="'m' has no price in the models file"):
        medassay.run(plan, secrets={})
    assert server.seen == []
    makers.write_plan(tmp_path, models=["m"], budget={"money": 1.0, "unknown_prices": "allow"})
    assert medassay.run(plan, secrets={}).sealed


def test_a_run_of_unknown_price_asks_first_and_refuses_where_nobody_can_be_asked(
    tmp_path, endpoint, cli
):
    server = endpoint()
    makers.write_bank(tmp_path / "bank", makers.many_items(3))
    makers.write_models(tmp_path, makers.endpoint(server.url, location="external"))
    plan = makers.write_plan(tmp_path, models=["m"])
    code, out, _ = cli("run", plan, "--plan")
    assert code == 0
    assert out.count("price unknown") == 2
    assert "0.0000" not in out
    code, _, errors = cli("run", plan)
    assert code == 2
    assert "nobody knows what m will cost; --yes is needed" in errors
    assert server.seen == []
    assert cli("run", plan, "--yes")[0] == 0
    code, out, _ = cli("spend", tmp_path, "--by", "model")
    assert code == 0
    assert "180 tokens of unknown price" in out
    [run] = (tmp_path / "runs").iterdir()
    page = medassay.publish(open_run(run), tmp_path / "site")
    [about] = (page.parent / "run").glob("*/index.html")
    assert "price unknown" in about.read_text()


def test_the_plan_tells_what_was_spent_and_warns_of_a_low_bound(tmp_path, endpoint, cli):
    server = endpoint()
    plan = workspace(tmp_path, server, 30, plan={"budget": {"calls": 10}})
    assert cli("run", plan, "--yes")[0] == 4
    code, out, _ = cli("run", plan, "--plan")
    assert code == 0
    assert "m: 20 calls, 10 stored" in out
    assert "spent by now: 10 calls, 600 tokens" in out
    assert "warning: the budget of 10 calls is too low for all of it: 10 spent, at most 20" in out


def test_replays_cost_nothing_and_a_workspace_without_a_journal_begins_with_its_replies(
    tmp_path, endpoint, cli
):
    server = endpoint()
    plan = workspace(tmp_path, server, 10)
    run = medassay.run(plan, secrets={})
    for path in (tmp_path / "spend").iterdir():
        path.unlink()
    (tmp_path / "spend").rmdir()
    code, out, _ = cli("--json", "spend", tmp_path)
    [row] = json.loads(out)["rows"]
    assert (code, row["name"], row["estimated"]) == (0, run.id, True)
    assert row["amount"]["calls"] == 10
    assert row["amount"]["money"] == pytest.approx(10 * COST)
    assert row["currency"] == "USD"
    for name, entry in (("x", {"id": "m", "provider": "import"}), ("y", {"timeout": "abc"})):
        other = tmp_path / "runs" / name / "manifest.json"  # made elsewhere: it names no price
        other.parent.mkdir()
        other.write_text(json.dumps({"created_at": "2099", "models": {"m": entry}, "judges": None}))
    code, out, _ = cli("--json", "spend", tmp_path)
    assert json.loads(out)["rows"][0]["amount"]["money"] == pytest.approx(10 * COST)
    for name in ("x", "y"):
        shutil.rmtree(tmp_path / "runs" / name)
    again = makers.write_plan(tmp_path, models=["m"], rank_rule="closure", name="again")
    assert medassay.run(again, secrets={}).sealed  # replayed
    assert len(server.seen) == 10
    assert sum(one.amount.calls for one in spent_in_all(str(tmp_path))[0]) == 10


def test_nothing_is_spent_where_there_is_no_workspace(tmp_path, cli):
    code, _, errors = cli("spend", tmp_path)
    assert code == 3
    assert "expected a folder with runs/, responses/ or spend/" in errors


@pytest.mark.parametrize(
    "usage",
    [{}, None, {"prompt_tokens": 40}, {"total_tokens": 60}, {"prompt_tokens": -1}],
    ids=str,
)
def test_a_reply_that_does_not_say_what_it_used_counts_at_its_bound(tmp_path, endpoint, usage):
    server = endpoint(lambda number, times: (200, {}, {**says("A"), "usage": usage}))
    plan = workspace(tmp_path, server, 40, plan={"budget": {"money": 0.2}}, concurrency=2)
    with pytest.raises(IncompleteError, match="the budget is spent"):
        medassay.run(plan, secrets={})
    assert 1 <= len(server.seen) <= 0.2 / (32 * 1000 / 1e6)


def test_what_the_extra_body_asks_for_is_in_the_bound(tmp_path, endpoint):
    server = endpoint()
    extra = {"max_tokens": 4000, "options": [{"num_predict": 100}]}
    plan = workspace(
        tmp_path, server, 10, plan={"budget": {"money": 5.0}}, extra_body=extra, concurrency=4
    )
    medassay.run(plan, secrets={})
    found = [
        json.loads(line) for line in next((tmp_path / "spend").iterdir()).read_text().splitlines()
    ]
    assert min(line["money"] for line in found if "reserved" in line) >= 4.0


def test_a_model_that_the_budget_forbids_does_not_stop_one_that_costs_nothing(tmp_path, endpoint):
    dear, free = endpoint(), endpoint()
    makers.write_bank(tmp_path / "bank", makers.many_items(30))
    makers.write_models(
        tmp_path,
        makers.endpoint(dear.url, name="dear", price=PRICE, max_tokens=32, concurrency=2),
        makers.endpoint(free.url, name="free", max_tokens=32, concurrency=2),
    )
    plan = makers.write_plan(tmp_path, models=["dear", "free"], budget={"money": 0.15})
    with pytest.raises(IncompleteError, match="the budget is spent"):
        medassay.run(plan, secrets={})
    assert len(free.seen) == 30
    assert 1 <= len(dear.seen) <= 0.15 / COST


def test_a_bound_of_the_workspace_waits_for_what_is_under_way(tmp_path, endpoint):
    server = endpoint(delay=0.02)
    plan = workspace(tmp_path, server, 60, concurrency=16)
    (tmp_path / "medassay.toml").write_text(f"[budget]\ntotal = {62 * COST}\n")
    assert medassay.run(plan, secrets={}).sealed


def test_the_journal_begins_whole_or_not_at_all(tmp_path, endpoint, cli):
    server = endpoint()
    plan = workspace(tmp_path, server, 8, plan={"budget": {"calls": 8}})
    medassay.run(plan, secrets={})
    shutil.rmtree(tmp_path / "spend")
    for number, text in enumerate(('{"models":[]}', '{"models":{"x":3}}', '{"judges":[{}]}', "[")):
        folder = tmp_path / "runs" / f"foreign-{number}"
        folder.mkdir()
        (folder / "manifest.json").write_text(text)
    code, out, errors = cli("--json", "spend", tmp_path)
    assert code == 0, errors
    assert sum(row["amount"]["calls"] for row in json.loads(out)["rows"]) == 8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("budget = 5", "expected a table [budget]"),
        ("[budget]\ntotal = nan", "budget.total: nan; expected an amount of money"),
        ("[budget]\nmonth = inf", "budget.month: inf; expected an amount of money"),
        ("[budget]\nmonth = -1", "budget.month: -1; expected an amount of money"),
        ("[budget]\nunknown_prices = 3", "budget.unknown_prices: 3; expected"),
        ("[", "cannot be read as TOML"),
        (None, "cannot be read as TOML"),
    ],
)
def test_settings_that_say_nothing_useful_are_refused(tmp_path, endpoint, cli, text, told):
    server = endpoint()
    plan = workspace(tmp_path, server, 4)
    settings = tmp_path / "medassay.toml"
    settings.symlink_to("nowhere") if text is None else settings.write_text(text)
    code, _, errors = cli("run", plan, "--yes")
    assert (code, told in errors) == (3, True), errors
    assert server.seen == []


@pytest.mark.parametrize("bound", ["-1", "nan", "inf"])
def test_bounds_of_a_plan_are_numbers_from_zero(tmp_path, endpoint, cli, bound):
    plan = workspace(tmp_path, endpoint(), 4, plan={"budget": {"money": 7.0}})
    plan.write_text(plan.read_text().replace("7.0", bound))
    code, _, errors = cli("run", plan, "--yes")
    assert (code, "'budget.money' is" in errors) == (3, True), errors


@pytest.mark.parametrize(
    ("price", "told"),
    [
        ({}, "names neither input nor output"),
        ({"currency": "EUR"}, "names neither input nor output"),
        ({"input": 1.0, "batch": 0.0}, "expected a factor above 0"),
        ({"input": -1.0}, "expected money per million tokens, from 0"),
        ({"input": 1.0, "ouput": 1.0}, "price.ouput"),
    ],
)
def test_a_price_that_is_none_is_refused(tmp_path, endpoint, cli, price, told):
    plan = workspace(tmp_path, endpoint(), 4)
    makers.write_models(tmp_path, makers.endpoint("http://127.0.0.1:9/v1", price=price))
    code, _, errors = cli("run", plan, "--yes")
    assert (code, told in errors) == (3, True), errors


def test_two_currencies_and_one_bound_do_not_go_together(tmp_path, endpoint, cli):
    server = endpoint()
    makers.write_bank(tmp_path / "bank", makers.many_items(4))
    makers.write_models(
        tmp_path,
        makers.endpoint(server.url, name="a", price=PRICE | {"currency": "JPY"}),
        makers.endpoint(server.url, name="b", price=PRICE),
    )
    plan = makers.write_plan(tmp_path, models=["a", "b"], budget={"money": 1.0})
    code, _, errors = cli("run", plan, "--yes")
    assert (code, "priced in JPY and USD; expected one currency" in errors) == (3, True)


def test_a_bound_of_the_workspace_adds_no_two_currencies(tmp_path, endpoint, cli):
    server = endpoint()
    makers.write_bank(tmp_path / "bank", makers.many_items(4))
    plan = makers.write_plan(tmp_path, models=["m"])
    entry = makers.endpoint(server.url, name="m", price=PRICE)
    makers.write_models(tmp_path, entry | {"price": PRICE | {"currency": "JPY"}})
    assert cli("run", plan, "--yes")[0] == 0
    (tmp_path / "medassay.toml").write_text("[budget]\ntotal = 100\n")
    makers.write_models(tmp_path, entry)
    second = makers.write_plan(tmp_path, models=["m"], seed=7, name="second", few_shot_k=2)
    before = len(server.seen)
    code, _, errors = cli("run", second, "--yes")
    assert (code, len(server.seen)) == (3, before)
    assert "was spent in JPY, but entries are priced in USD" in errors
    makers.write_models(tmp_path, entry | {"price": {"input": 0, "output": 0}})  # adds no money
    assert cli("run", second, "--yes")[0] == 0


def test_what_is_asked_anew_and_killed_is_not_settled_by_an_older_reply(tmp_path, endpoint):
    silent = threading.Event()
    server = endpoint(lambda number, times: ("silent", {}, "") if silent.is_set() else None)
    plan = workspace(tmp_path, server, 8, concurrency=8)
    medassay.run(plan, secrets={})
    silent.set()
    process = start_command("run", plan, "--yes", "--fresh")
    while len(server.seen) < 16:
        time.sleep(0.02)
        assert process.poll() is None, process.stderr.read()
    process.kill()
    process.communicate()
    found, _ = spent_in_all(str(tmp_path))
    assert sum(one.open.calls for one in found) >= 8


def test_a_disk_that_takes_no_line_stops_the_run_and_is_not_the_models_fault(
    tmp_path, endpoint, cli
):
    server = endpoint()
    plan = workspace(tmp_path, server, 30)
    (tmp_path / "medassay.toml").write_text("[budget]\ntotal = 10\n")
    (tmp_path / "spend").mkdir()
    (tmp_path / "spend" / ".lock").mkdir()
    code, _, errors = cli("run", plan, "--yes")
    assert code == 3
    assert ".lock" in errors
    assert "given up" not in errors
    assert server.seen == []


@pytest.mark.parametrize("odd", ["pipe", "folder", "link"])
def test_what_is_no_file_in_the_journal_is_named(tmp_path, endpoint, cli, odd):
    plan = workspace(tmp_path, endpoint(), 4)
    (tmp_path / "spend").mkdir()
    path = tmp_path / "spend" / "x.jsonl"
    {"pipe": os.mkfifo, "folder": Path.mkdir, "link": lambda p: p.symlink_to("nowhere")}[odd](path)
    for command in (("run", plan, "--yes"), ("spend", tmp_path)):
        code, _, errors = cli(*command)
        assert (code, "x.jsonl: no file of the spend journal; remove it" in errors) == (3, True)


@pytest.mark.parametrize(
    "last", ['{"closed":[{"acc', '{"closed":[{"account":"x"}]}\n', '{"closed":5}\n']
)
def test_a_torn_or_odd_last_line_is_cut_or_named(tmp_path, last):
    (tmp_path / "spend").mkdir()
    path = tmp_path / "spend" / "x.jsonl"
    path.write_text('{"account":"a","prices":{}}\n' + last)
    if last.endswith("\n"):
        with pytest.raises(spend.IntegrityError, match=r"spend/x.jsonl at byte 28"):
            spendings(tmp_path / "spend")
    else:
        assert spendings(tmp_path / "spend") == []


def test_queries_to_an_embedder_are_booked_and_paid_from_the_runs_budget(tmp_path, cli):
    def respond(path, headers, body):
        n = len(json.loads(body)["input"])
        rows = [{"index": at, "embedding": [at + 1.0, 0.5, 0.5, 0.5]} for at in range(n)]
        return 200, {}, {"data": rows, "usage": {"prompt_tokens": 7 * n, "total_tokens": 7 * n}}

    server = Hostile(respond)
    try:
        makers.write_bank(tmp_path / "bank", makers.pathway_items(), domains=("gout", "anaemia"))
        entry = makers.endpoint(f"{server.url}/v1", "e", price={"input": 1000.0, "output": 0.0})
        makers.write_models(tmp_path, makers.fake(letters="hash"), entry)
        corpus = tmp_path / "corpus"
        corpus.mkdir()
        for name, text in makers.CONDITIONS.items():
            (corpus / f"{name}.txt").write_text(text)
        models = ("--models", tmp_path / "models.json")
        index = ("index", "build", corpus, "--out", tmp_path / "index", *models)
        code, _, errors = cli(*index, "--embedder", "endpoint:e")
        assert code == 0, errors
        before = len(server.requests)
        rules = {
            "settings": ["rag"],
            "retrieval": {"index": str(tmp_path / "index"), "k": 2},
        }
        plan = makers.write_plan(tmp_path, **rules, budget={"money": 0.01})
        code, _, errors = cli("run", plan, "--yes")
        assert (code, "the budget is spent" in errors) == (4, True), errors
        assert len(server.requests) == before
        makers.write_plan(tmp_path, **rules, budget={"money": 10.0})
        assert cli("run", plan, "--yes")[0] == 0
        assert len(server.requests) == before + 1
    finally:
        server.close()
    found, _ = spent_in_all(str(tmp_path))
    [built] = [one for one in found if one.account == "indexes/index"]
    assert (built.model, built.amount.calls) == ("e", before)
    [paid] = [one for one in found if one.model == "e" and one is not built]
    assert (paid.amount.calls, paid.open.calls, paid.currency) == (1, 0, "USD")
    assert paid.amount.tokens == 7 * 4
    assert paid.amount.money == pytest.approx(7 * 4 * 1000 / 1e6)


def spec(**price):
    url = "http://127.0.0.1:9"
    return ModelSpec(id="m", provider="openai_compatible", url=url, price=Price(**price))


requests = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.booleans(), st.booleans()), max_size=30
)


@given(requests, st.booleans())
def test_what_is_read_back_is_what_was_written(tmp_path_factory, sent, closed):
    """Settled at what they used, else at their bound.

    A killed process's replies are known by the store.
    """
    folder = tmp_path_factory.mktemp("w")
    journal = SpendJournal(folder, "runs/a", {"m": spec(input=1e6)})
    expected, stored = Amount(), {}
    for place, (attempt, tokens, settled, replied) in enumerate(sent):
        bound, came_to = Amount(1, 100, 100.0), Amount(1, tokens, float(tokens))
        key = f"{place:064x}"
        number = journal.reserve("m", key, attempt, bound)
        if settled:
            journal.settle(number, came_to)
        elif replied:
            stored[key] = Usage(prompt=tokens)
        expected += came_to if settled or (replied and not closed) else bound
    if closed:
        journal.close()
    else:  # killed: what waited to be written is written late, as by another request
        journal.sync()
    found = spendings(folder / "spend", stored.get)
    assert sum((one.amount for one in found), Amount()) == expected


def test_a_bound_that_the_disk_did_not_take_is_of_no_request(tmp_path, monkeypatch):
    journal = SpendJournal(tmp_path, "runs/a", {"m": spec(input=1e6)})
    journal.reserve("m", "0" * 64, 0, Amount(1, 1, 1.0))

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(spend, "append_line", full)
        journal.reserve("m", "1" * 64, 0, Amount(1, 5, 5.0))
    journal.reserve("m", "2" * 64, 0, Amount(1, 2, 2.0))
    journal.sync()
    found = spendings(tmp_path / "spend", {}.get)
    assert sum(one.amount.money for one in found) == 3.0


def test_prices_have_parts():
    usage = Usage(prompt=1000, completion=500, cached=400, reasoning=100)
    assert Price(input=2.0, output=10.0).of(usage) == pytest.approx((2000 + 5000) / 1e6)
    parts = Price(input=2.0, output=10.0, cached_input=0.5, reasoning=20.0, batch=0.5)
    expected = (600 * 2 + 400 * 0.5 + 400 * 10 + 100 * 20) / 2 / 1e6
    assert parts.of(usage) == pytest.approx(expected)
    assert parts.dearest.of(usage) >= parts.of(usage)
    assert Price(input=1.0).to_dict() == {"input": 1.0, "output": 0.0, "currency": "USD"}


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "spend").mkdir()
    (tmp_path / "spend" / "x.jsonl").write_text('{"account":"a","prices":{}}\n{"settled":3}\n')
    with pytest.raises(spend.IntegrityError, match=r"spend/x.jsonl at byte 28: not a line"):
        spendings(tmp_path / "spend")
