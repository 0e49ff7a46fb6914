"""Rankings are filtered and sorted by what the entries of models state; ranks stay those of all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests import makers

import medassay
from medassay.core.records.manifest import RunModel
from medassay.report.row_filters import _SIZES, in_band, model_facts

MODELS = [
    {"id": "big", "family": "whale", "licence": "MIT", "size": 671},
    {"id": "middle", "family": "whale", "licence": "Apache-2.0", "size": 32.8},
    {"id": "small", "family": "minnow", "licence": "Apache-2.0", "size": 1.5, "location": "local"},
    {"id": "hidden", "family": "shark"},
    {"id": "plain"},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filters")
    lines = ["item,model,domain,prediction,key"]
    for place, model in enumerate(MODELS):
        for n in range(60):
            lines.append(f"q{n:02},{model['id']},law,{'A' if n % (place + 2) else 'B'},A")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    entries = [{"provider": "import", **model} for model in MODELS]
    (folder / "models.json").write_text(json.dumps({"schema_version": 1, "models": entries}))
    run = medassay.import_predictions(
        folder / "t.csv",
        {n: n for n in lines[0].split(",")},
        runs=folder,
        models=medassay.load_models(folder / "models.json"),
    )
    medassay.publish(run, folder / "site", publication="one")
    return folder / "site"


@given(st.floats(0.001, 5000))
def test_every_size_lies_in_one_band(size):
    assert sum(in_band(size, band) for band in _SIZES) == 1


def test_weights_are_open_only_where_the_entry_says_so():
    entry = RunModel(id="m", provider="openai_compatible", family="unknown")
    assert model_facts(entry) == {}
    assert model_facts(replace(entry, licence="MIT"))["weights"] == "open"
    assert model_facts(replace(entry, provider="vllm"))["weights"] == "open"


def shown(page):
    return page.evaluate(
        "[...document.querySelectorAll('table.ranking tr[data-model]')]"
        ".filter(r => !r.hidden).map(r => r.dataset.model)"
    )


def test_facts_filter_and_sort_and_ranks_stay(site, page):
    page.goto((site / "p/one/index.html").as_uri())
    ranks = "Object.fromEntries([...document.querySelectorAll('tr[data-model]')].map(r => [r.dataset.model, r.dataset.rankLo]))"
    before, every = page.evaluate(ranks), shown(page)
    assert sorted(every) == sorted(model["id"] for model in MODELS)
    page.get_by_label("Family").select_option("whale")
    assert sorted(shown(page)) == ["big", "middle"]
    assert "2 of 5 shown; ranks are those of the whole board" in page.inner_text("output")
    page.get_by_label("Licence").select_option("MIT")
    assert shown(page) == ["big"]
    page.reload()
    assert shown(page) == ["big"]
    assert page.get_by_label("Family").input_value() == "whale"
    page.get_by_role("button", name="Clear filters").click()
    assert sorted(shown(page)) == sorted(every)
    page.get_by_label("Weights").select_option("none")
    assert sorted(shown(page)) == ["hidden", "plain"]
    page.get_by_label("Weights").select_option("")
    page.get_by_label("Size").select_option("10-100")
    assert shown(page) == ["middle"]
    page.get_by_label("Size").select_option("none")
    assert sorted(shown(page)) == ["hidden", "plain"]
    page.get_by_label("Size").select_option("")
    page.get_by_label("Answers from").select_option("local")
    assert shown(page) == ["small"]
    page.get_by_label("Answers from").select_option("")
    page.get_by_label("Sort by").select_option("size")
    assert shown(page)[:3] == ["small", "middle", "big"]  # what is not stated comes last
    page.get_by_label("Sort by").select_option("")
    assert shown(page) == every
    assert page.evaluate(ranks) == before
    page.goto((site / "p/one/index.html").as_uri() + "?family=%3Cb%3E&sort=constructor&size=x")
    assert sorted(shown(page)) == sorted(every)


def test_a_board_that_states_nothing_offers_no_such_choice(tmp_path):
    plan = makers.workspace(tmp_path / "w", makers.law_items(), makers.fake("m", reply="A"))
    medassay.publish(medassay.run(plan, secrets={}), tmp_path / "site", publication="one")
    assert "data-filter" not in (tmp_path / "site/index.html").read_text()
