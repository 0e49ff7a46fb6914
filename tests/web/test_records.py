"""Pages of health records in a real browser: likeness beside medication, the drawn graph, what
could harm.
"""

import csv
import json

import pytest
from tests import makers
from tests.accessibility import violations

import medassay
from medassay.core.records.manifest import RunGraph
from medassay.report.judge_graph import drawings

pytestmark = pytest.mark.browser
N = 10
HOSTILE = '<script>document.title="owned"</script>"onload=\u202egnp'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    items = makers.record_items(N, origin=makers.silver_origin("m", "acme"))
    items[0]["origin"] = {"standing": "gold", "maker": "us"}
    makers.write_bank(folder / "bank", items, name="records", domains=["records"])
    tested = makers.record_student(N, family="acme")
    for name, reply in tested["script"]["replies"].items():
        if name.startswith("health_record_direct"):
            said = json.loads(reply)
            drug = {"name": HOSTILE, "dose": None, "schedule": None}
            said["structured_health_record"]["medications"]["current"].append(drug)
            tested["script"]["replies"][name] = json.dumps(said)
    judge = {**makers.fake("judge", graph=0.9), "family": "other"}
    makers.write_models(folder, tested, judge)
    plan = makers.write_plan(
        folder,
        task="record_graph",
        judges=["judge"],
        templates=["health_record", "health_record_direct"],
    )
    run = medassay.run(plan, secrets={})
    return medassay.publish(run, folder / "site").parent


def address(site, *parts):
    return site.joinpath(*parts, "index.html").as_uri()


def cell(site, name):
    [found] = site.glob(f"cell/m/records/*{name}*/index.html")
    return found.as_uri()


def test_likeness_and_medication_stand_side_by_side(page, site):
    page.goto(address(site))
    page.click("nav >> text=Health records")
    heads = [h.inner_text() for h in page.query_selector_all("table.ddx >> nth=0 >> thead th")]
    assert "JSON similarity" in heads
    assert "Stopped, listed as current" in heads
    rows = page.query_selector_all("table.ddx >> nth=0 >> tbody tr")
    told = {r.get_attribute("data-setting"): r.inner_text() for r in rows}
    assert f"{N} of {2 * N}" in told["zero_shot:health_record_direct"]
    assert f"⚠ {N}" in told["zero_shot:health_record_direct"]
    assert f"{2 * N} of {2 * N}" in told["zero_shot:health_record"]
    text = page.inner_text("main")
    assert "1 gold, written by people; 9 silver" in text
    assert "9 references by a model of its own family" in text


def test_the_ranking_says_what_a_score_alone_would_hide(page, site):
    page.goto(address(site))
    text = page.inner_text("main")
    assert f"⚠ {N} stopped, listed as current" in text
    assert "50.0 % of drugs in the right list" in text
    assert "references by a model (silver)" in text
    assert "references from the same vendor" in text


def test_the_heat_map_and_the_gain_of_thinking_are_drawn(page, site):
    page.goto(address(site, "record"))
    assert page.query_selector("figure[data-figure=score_grid] img")
    assert page.query_selector("figure[data-figure=forest] img")
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    row = page.query_selector("tr[data-model=m][data-number=medication]")
    assert "50.0" in row.inner_text()
    assert row.inner_text().endswith("difference shown")


def test_each_stopped_drug_leads_to_its_answer(page, site):
    page.goto(address(site, "record"))
    rows = page.query_selector_all("tr[data-drug]")
    assert [r.get_attribute("data-drug") for r in rows] == [f"Aus{i}" for i in range(N)]
    rows[3].query_selector("a").click()
    answer = page.query_selector("article[data-answer=r-03]")
    assert "Aus3" in answer.query_selector("[data-stopped]").inner_text()
    assert "silver, by m (acme)" in answer.inner_text()


def test_the_path_of_an_answer_is_drawn_over_the_graph(page, site):
    page.goto(cell(site, "direct"))
    answer = page.query_selector("article[data-answer=r-00]")
    drawings_of = answer.query_selector_all(".graph svg")
    assert len(drawings_of) == 2
    said = drawings_of[0].get_attribute("aria-label")
    assert said.startswith("Graph medical_extraction_quality: format_task → is_valid_json: true")
    assert said.count("; ") == 3  # four branches
    passed = drawings_of[0].query_selector_all("rect.passed")
    assert len(passed) == 4 + 3 + 3 + 3
    # The boxes of the graph itself are seen through <use>, in the colours of the page.
    box = drawings_of[0].bounding_box()
    assert box["width"] > 500
    assert box["height"] > 200
    fill = page.evaluate("getComputedStyle(document.querySelector('g.graphs rect')).fill")
    assert fill not in ("rgb(0, 0, 0)", "none")


def test_every_reply_of_the_judge_can_be_read(page, site):
    page.goto(cell(site, "direct"))
    answer = page.query_selector("article[data-answer=r-00]")
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    nodes = answer.query_selector_all("tr[data-node]")
    assert {n.get_attribute("data-status") for n in nodes} == {"ok"}
    assert sum(len(n.query_selector_all("pre")) for n in nodes) == 10
    fields = answer.inner_text()
    assert "medications.discontinued[0].name" in fields
    assert "missing" in fields


def test_hostile_names_of_drugs_stay_text(page, site):
    page.goto(cell(site, "direct"))
    assert page.title() != "owned"
    assert "In no list of the reference" in page.inner_text("article[data-answer=r-00]")
    assert "U+202E" in page.inner_text("article[data-answer=r-00]")


@pytest.mark.parametrize("width", [320, 1200])
def test_no_page_is_wider_than_its_window(page, site, width):
    page.set_viewport_size({"width": width, "height": 800})
    for url in (address(site, "record"), cell(site, "direct"), cell(site, "record-solo")):
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, url


@pytest.mark.slow
def test_axe_finds_no_violation(browser, site):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    for url in (address(site, "record"), cell(site, "direct"), address(site, "methodology")):
        page.goto(url)
        assert violations(page) == [], url  # in the dark: test_every_size, test_style
    context.close()


def test_the_data_hold_every_estimate(site):
    rows = list(csv.DictReader((site / "data/records.csv").read_text().splitlines()))
    numbers = {r["number"] for r in rows}
    assert {
        "similarity",
        "medication",
        "similarity of diagnosis",
        "record_correctness",
    } <= numbers
    assert "medical_extraction_quality/accuracy_task" in numbers
    [one] = [
        r
        for r in rows
        if (r["domain"], r["number"], r["setting"])
        == ("overall", "medication", "zero_shot:health_record_direct")
    ]
    assert float(one["estimate"]) == 0.5


def test_a_published_board_of_records_verifies(site):
    assert medassay.verify(site).ok


def graph_of(document):
    """Return a graph as a run remembers it."""
    return RunGraph(id="g/1", name="g", roots=["x"], text=json.dumps(document))


def test_a_node_with_two_parents_is_drawn_once_and_reached_twice():
    document = {
        "name": "g",
        "roots": ["a", "b"],
        "nodes": {
            "a": {"type": "binary", "criteria": "?", "true": "v", "false": "w"},
            "b": {"type": "binary", "criteria": "?", "true": "v", "false": "w"},
            "v": {"type": "verdict", "score": 1},
            "w": {"type": "verdict", "score": 0},
        },
    }
    drawn = drawings([graph_of(document)])["g"]
    assert [edge.label for edge in drawn.edges if edge.end == "v"] == ["true", "true"]
    assert len({(box.x, box.y) for box in drawn.boxes.values()}) == 4
    trace = [
        {"node": "b", "parent": None, "verdict": "false", "score": None, "status": "ok"},
        {"node": "w", "parent": "b", "verdict": None, "score": 0.0, "status": "ok"},
    ]
    passed = drawn.passed(trace)
    assert [(e.start, e.end) for e in passed.edges] == [("b", "w")]
    assert passed.says == "b: false → 0"


def test_of_two_replies_that_lead_to_one_node_the_one_given_is_drawn():
    document = {
        "name": "g",
        "roots": ["a"],
        "nodes": {
            "a": {"type": "choice", "criteria": "?", "options": {"good": "v", "fair": "v"}},
            "v": {"type": "verdict", "score": 0.5},
        },
    }
    drawn = drawings([graph_of(document)])["g"]
    trace = [
        {"node": "a", "parent": None, "verdict": "fair", "score": None, "status": "ok"},
        {"node": "v", "parent": "a", "verdict": None, "score": 0.5, "status": "ok"},
    ]
    assert [edge.label for edge in drawn.passed(trace).edges] == ["fair"]
