"""Pages of ranked diagnoses in a real browser: from the plane to the calculation of one case."""

import json
import re
from pathlib import Path

import pytest
from tests import makers

import medassay

pytestmark = pytest.mark.browser
N = 12
HOSTILE = '<script>document.title="owned"</script>"onload=\u202egnp'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    makers.write_bank(folder / "bank", makers.ddx_items(N), name="medicine", domains=("medicine",))
    lists = {f"case-{i:03}": makers.listed(f"Malady {i}", f"Kin {i}", HOSTILE) for i in range(N)}
    lists["case-005"] = "I cannot say."
    lists["case-006"] = makers.listed("Flu", "Gout", "Lupus", "Mumps", "Polio", "Sepsis")
    makers.write_models(folder, makers.fake("m", replies=lists), makers.ddx_judge(N))
    plan = makers.write_plan(folder, task="ddx", judges=["judge"])
    run = medassay.run(plan, secrets={})
    return medassay.publish(run, folder / "site").parent


def address(site, *parts):
    return site.joinpath(*parts, "index.html").as_uri()


def prompt_page(site):
    [found] = (site / "ddx" / "m").iterdir()
    return (found / "index.html").as_uri()


def test_from_the_plane_to_the_calculation_of_a_case(page, site):
    page.goto(address(site, "ddx"))
    assert page.query_selector("figure[data-figure=quadrant] img")
    assert page.query_selector_all("figure[data-figure=violin_swarm] img")
    page.click("table.ddx th a")
    assert page.url == prompt_page(site)
    crosses = page.query_selector_all("figure.linked .light a[data-case]")
    assert crosses
    name = crosses[0].get_attribute("data-case")
    crosses[0].focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/case/"))
    assert name in page.inner_text("main")


def test_one_case_has_no_interval(page, site):
    page.goto(prompt_page(site))
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    intervals = [cell.inner_text() for cell in page.query_selector_all(".interval")]
    ends = [text.strip("[]").split(", ") for text in intervals if text.startswith("[")]
    assert ends
    assert not [pair for pair in ends if pair[0] == pair[1]]


def test_what_each_rank_adds_sums_to_the_scores(page, site):
    page.goto(address(site, "case", "medicine", "case-001"))
    table = page.query_selector("table.calculation")
    said = re.findall(r"[\d.]+", table.query_selector("caption").inner_text())
    cells = [
        [c.inner_text() for c in row.query_selector_all("td, th")]
        for row in table.query_selector_all("tbody tr")
    ]
    assert sum(float(row[5]) for row in cells) == pytest.approx(float(said[0]), abs=1e-3)
    assert sum(float(row[8]) for row in cells) == pytest.approx(float(said[1]), abs=1e-3)
    assert cells[0][3].split("\n") == ["Exact Synonym", "other name in the bank"]
    assert cells[1][3].split("\n")[1] == "judge"


def test_best_median_and_worst_open_the_page_and_every_case_is_listed(page, site):
    page.goto(prompt_page(site))
    headings = [h.inner_text().split(" case")[0] for h in page.query_selector_all("h2")[:3]]
    assert headings == ["Best", "Median", "Worst"]
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    listed = page.query_selector_all("tr[data-case]")
    assert {row.get_attribute("data-case") for row in listed} == {f"case-{i:03}" for i in range(N)}
    text = page.inner_text("main")
    assert "Bad severity, bad semantics" in text
    assert "Signed severity" in text


def test_what_holds_no_list_and_what_is_beyond_the_limit_says_so(page, site):
    page.goto(address(site, "case", "medicine", "case-005"))
    assert "No diagnosis: unparsed" in page.inner_text("main")
    page.goto(address(site, "case", "medicine", "case-006"))
    assert "beyond the rank limit: ignored" in page.inner_text("main")


def test_hostile_names_are_text_everywhere(page, site):
    for path in (*site.glob("ddx/**/*.html"), *site.glob("case/**/*.html")):
        page.goto(path.as_uri())
        assert "owned" not in page.title()
        assert "<script>document" not in path.read_text(encoding="utf-8")
    page.goto(address(site, "case", "medicine", "case-001"))
    assert '<script>document.title="owned"</script>' in page.inner_text("main")
    assert "\u202e" not in page.inner_text("main")


def test_one_plane_is_seen_at_a_time(browser, site):
    for scheme, other in (("light", "dark"), ("dark", "light")):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(prompt_page(site))
        assert page.is_visible(f"figure.linked .{scheme}")
        assert not page.is_visible(f"figure.linked .{other}")
        context.close()


def test_the_cell_page_leads_to_the_case(page, site):
    [cell] = [p for p in Path(site / "cell" / "m").rglob("index.html") if "medicine" in str(p)]
    page.goto(cell.as_uri())
    page.click("article[data-answer=case-002] p a:has-text('every label')")
    page.wait_for_url(re.compile("/case/medicine/case-002/"))
    assert "case-002" in page.inner_text("main")


def test_every_number_of_the_report_stands_on_the_page(page, site):
    run = json.loads((site / "data" / "run" / "statistics.json").read_text())
    [row] = run["domains"]["overall"]
    page.goto(address(site, "ddx"))
    shown = page.query_selector("tr[data-model=m] [data-score]")
    assert float(shown.get_attribute("data-score")) == pytest.approx(
        row["semantic"]["hard"]["score"], abs=1e-4
    )


def test_the_picked_cases_and_the_quadrants_are_those_of_the_scores(page, site):
    page.goto(prompt_page(site))
    captions = [c.inner_text() for c in page.query_selector_all("table.calculation caption")]
    # The worst case may hold no list, and then has no calculation.
    scores = [float(re.findall(r"[\d.]+", caption)[0]) for caption in captions]
    assert scores == sorted(scores, reverse=True)
    lines = (site / "data" / "run" / "scores.jsonl").read_text().splitlines()
    assert scores[0] == pytest.approx(max(json.loads(x)["score"] for x in lines), abs=1e-3)
    counted = {
        words.split(":")[0].lower(): int(re.findall(r"\d+", words)[0])
        for words in (d.inner_text() for d in page.query_selector_all("details > summary"))
    }
    statistics = json.loads((site / "data" / "run" / "statistics.json").read_text())
    [row] = statistics["domains"]["overall"]
    names = {
        "top_right": "good severity, good semantics",
        "top_left": "bad severity, good semantics",
        "bottom_left": "bad severity, bad semantics",
        "bottom_right": "good severity, bad semantics",
        "axis": "on an axis",
    }
    wanted = {names[place]: n for place, n in row["quadrants"].items() if n}
    assert len(wanted) > 1
    assert counted == wanted
