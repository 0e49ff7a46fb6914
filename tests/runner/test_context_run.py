"""The same items asked bare, with retrieved text, with the reasoning path, with the source text,
and with both.
"""

import json

import pytest
from tests import makers

import medassay
from medassay.context.retrieval.embed import FakeEmbedder
from medassay.core.records.plan import load_plan
from medassay.errors import InputError
from medassay.runner.prepare import prepare
from medassay.runner.preview import preview
from medassay.storage.jsonl import read_jsonl

SETTINGS = ["rag", "topline_all", "topline_path", "topline_text", "zero_shot"]


@pytest.fixture
def place(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.pathway_items(), domains=("gout", "anaemia"))
    makers.write_index(tmp_path, size=50, overlap=10)
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    return tmp_path


def plan_of(place, **more):
    rules = {"index": "index", "k": 2, **more.pop("retrieval", {})}
    return makers.write_plan(place, **{"settings": SETTINGS, "retrieval": rules, **more})


def prompts(place, plan):
    schedule = prepare(load_plan(plan), place, place).schedule
    found = {}
    schedule.contexts.find(
        (bank.items[at] for bank, at in schedule.items()), place / "models.json", {}, None
    )
    for number in range(schedule.n_trials):
        cell, item, _ = schedule.trial(number)
        prompt = schedule.prompt(cell, item)
        found[cell.setting, item.id] = prompt
    return found


def test_each_setting_shows_what_it_is_named_after_and_nothing_else(place):
    found = prompts(place, plan_of(place))
    text = {s: found[s, "gout-1"].messages[-1]["content"] for s in SETTINGS}
    path, source = "Gout suspected -> aspirate the joint", makers.CONDITIONS["Gout"]
    shown = {s: (path in t, source in t, "\n\n---\n\n" in t) for s, t in text.items()}
    assert shown == {
        "rag": (False, False, True),
        "topline_all": (True, True, False),
        "topline_path": (True, False, False),
        "topline_text": (False, True, False),
        "zero_shot": (False, False, False),
    }
    assert all(t.endswith(text["zero_shot"].split("Question:")[1]) for t in text.values())
    ids = {s: found[s, "gout-1"].template for s in SETTINGS}
    assert all(("+evidence@" in name) == (s != "zero_shot") for s, name in ids.items())


def test_the_query_is_the_question_without_options_and_passages_stand_in_rank_order(place):
    asked = []

    class Watched(FakeEmbedder):
        async def embed(self, texts):
            asked.extend(texts)
            return await super().embed(texts)

    plan = load_plan(plan_of(place, settings=["rag"], retrieval={"query_prefix": "find: "}))
    schedule = prepare(plan, place, place).schedule
    schedule.contexts.index.embedder = Watched()
    items = [bank.items[at] for bank, at in schedule.items()]
    schedule.contexts.find(items, place / "models.json", {}, None)
    assert sorted(asked) == sorted("find: " + item.question for item in items)
    prompt = schedule.prompt(*schedule.trial(0)[:2])
    index = schedule.contexts.index
    passages = [
        next(index.chunk(n).text for n in range(index.n) if place_of(index, n) == tuple(at))
        for at in prompt.retrieved
    ]
    assert "\n\n---\n\n".join(passages) in prompt.messages[-1]["content"]


def place_of(index, number):
    return index.chunk(number).document, index.chunk(number).start


def test_a_run_tells_what_was_retrieved_and_never_ranks_a_topline(place):
    run = medassay.run(plan_of(place), secrets={})
    trials = list(read_jsonl(run.path / "trials.jsonl"))
    rag = [t for t in trials if t["setting"] == "rag"]
    assert [len(t["retrieved"]) for t in rag] == [2] * 4
    assert {t["own_source"] for t in rag} == {True}
    assert not any("retrieved" in t for t in trials if t["setting"] != "rag")
    reasons = {
        row["setting"]: [f for f in row["flags"] if f.startswith("not_ranked")]
        for row in run.statistics.document["domains"]["overall"]
    }
    assert reasons["topline_path"] == ["not_ranked:fake"]
    assert run.manifest_document["retrieval"]["k"] == 2
    assert str(place) not in json.dumps(run.manifest_document["retrieval"])
    medassay.verify(run.path)


def test_toplines_of_a_real_model_stand_beside_the_ranking(place, mock_server):
    items = [
        {k: v for k, v in item.items() if k != "cluster"} | {"id": f"{item['id']}-{n}"}
        for item in makers.pathway_items()
        for n in range(6)
    ]
    makers.write_bank(place / "bank", items, domains=("gout", "anaemia"))
    makers.write_models(place, makers.endpoint(mock_server()))
    run = medassay.run(plan_of(place), secrets={})
    ranks = {row["setting"]: row["rank"] for row in run.statistics.document["domains"]["overall"]}
    assert {setting for setting, rank in ranks.items() if rank} == {"rag", "zero_shot"}


def test_the_methodology_knows_the_index_and_how_it_is_searched(place):
    one = medassay.run(plan_of(place), secrets={}).manifest_document["methodology"]
    other = medassay.run(plan_of(place, retrieval={"k": 1}), secrets={}).manifest_document[
        "methodology"
    ]
    bare = medassay.run(makers.write_plan(place), secrets={}).manifest_document
    assert len({one, other, bare["methodology"]}) == 3
    assert "retrieval" not in bare


def test_what_was_searched_once_is_not_embedded_again(place, monkeypatch):
    medassay.run(plan_of(place, settings=["rag"]), secrets={})
    kept = [line for p in (place / "retrieved").iterdir() for line in p.read_text().splitlines()]
    assert len(kept) == 4

    async def refuse(self, texts):
        raise AssertionError("embedded again")

    monkeypatch.setattr(FakeEmbedder, "embed", refuse)
    again = medassay.run(plan_of(place, settings=["rag"], repeats=2), secrets={})
    assert {t["own_source"] for t in read_jsonl(again.path / "trials.jsonl")} == {True}


def test_a_preview_searches_nothing_and_bounds_what_passages_cost(place, monkeypatch):
    async def refuse(self, texts):
        raise AssertionError("a preview must not pay")

    monkeypatch.setattr(FakeEmbedder, "embed", refuse)
    bare = preview(plan_of(place, settings=["zero_shot"])).tokens
    found = preview(plan_of(place, settings=["rag"])).tokens
    assert found >= bare + 4 * (2 * 50) // 4


@pytest.mark.parametrize(
    ("change", "setting", "says"),
    [
        ({"path": None}, "topline_path", "1 of 4 items have no reasoning path, the first is"),
        ({"condition": "Zebra"}, "topline_text", "1 of 4 items have no source text"),
        ({"condition": None}, "topline_all", "1 of 4 items have no path or source text"),
    ],
)
def test_items_that_lack_what_a_topline_shows_are_refused_before_any_call(
    place, change, setting, says
):
    items = makers.pathway_items()
    items[0] = {k: v for k, v in (items[0] | change).items() if v is not None}
    makers.write_bank(place / "bank", items, domains=("gout", "anaemia"))
    with pytest.raises(InputError, match=says):
        medassay.run(plan_of(place, settings=[setting]), secrets={})
    assert not (place / "runs").exists()


def test_queries_of_a_bank_that_may_not_leave_are_not_sent_to_an_endpoint(place):
    makers.write_bank(
        place / "bank", makers.pathway_items(), domains=("gout", "anaemia"), may_leave=False
    )
    described = json.loads((place / "index" / "index.json").read_text())
    described["embedder_place"] = "endpoint:e"
    (place / "index" / "index.json").write_text(json.dumps(described))
    outside = makers.endpoint("http://127.0.0.1:9/v1", "e") | {"location": "external"}
    makers.write_models(place, makers.fake(letters="hash"), outside)
    with pytest.raises(InputError, match=r"may not leave this place.*model 'e' is at an external"):
        medassay.run(plan_of(place, settings=["rag"]), secrets={})
