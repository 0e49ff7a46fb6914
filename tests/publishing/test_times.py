"""Times and cost of a run are complete: every stored reply is counted, judges, modes and synthetic
items apart, and the total.
"""

import csv
import json
from types import SimpleNamespace

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.core.records.completion import Usage
from medassay.core.records.manifest import RunModel
from medassay.publishing.times import TimesKey, _is_on_this_machine, _machine
from medassay.storage.response import ResponseStore

PRICE = {"input": 2.0, "output": 10.0, "currency": "EUR"}

JUDGES = ["judge-a", "judge-b", "judge-c"]


@pytest.fixture
def published(tmp_path, mock_server):
    """Publish a judged run of open items, three of them synthetic.

    Return workspace, run and the publication's folder.
    """
    folder = tmp_path
    items = makers.open_items(12)
    for item in items[:3]:
        item["kind"] = "synthetic"
    makers.write_bank(folder / "bank", items)
    url = mock_server()
    makers.write_models(
        folder,
        makers.endpoint(url, "priced", price=PRICE, family="a"),
        makers.endpoint(url, "unpriced", location="external", family="a"),
        *(makers.endpoint(url, name, family=f"{name}-family") for name in JUDGES),
    )
    plan = makers.write_plan(folder, models=["priced", "unpriced"], judges=JUDGES, task="open")
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    return folder, run, medassay.publish(run, folder / "site").parent


def table(publication):
    with (publication / "data/times.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def used(folder):
    """Return what each model's stored replies used."""
    found = {}
    with ResponseStore(folder / "responses") as store:
        for model, usage in store.usages().values():
            found[model] = found.get(model, Usage()) + usage
    return found


def test_every_reply_that_was_stored_is_counted_once(published):
    folder, _, publication = published
    rows = table(publication)
    for model, usage in used(folder).items():
        own = [row for row in rows if row["model"] == model]
        assert sum(int(row["prompt_tokens"]) for row in own) == usage.prompt > 0
        assert sum(int(row["completion_tokens"]) for row in own) == usage.completion > 0
    assert {row["model"] for row in rows} == {"priced", "unpriced", *JUDGES}


def test_judges_and_synthetic_items_stand_apart(published):
    _, run, publication = published
    rows = {(row["role"], row["model"], row["items"]): row for row in table(publication)}
    assert int(rows["model", "priced", "public"]["replies"]) == 9
    assert int(rows["model", "priced", "synthetic"]["replies"]) == 3
    verdicts = [json.loads(v) for v in (run.path / "verdicts.jsonl").read_text().splitlines()]
    for judge in JUDGES:
        asked = {tuple(v["responses"]) for v in verdicts if v["judge"] == judge}
        told = [int(rows["judge", judge, items]["replies"]) for items in ("public", "synthetic")]
        assert sum(told) == sum(len(keys) for keys in asked) > min(told) > 0
    public = json.loads((publication / "data/run/seal.json").read_text())["withheld"]
    assert {row["items"] for row in public["times"]} == {"synthetic"}


def test_the_total_is_on_the_page_and_says_what_is_unknown(published):
    folder, _, publication = published
    page = next((publication / "run").rglob("index.html")).read_text()
    usage = used(folder)
    cost = (2 * usage["priced"].prompt + 10 * usage["priced"].completion) / 1e6
    assert f"{cost:.4f} EUR" in page
    assert page.count("open questions, synthetic") == 2
    assert page.count("answers, synthetic") == len(JUDGES)
    assert "price unknown" in page
    total = page.partition("In all</th>")[2].partition("</tr>")[0]
    assert f"at least {cost:.4f} EUR" in total
    read = sum(one.prompt for one in usage.values())
    assert f"{read:,}" in total


def test_the_site_verifies(published):
    folder, *_ = published
    report = medassay.verify(folder / "site")
    assert report.ok, report.first_mismatch


def test_parts_of_the_price_are_applied(tmp_path, monkeypatch):
    from medassay.model.fake import Fake

    complete = Fake.complete

    async def counted(self, prompt, sampling, *, repeat):
        from dataclasses import replace

        reply = await complete(self, prompt, sampling, repeat=repeat)
        told = Usage(prompt=1000, completion=100, cached=600, reasoning=40)
        return replace(reply, usage=told, seconds=0.5)

    monkeypatch.setattr(Fake, "complete", counted)
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    price = PRICE | {"cached_input": 0.5, "reasoning": 20.0, "batch": 0.5}
    makers.write_models(tmp_path, makers.fake(letters="hash") | {"price": price})
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    [row] = table(medassay.publish(run, tmp_path / "site").parent)
    assert (row["cached_tokens"], row["reasoning_tokens"]) == ("7200", "480")
    each = (400 * 2.0 + 600 * 0.5 + 60 * 10.0 + 40 * 20.0) * 0.5 / 1e6
    assert float(row["cost"]) == pytest.approx(12 * each)


@pytest.mark.parametrize(
    ("spec", "here"),
    [
        ({"location": "local", "provider": "transformers"}, True),
        ({"location": "local", "url": "http://localhost:8000/v1"}, True),
        ({"location": "local", "url": "http://127.0.0.1:8000/v1"}, True),
        ({"location": "local", "url": "http://[::1]:8000/v1"}, True),
        ({"location": "local", "url": "http://10.0.0.7:8000/v1"}, False),
        ({"location": "local", "url": "http://gpu-room:8000/v1"}, False),
        ({"location": "external", "url": "http://127.0.0.1:8000/v1"}, False),
    ],
)
def test_a_server_elsewhere_never_gets_the_machine_that_asked_it(spec, here):
    model = RunModel(**{"id": "m", "provider": "openai", **spec})
    assert _is_on_this_machine(model) is here


def test_a_row_of_a_joined_run_names_the_machine_of_its_own_mode():
    members = [
        SimpleNamespace(cells=[f"m\x1fzero_shot\x1f{mode}"], machine={"gpu": gpu})
        for mode, gpu in (("solo", "A"), ("tools", "B"))
    ]
    run = SimpleNamespace(manifest=SimpleNamespace(machine=None, joined=members))
    for mode, gpu in (("solo", "A"), ("tools", "B")):
        key = TimesKey(
            role="model", model="m", setting="zero_shot", mode=mode, kind="k", items="public"
        )
        assert _machine(run, key).gpu == gpu
