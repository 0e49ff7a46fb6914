"""Tables of every page at the widths that people use: no column too narrow to read, every number
named on a phone.
"""

import json

import pytest
from tests import makers
from tests.context.services import Services
from tests.web.looking import NARROW, UNNAMED

import medassay

pytestmark = pytest.mark.browser
N = 24


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Publish a run with and without tools over public and synthetic items, one of open answers, of
    records, of diagnoses.
    """
    folder = tmp_path_factory.mktemp("site")
    services = Services()
    items = makers.many_items(N, "gout") + [
        {**item, "id": f"b-{item['id']}"} for item in makers.many_items(N, "anaemia")
    ]
    for item in items[::2]:
        item["kind"] = "synthetic"
        item.pop("source")
    makers.write_bank(folder / "bank", items, domains=("gout", "anaemia"))
    makers.write_index(folder)
    search = [[{"name": "web_search", "arguments": {"query": "{item}"}}]]
    models = [
        {
            **makers.fake(f"a-model-{n}", letters="hash", tools=search),
            "capabilities": ["chat", "tools"],
        }
        for n in range(3)
    ]
    makers.write_models(folder, *models)
    plan = makers.write_plan(
        folder,
        models=[one["id"] for one in models],
        modes=["solo", "tools"],
        retrieval={"index": "index"},
        tools=services.rules(),
    )
    medassay.publish(medassay.run(plan, secrets={}), folder / "site", publication="tools")
    services.stop()
    medassay.publish(records(folder / "records"), folder / "site", publication="records")
    medassay.publish(judged(folder / "judged"), folder / "site", publication="judged")
    medassay.publish(diagnoses(folder / "cases"), folder / "site", publication="cases")
    return folder / "site"


def records(folder):
    makers.write_bank(folder / "bank", makers.record_items(10), domains=["records"])
    makers.write_models(folder, makers.record_student(10))
    templates = ["health_record", "health_record_direct"]
    return medassay.run(makers.write_plan(folder, task="record", templates=templates), secrets={})


def judged(folder):
    makers.write_bank(folder / "bank", makers.open_items(12), name="open")
    facts = [{"id": f"f{n}", "verdict": "entail", "evidence": ""} for n in (1, 2, 3)]
    claim = {"quote": "of 1999", "why": "made up", "kind": "invented_source"}
    reply = json.dumps({"facts": facts, "extra_false_claims": [claim]})
    judges = [{**judge, "script": {"reply": reply}} for judge in makers.judges()]
    makers.write_models(folder, makers.fake("a-student", reply="Because of 1999."), *judges)
    plan = makers.write_plan(
        folder, task="open", models=["a-student"], judges=[one["id"] for one in judges]
    )
    return medassay.run(plan, secrets={})


def diagnoses(folder):
    makers.write_bank(folder / "bank", makers.ddx_items(10), domains=("medicine",))
    near = {f"case-{n:03}": makers.listed(f"Malady {n}", f"Kin {n}", "Flu") for n in range(10)}
    makers.write_models(folder, makers.fake("near", replies=near), makers.ddx_judge(10))
    return medassay.run(
        makers.write_plan(folder, task="ddx", models=["near"], judges=["judge"]), secrets={}
    )


@pytest.fixture(scope="module")
def looks(browser, site):
    """Return what cannot be read on the pages of the site, all that is folded open, by window."""
    found = {1024: {}, 1440: {}, "wide": {}, "unnamed": {}}
    context = browser.new_context()
    page = context.new_page()
    for path in sorted(site.rglob("*.html")):
        name = str(path.relative_to(site))
        page.set_viewport_size({"width": 1024, "height": 900})
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        found[1024][name] = page.evaluate(NARROW)
        page.set_viewport_size({"width": 1440, "height": 900})
        found[1440][name] = page.evaluate(NARROW)
        page.set_viewport_size({"width": 390, "height": 844})
        found["wide"][name] = page.evaluate("document.documentElement.scrollWidth") > 390
        found["unnamed"][name] = page.evaluate(UNNAMED)[:5]
    context.close()
    assert len(found["wide"]) > 20
    return {look: {name: bad for name, bad in of.items() if bad} for look, of in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("width", [1024, 1440])
def test_no_column_of_a_desk_is_below_eight_characters(looks, width):
    assert looks[width] == {}


def test_every_number_on_a_phone_has_its_name(looks):
    assert looks["wide"] == {}
    assert looks["unnamed"] == {}
