"""The review app in a real browser: acceptance checks 10, 11, 14, 15 and 20 to
26 of the experience specification.
"""

import re

import pytest
from sqlalchemy import select
from tests.accessibility import violations
from tests.web.review.desk import GOOD, PASSWORD, choose, entry, question

from medassay.review.store import accounts
from medassay.review.store.schema import Assignment, Review, SignIn
from medassay.review.training import training_entries

pytestmark = pytest.mark.browser
GRAPH = {
    "node": "heart failure",
    "content": "",
    "children": [
        {"node": "Stable", "content": "", "children": [{"node": "Give drug A", "content": ""}]},
        {"node": "Shock", "content": "", "children": [{"node": "Give drug B", "content": ""}]},
    ],
}


@pytest.fixture(scope="module")
def kind():
    """Return SQLite: what a page does in a browser does not depend on the kind of database;
    test_access, test_flow and test_roles run on both.
    """
    return "sqlite"


def stored_reviews(desk, study):
    with desk.database.read() as db:
        rows = select(Review).join(Assignment).where(Assignment.study_id == study)
        return [review.content for review in db.scalars(rows.order_by(Review.id))]


def saved(page, state="saved"):
    page.wait_for_selector(f'[role=status][data-save="{state}"]:not(:empty)')


@pytest.mark.slow
def test_an_item_is_completed_with_keys_only(desk, visit):
    study = desk.study(n=2)
    page = visit()
    page.goto(f"{desk.url}/login")
    page.keyboard.press("Tab")  # the skip link comes first
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#email")
    page.keyboard.type("ada@example.org")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{desk.url}/")
    page.locator(f'a[href="/s/{study}/i/1"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/s/{study}/i/1")
    for key in "212":
        page.keyboard.press(key)
    assert page.inner_text(".total") == "Total 5 of 15 · flagged: below 9"
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".problems:focus")  # the summary takes focus
    assert "A score is below 3: say what is wrong." in page.inner_text(".problems")
    page.keyboard.press("c")
    page.keyboard.type("212 jk: the key is wrong")  # in a text field no key scores
    page.keyboard.press("Escape")
    page.focus("#option")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/s/{study}/i/2")
    for key in "545":
        page.keyboard.press(key)
    page.keyboard.press("h")
    assert page.is_checked("#harm")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/s/{study}/done")
    first, second = stored_reviews(desk, study)
    assert first["scores"] == {"question": 2, "answer": 1, "path": 2}
    assert first["comment"] == "212 jk: the key is wrong"
    assert first["correction"] == {"option": "B"}
    assert second["scores"] == {"question": 5, "answer": 4, "path": 5}
    assert second["harm"] == {"severity": "mild"}


def test_keys_move_skip_and_are_listed(desk, visit):
    study = desk.study(n=3)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.keyboard.press("j")
    assert page.get_attribute(".aspect.current", "data-aspect") == "answer"
    page.keyboard.press("k")
    assert page.get_attribute(".aspect.current", "data-aspect") == "question"
    page.keyboard.press("0")
    assert page.evaluate("document.activeElement.id") == "why-question"
    page.keyboard.type("3")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.is_visible("dialog#keys")
    page.keyboard.press("5")  # the list is open: nothing scores below it
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog#keys", state="hidden")
    assert page.is_checked('input[name="question"][value="0"]')
    page.keyboard.press("n")
    page.wait_for_url("**/i/2")
    page.keyboard.press("p")
    page.wait_for_url("**/i/1")
    page.keyboard.press("s")
    page.wait_for_url("**/i/2")


def test_keys_that_are_switched_off_do_nothing(desk, visit):
    study = desk.study(n=1, people={"quiet": "reviewer"})
    page = visit("quiet")
    page.goto(f"{desk.url}/me")
    page.uncheck('input[name="keys"]')
    page.click("main button.main")
    page.goto(f"{desk.url}/s/{study}/i/1")
    for key in "53h":
        page.keyboard.press(key)
    assert page.locator("input:checked").count() == 0
    page.keyboard.press("s")
    assert page.url.endswith("/i/1")


def test_a_question_with_an_open_form_shows_both(desk, visit):
    other = {"question": "What is it, in your words?", "reference": "A cold, most likely."}
    study = desk.study(n=1, entries=[entry(1, other_forms=[other])])
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    said = page.inner_text("main")
    assert "Also asked without options" in said
    assert "What is it, in your words?" in said
    assert "A cold, most likely." in said


def test_an_item_is_completed_on_a_phone_and_nothing_hides_the_field(desk, visit):
    study = desk.study(n=1, entries=[entry(1, graph=GRAPH, source_text="text " * 400)])
    page = visit("ada", viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True)
    page.goto(f"{desk.url}/s/{study}/i/1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input[type=text], textarea, .values span, summary, nav a, .check')]
        .filter((one) => one.offsetParent && one.getBoundingClientRect().height < 43.5)
        .map((one) => one.outerHTML.slice(0, 90))"""
    )
    assert small == []
    for name, value in (("question", 3), ("answer", 1), ("path", 3)):
        page.tap(f'label:has(input[name="{name}"][value="{value}"])')
    assert "flagged" in page.inner_text(".total")
    page.tap("button.main")
    page.wait_for_selector(".problems")
    page.select_option("#option", "C")
    page.tap("#comment")
    page.keyboard.type("the key is wrong")
    # The field that is typed into lies on top at its middle, and no button over it.
    for name in ("#comment", "#option", "#text", "#source"):
        page.focus(name)
        page.evaluate(
            "(name) => document.querySelector(name).scrollIntoView({block: 'nearest'})", name
        )
        on_top = page.evaluate(
            """(name) => { const box = document.querySelector(name).getBoundingClientRect();
            return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).id; }""",
            name,
        )
        assert f"#{on_top}" == name
    page.tap("button.main")
    page.wait_for_url("**/done")
    assert stored_reviews(desk, study)[0]["scores"] == {"question": 3, "answer": 1, "path": 3}


def test_what_is_typed_before_the_script_arrives_stays_and_is_saved(desk, visit):
    study = desk.study(n=1)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.fill("#source", "page 3")
    saved(page)
    # A slow connection: the script of the next page comes when the test lets it.
    held = []

    def hold(route):
        held.append(route)

    page.route("**/static/review.js", hold)
    page.goto(f"{desk.url}/s/{study}/i/1", wait_until="commit")
    page.click("button.main", no_wait_after=True)
    page.wait_for_selector(".problems")
    page.click("#comment")
    page.keyboard.type("he")
    assert held
    for route in held:
        route.continue_()
    page.unroute("**/static/review.js")
    page.wait_for_load_state("load")
    page.keyboard.type("art")
    assert page.input_value("#comment") == "heart"
    saved(page)
    page.goto(f"{desk.url}/s/{study}/i/1")
    assert page.input_value("#comment") == "heart"
    assert page.input_value("#source") == "page 3"


def test_drafts_are_saved_by_themselves_and_come_back(desk, visit):
    study = desk.study(n=2)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.fill("#comment", "half a thought")
    saved(page)
    assert re.fullmatch(r"Saved \d\d:\d\d", page.inner_text("[data-save]"))
    other = visit("ada")
    other.goto(f"{desk.url}/s/{study}/i/1")
    assert other.input_value("#comment") == "half a thought"
    # Two tabs: the one that is behind is told, and both versions are shown.
    other.fill("#comment", "from the other tab")
    saved(other)
    page.fill("#comment", "from the first tab")
    saved(page, "failed")
    assert "Changed elsewhere" in page.inner_text("[data-save]")
    for key in GOOD:
        choose(page, key, 5)
    page.click("button.main")
    page.wait_for_selector(".theirs")
    assert "from the other tab" in page.inner_text(".theirs")
    assert page.input_value("#comment") == "from the first tab"
    page.click("button.main")
    page.wait_for_url("**/i/2")
    assert stored_reviews(desk, study)[0]["comment"] == "from the first tab"


def test_a_session_that_ends_while_typing_loses_no_word(desk, visit):
    study = desk.study(n=1, people={"typist": "reviewer"})
    page = visit("typist")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.fill("#comment", "first words")
    saved(page)
    with desk.database.write() as db:
        for one in db.scalars(
            select(SignIn).where(
                SignIn.account_id == accounts.account_of(db, "typist@example.org").id
            )
        ):
            db.delete(one)
    page.fill("#comment", "first words, and then some more")
    saved(page, "failed")
    assert "Session ended: sign in, your text is kept" in page.inner_text("[data-save]")
    page.click("[data-save] a")
    page.fill("#email", "typist@example.org")
    page.fill("#password", PASSWORD)
    page.click("main button.main")
    page.wait_for_url(f"**/s/{study}/i/1")
    assert page.input_value("#comment") == "first words, and then some more"
    saved(page)
    page.click("[data-signout] button")
    page.wait_for_url("**/login?out=1")
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_a_wrong_token_is_refused_with_the_text_in_its_place(desk, visit):
    study = desk.study(n=1)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    for key in GOOD:
        choose(page, key, 4)
    page.fill("#comment", "precious")
    page.evaluate("document.querySelector('[data-form] [name=csrf]').value = 'no'")
    page.click("button.main")
    page.wait_for_selector('[role="alert"]')
    assert page.input_value("#comment") == "precious"
    assert page.is_checked('input[name="answer"][value="4"]')
    assert stored_reviews(desk, study) == []
    page.click("button.main")
    page.wait_for_url("**/done")


@pytest.mark.slow
def test_a_server_that_stops_is_waited_for(desk, visit):
    study = desk.study(n=1)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.wait_for_load_state("networkidle")
    desk.server.kill()
    page.fill("#comment", "written without a server")
    saved(page, "failed")
    assert page.inner_text("[data-save]") == "Not saved, retrying"
    desk.server.start()
    saved(page)
    page.reload()
    assert page.input_value("#comment") == "written without a server"


PAGES = {
    "ada": ("", "i/1", "done", "feedback"),
    "judy": ("", "adjudicate/", "adjudicate/1"),
    "coco": ("", "progress", "agreement", "items", "trends", "close", "log"),
    "aud": ("items?show=all", "items/1", "window"),
}


@pytest.fixture
def reviewed(desk):
    """Furnish a study with reviews, feedback and a disagreement."""
    made = [entry(at, graph=GRAPH, source_text="A source.") for at in range(1, 4)]
    study = desk.study(entries=made)
    for who, answer in (("ada", "1"), ("ben", "5"), ("cleo", "4")):
        client = desk.client(who)
        for number in (1, 2, 3):
            page = client.get(f"/s/{study}/i/{number}")
            fields = {**GOOD, "answer": answer, "comment": "see the guideline", "option": "B"}
            client.post(f"/s/{study}/i/{number}", version=page.version, do="submit", **fields)
    return study


@pytest.mark.slow
def test_no_page_has_an_accessibility_violation(desk, visit, reviewed):
    places = [("", ("/login", "/help/keys"))]
    places += [
        ("root", ("/admin/users", "/audit")),
        ("maker", ("/", "/studies/new")),
        ("ada", ("/me", "/")),
    ]
    places += [
        (who, tuple(f"/s/{reviewed}/{path}" for path in paths)) for who, paths in PAGES.items()
    ]
    found = {}
    for who, paths in places:
        page = visit(who, bypass_csp=True)
        for path in paths:
            page.goto(f"{desk.url}{path}")
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                if bad := violations(page, colours_only=scheme == "dark"):
                    found[path, scheme] = bad
    assert found == {}


def test_no_page_scrolls_sideways_on_a_narrow_screen_and_policies_hold(desk, visit, reviewed):
    places = [(who, [f"/s/{reviewed}/{path}" for path in paths]) for who, paths in PAGES.items()]
    places += [("root", ["/admin/users", "/audit", "/me"]), ("maker", ["/", "/studies/new"])]
    for who, paths in places:
        page = visit(who, viewport={"width": 320, "height": 700})
        for path in paths:
            reply = page.goto(f"{desk.url}{path}")
            assert "default-src 'none'" in reply.headers["content-security-policy"]
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, path


def test_the_graph_and_the_source_stand_beside_the_item(desk, visit, reviewed):
    page = visit("ada")
    page.goto(f"{desk.url}/s/{reviewed}/i/1")
    page.click("summary >> text=Decision graph")
    picture = page.locator(".graph img")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("(one) => one.decode().then(() => one.naturalWidth)") > 100
    page.click("summary >> text=Source text")
    assert page.is_visible("text=A source.")


def test_hostile_text_runs_nowhere(desk, visit):
    evil = (
        "<script>alert(1)</script><img src=x onerror=alert(1)> \u202ecilpub <a"
        " href='javascript:alert(1)'>x</a>"
    )
    study = desk.study(entries=[entry(1, question=evil, source_text=evil)])
    ada = visit("ada")
    ada.on("dialog", lambda one: pytest.fail("a script ran"))
    ada.goto(f"{desk.url}/s/{study}/i/1")
    assert "<script>alert(1)</script>" in ada.inner_text(".content")
    assert "U+202E" in ada.inner_text(".content")
    ada.fill("#comment", evil)
    for name in GOOD:
        choose(ada, name, 3)
    ada.click("button.main")
    ada.wait_for_url("**/done")
    for who, path in (("judy", "adjudicate/1"), ("aud", "items/1")):
        page = visit(who)
        page.on("dialog", lambda one: pytest.fail("a script ran"))
        page.goto(f"{desk.url}/s/{study}/{path}")
        assert page.locator("main script, main img[src=x]").count() == 0
        assert "U+202E" in page.inner_text("article")


def test_the_pages_speak_german_and_spanish(desk, visit):
    study = desk.study(n=2)
    page = visit("ada", locale="de-AT")
    page.goto(f"{desk.url}/s/{study}/i/1")
    assert page.get_attribute("html", "lang") == "de"
    assert page.inner_text("button.main") == "Absenden und weiter"
    page.fill("#comment", "Entwurf")
    saved(page)
    assert page.inner_text("[data-save]").startswith("Gespeichert")
    page.click("button.main")
    page.wait_for_selector(".problems")
    assert "Wählen Sie einen Wert" in page.inner_text(".problems")
    page.click("text=Español")
    page.wait_for_url("**/i/1")
    assert page.inner_text("button.main") == "Enviar y siguiente"


def test_a_bank_page_is_rewritten_on_the_page_of_an_adjudicator(desk, visit, reviewed):
    page = visit("judy")
    page.goto(f"{desk.url}/s/{reviewed}/adjudicate/")
    page.click('main a[href$="adjudicate/1"]')
    assert not page.is_visible("#question")
    page.click('label:has(input[value="rewrite"])')
    assert page.is_visible("#question")  # the fields are there at once
    page.fill("#question", "A better question?")
    page.fill("#reason", "It was unclear.")
    page.click('button[value="decide"]')
    page.wait_for_selector("text=A second person checks this.")
    second = visit("jon")
    second.goto(f"{desk.url}/s/{reviewed}/adjudicate/1")
    assert "A better question?" in second.inner_text(".notice")
    second.click('button[value="confirm"]')
    second.wait_for_selector("h1 .mark >> text=checked")
    assert question(1)["question"] in second.inner_text(".content")


@pytest.mark.parametrize("form", ["item", "pair", "answer"])
def test_what_cannot_be_uploaded_has_its_command_beside_the_upload(desk, visit, form):
    study = (
        desk.study() if form == "item" else desk.study(form=form, entries=training_entries(form))
    )
    page = visit("coco")
    page.goto(f"{desk.url}/s/{study}/progress")
    told = page.inner_text("[data-command]")
    assert "cannot be uploaded here" in told
    assert f"--study {study}" in told
    assert "medassay review import" in told
    assert page.locator('input[type="file"]').count() == (form == "item")


SLOW = """window.fetch = ((ask) => async (...what) => {
    await new Promise((done) => setTimeout(done, 1500));
    return ask(...what);
})(window.fetch)"""


def test_a_submission_waits_for_the_draft_that_is_on_its_way(desk, visit):
    study = desk.study(n=1)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.evaluate(SLOW)
    for key in "544":
        page.keyboard.press(key)
    page.wait_for_selector('[data-save="saving"]')
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/done")
    assert stored_reviews(desk, study)[0]["scores"] == {"question": 5, "answer": 4, "path": 4}


def test_behind_the_last_aspect_no_key_scores(desk, visit):
    study = desk.study(n=1)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    for key in "5441":
        page.keyboard.press(key)
    assert page.is_checked('input[name="path"][value="4"]')
    assert page.evaluate("document.activeElement.value") == "submit"
    page.keyboard.press("k")
    page.keyboard.press("3")
    assert page.is_checked('input[name="path"][value="3"]')


def test_what_a_refused_page_shows_is_still_kept_by_the_browser(desk, visit):
    study = desk.study(n=1)
    page = visit("ada")
    page.goto(f"{desk.url}/s/{study}/i/1")
    page.fill("#comment", "kept in any case")
    page.evaluate("document.querySelector('[data-form] [name=csrf]').value = 'no'")
    page.click("button.main")
    page.wait_for_selector('[role="alert"]')
    saved(page)  # without a further key
    page.goto(f"{desk.url}/s/{study}/i/1")
    assert page.input_value("#comment") == "kept in any case"
