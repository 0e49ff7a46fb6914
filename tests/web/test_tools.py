"""Pages of runs with tools in a real browser: the difference, the calls, hostile arguments.

And the sheet of contexts.
"""

import pytest
from tests import makers
from tests.accessibility import violations
from tests.context.services import Services

import medassay

pytestmark = pytest.mark.browser
HOSTILE = '<script>document.title="owned"</script>"onload=\u202egnp'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    services = Services()
    items = [
        {**item, "domain": domain, "id": f"{domain}-{item['id']}"}
        for domain in ("gout", "anaemia")
        for item in makers.many_items(12)
    ]
    makers.write_bank(folder / "bank", items, domains=("gout", "anaemia"))
    makers.write_index(folder)
    turns = [
        [
            {"name": "web_search", "arguments": {"query": "{item}"}},
            {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
        ]
    ]
    model = makers.fake(letters="hash", tools=turns)
    makers.write_models(folder, {**model, "capabilities": ["chat", "tools"]})
    plan = makers.write_plan(
        folder,
        settings=["zero_shot", "rag"],
        modes=["solo", "tools"],
        retrieval={"index": "index"},
        tools=services.rules(),
    )
    run = medassay.run(plan, secrets={})
    yield medassay.publish(run, folder / "site").parent
    services.stop()


def address(site, *parts):
    return site.joinpath(*parts, "index.html").as_uri()


def test_two_tracks_and_their_difference_are_one_click_from_the_front(page, site):
    page.goto(address(site))
    page.click("nav >> text=Tools")
    rows = page.query_selector_all("tr[data-tools]")
    assert len(rows) == 3 * 2  # overall and two domains, two settings
    assert page.locator("figure[data-figure=forest] img").count() == 1
    used = page.locator("tr[data-calls]").first.inner_text()
    assert "48" in used
    assert "24" in used
    page.click("text=How tools are used")
    assert "at most 8 calls an answer" in page.locator("#tools").inner_text()
    page.goto(address(site, "track", "tools"))
    assert "SCRIPTED" in page.inner_text("main").upper()


def test_calls_stand_on_the_page_of_answers_and_hostile_arguments_are_text(page, site):
    [found] = site.glob("cell/m/gout/*zero*tools*/index.html")
    page.goto(found.as_uri())
    page.locator("details summary", has_text="2 calls of tools").first.click()
    told = page.locator("article").first.inner_text()
    assert "web_search" in told
    assert "<script>" in told
    assert "U+202E" in told
    assert page.title() != "owned"
    assert "a snippet" not in told  # what others wrote is not published


def test_pages_of_tools_are_accessible_and_fit_a_phone(browser, site):
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    [run] = site.glob("run/*/index.html")
    for at in (address(site, "tools"), run.as_uri()):
        page.goto(at)
        assert violations(page) == [], at
        for width, scheme in ((1200, "dark"), (390, "dark"), (390, "light")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            assert violations(page, colours_only=True) == [], (at, width, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
