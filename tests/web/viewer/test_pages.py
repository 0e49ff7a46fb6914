"""The pages of the viewer in a real browser: what they show, whoever wrote the replies, on a phone,
in the dark, without scripts, by keys.
"""

import json
import time
from urllib.parse import urlencode

import pytest
from tests.accessibility import violations
from tests.web.viewer.viewed import HOSTILE, HOSTILE_MODEL, LONG, trial_query

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(shown):
    closed, judged, broken = (shown.run_of(plan) for plan in ("closed", "judged", "broken"))
    hostile = trial_query(HOSTILE_MODEL, "law-01")
    judge = trial_query("steady", "open-001")
    return {
        "runs": "/",
        "keys": "/keys",
        "overview": f"/run/{closed}/",
        "unfinished": f"/run/{broken}/",
        "trials": f"/run/{closed}/trials",
        "none": f"/run/{closed}/trials?text=nothing+such",
        "judged trials": f"/run/{judged}/trials?judges=agree&sort=spread&down=yes",
        "hostile trial": f"/run/{closed}/trial?{hostile}",
        "thinking trial": f"/run/{closed}/trial?{trial_query('thinking', 'law-00')}",
        "failed trial": f"/run/{closed}/trial?{trial_query('mute', 'law-02')}",
        "long trial": f"/run/{closed}/trial?{trial_query('endless', 'law-00')}",
        "judged trial": f"/run/{judged}/trial?{judge}",
        "proof": f"/run/{closed}/proof?{hostile}",
        "compare": f"/run/{closed}/compare?" + urlencode({"a": HOSTILE_MODEL, "b": "steady"}),
        "one row": f"/run/{judged}/compare",
        "failures": f"/run/{closed}/failures",
        "no page": "/run/other/",
    }


@pytest.fixture
def visit(browser, shown, cookie):
    """Return a function that opens a page in a browser that has the cookie."""
    contexts = []

    def open_page(path, *, width=1200, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        context.add_cookies([{**cookie, "url": shown.url}])
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                "404" in message.text or page.problems.append(f"{message.type}: {message.text}")
            ),
        )
        page.on(
            "request",
            lambda request: (
                request.url.startswith((shown.url, "data:")) or page.problems.append(request.url)
            ),
        )
        page.goto(shown.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.slow
def test_no_page_has_an_error_an_accessibility_violation_or_scrolls_sideways(pages, visit, shown):
    page = visit("/")
    for name, path in pages.items():
        page.set_viewport_size({"width": 1200, "height": 900})
        page.goto(shown.url + path)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page, colours_only=scheme == "dark") == [], (name, scheme)
        assert page.problems == [], name
        for width in (320, 390, 1024):
            page.set_viewport_size({"width": width, "height": 900})
            size = page.evaluate("document.documentElement.scrollWidth")
            assert size <= width, (name, size)


def test_without_scripts_every_page_says_the_same(pages, visit, shown):
    with_scripts, without = visit("/"), visit("/", scripts=False)
    for name, path in pages.items():
        if name == "keys":
            continue
        texts = []
        for page in (with_scripts, without):
            page.goto(shown.url + path)
            texts.append(page.inner_text("#main"))
        assert texts[0] == texts[1], name


def test_a_hostile_reply_is_shown_and_does_nothing(pages, visit):
    for name in ("hostile trial", "compare", "trials", "failures"):
        page = visit(pages[name])
        assert "owned" not in page.title()
        assert page.problems == []
        assert (
            page.locator("main script, main img, main [onerror], main a[href^=javascript]").count()
            == 0
        )
    page = visit(pages["hostile trial"])
    reply = page.locator("pre.reply").text_content()
    assert "<script>document.title = 'owned'</script>" in reply
    assert "\u202e" not in reply
    assert "\x1b" not in reply
    assert "{{ 7 * 7 }}" in reply
    assert "U+202E" in page.inner_text("article") or "202e" in page.inner_text("article").lower()


def test_a_reply_of_eight_megabytes_is_shown_as_far_as_a_page_goes(pages, visit, fetch, shown):
    page = visit(pages["long trial"])
    assert "Only the first 200,000 characters are shown." in page.inner_text("main")
    assert len(page.locator("pre.reply").text_content()) == 200_000
    address = page.locator("text=The whole reply as a file").get_attribute("href")
    status, headers, body = fetch(f"/run/{shown.run_of('closed')}/{address}")
    assert (status, body.decode()) == (200, LONG)
    assert headers["content-disposition"].startswith("attachment")
    assert headers["content-type"].startswith("text/plain")
    size = len(fetch(f"/run/{shown.run_of('closed')}/trials")[2])
    assert size < 200_000


def test_one_trial_says_all_that_the_run_knows(pages, visit):
    page = visit(pages["judged trial"])
    page.keyboard.press("o")  # opens what is folded
    text = page.inner_text("main")
    for part in (
        "Explain rule 1.",  # the question
        "Rule 1 has exceptions.",  # a fact with its verdicts
        "judge-beta: what was asked, and the raw reply",
        "You check an answer to a medical question against target facts.",
        '"extra_false_claims"',  # the raw reply
        "These messages have the hash that the record holds: they are the ones that were sent.",
        "Columns of the score",
        "medassay verify RUN --answer",
    ):
        assert part in text, part
    page = visit(pages["thinking trial"])
    assert page.locator("pre.reply").text_content().strip() == "The answer is C."
    page.click("text=With its thoughts")
    assert "<think>A, or B?</think>" in page.inner_text("main")
    page.click("text=its way to the seal")
    assert "MISMATCH" not in page.inner_text("main")
    assert "hashes to root" in page.inner_text("main")


def test_a_filter_has_an_address_that_brings_it_back(pages, visit):
    page = visit(pages["trials"])
    page.select_option('[name="model"]', "mute")
    page.select_option('[name="outcome"]', "refused")
    page.click("button:has-text('Show')")
    assert page.locator("tbody tr").count() == 1
    address = page.url
    assert "model=mute" in address
    page.goto(address)
    assert page.locator("tbody tr th").inner_text().startswith("law-03")
    page.click("text=Clear")
    page.click("thead a:has-text('Characters')")
    lengths = [
        int(t.replace(",", "")) for t in page.locator('[data-label="Characters"]').all_inner_texts()
    ]
    assert lengths == sorted(lengths, reverse=True)
    page.click("thead a:has-text('Characters')")
    lengths = [
        int(t.replace(",", "")) for t in page.locator('[data-label="Characters"]').all_inner_texts()
    ]
    assert lengths == sorted(lengths)


def test_keys_move_open_and_can_be_switched_off(pages, visit):
    page = visit(pages["trials"])
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator("tbody tr").nth(1)
    assert "current" in second.get_attribute("class")
    name = second.locator("a").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/trial?*")
    assert name in page.inner_text("h1")
    before = page.url
    page.keyboard.press("n")
    page.wait_for_function(f"location.href !== {json.dumps(before)}")
    page.keyboard.press("p")
    page.wait_for_url(before)
    page.go_back()
    page.goto(page.url.split("/run/")[0] + pages["trials"])
    page.keyboard.press("/")
    page.keyboard.type("njk?")  # in a field no key acts
    assert page.input_value("[data-search]") == "njk?"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_url("**/keys")
    page.check("#keys-off")
    page.goto(page.url.split("/keys")[0] + pages["trials"])
    page.keyboard.press("j")
    assert page.locator("tr.current").count() == 0


def test_side_by_side_marks_what_differs(pages, visit):
    page = visit(pages["compare"])
    page.select_option('[name="a"]', "steady · zero_shot · solo")
    page.select_option('[name="b"]', "thinking · zero_shot · solo")
    page.click("button:has-text('Show')")
    first = page.locator("section.pair").first
    texts = first.locator("pre").all_inner_texts()
    assert texts == ["I take (B).", " The answer is C."]
    marked = [
        "".join(side.locator("mark").all_inner_texts()) for side in first.locator("pre").all()
    ]
    assert "take" in marked[0]
    assert "answer" in marked[1]
    page.click("nav >> text=only A right")
    assert page.locator("section.pair").count() == 4  # of four items B is the key
    assert page.locator(".side.right").count() == 4


def test_a_page_of_a_run_under_way_brings_itself_up_to_date(pages, visit, shown):
    name = shown.run_of("broken")
    viewed = shown.place.open(name)
    page = visit(f"/run/{name}/trials")
    assert page.locator("tbody tr").count() == 10
    page.keyboard.press("u")
    assert page.inner_text(".updates") == "Go on with updates"
    segment = next((viewed.run.path / "journal").iterdir())
    line = segment.read_bytes().splitlines(keepends=True)[0]
    (viewed.run.path / "journal" / "d-new.jsonl").write_bytes(line.replace(b"law-00", b"law-0x"))
    try:
        viewed.index.catch_up()
        page.wait_for_timeout(2500)
        assert page.locator("tbody tr").count() == 10
        page.keyboard.press("u")
        page.wait_for_selector("text=law-0x", timeout=15_000)
        assert page.locator("tbody tr").count() == 11
        assert page.problems == []
    finally:
        (viewed.run.path / "journal" / "d-new.jsonl").unlink()


def test_what_is_wrong_with_an_address_is_said(fetch, shown):
    run = shown.run_of("closed")
    for path, status, message in (
        ("/run/other/", 404, "no run &#39;other&#39; here"),
        (f"/run/{run}/trials?least=x", 400, "expected a whole number from 0"),
        (f"/run/{run}/trial", 400, "the address names no domain"),
        (f"/run/{run}/trial?{trial_query('steady', 'law-99')}", 404, "law-99"),
        (f"/run/{run}/trial?{trial_query('steady', 'law-01', repeat='x')}", 400, "repeat"),
        (f"/run/{run}/compare?a=nobody", 404, "no row"),
        (f"/run/{run}/compare?show=all", 400, "expected only-a"),
        ("/run/..%2f..%2fetc/", 404, ""),
        ("/static/..%2fapp.py", 404, ""),
    ):
        began = time.monotonic()
        found, _, body = fetch(path)
        assert (found, message in body.decode()) == (status, True), path
        assert time.monotonic() - began < 10


def test_a_record_is_given_as_json(as_json, shown):
    run = shown.run_of("closed")
    hostile = trial_query(HOSTILE_MODEL, "law-01")
    document = as_json(f"/run/{run}/record?{hostile}")
    assert document["schema_version"] == 1
    assert document["trial"]["text"] == HOSTILE
    assert document["score"]["item"] == document["trial"]["item"] == "law-01"
    assert document["verdicts"] == []
