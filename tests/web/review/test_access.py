"""Reviews in a real browser, on both databases: who may do what, and what is stored of it."""

import json
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.web.review.desk import GOOD, choose

from medassay.review.store.schema import Access
from medassay.web.request_context import ACCOUNT, ANYONE
from medassay.web.routes import ROUTES

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_without_scripts_a_study_is_reviewed_to_its_end(desk, visit):
    study = desk.study(training=True, n=1)
    page = visit("ada", java_script_enabled=False)
    page.goto(f"{desk.url}/s/{study}/")
    page.click("text=Continue")
    for number in (1, 2):
        for name, value in (("question", 2), ("answer", 1), ("path", 2)):
            choose(page, name, value)
        page.fill("#comment", "wrong")
        page.select_option("#option", "B")
        page.click('button[value="submit"]')
        assert "What we would have said" in page.inner_text(".explained")
        page.click(".explained a")
        assert page.url.endswith(f"/i/{number + 1}")
    page.fill("#comment", "a draft")
    page.click('button[value="draft"]')
    assert page.input_value("#comment") == "a draft"
    page.click('button[value="submit"]')
    assert page.locator(".problems a").count() == 3
    page.click(".problems a >> nth=0")
    assert page.url.endswith("#question")
    for name in GOOD:
        choose(page, name, 0)
        page.fill(f"#why-{name}", "not my field")
    page.click('button[value="submit"]')
    assert page.inner_text("h1") == "Thank you"
    page.click("[data-signout] button")
    assert "/login" in page.url


def test_another_ones_review_is_out_of_reach_by_page_address_and_export(desk, visit):
    study = desk.study(n=2)
    ada = visit("ada")
    for number in (1, 2):
        ada.goto(f"{desk.url}/s/{study}/i/{number}")
        for name in GOOD:
            choose(ada, name, 3)
        ada.fill("#comment", "only mine to read")
        ada.click("button.main")
    ada.wait_for_url("**/done")
    for who in ("ben", "coco"):
        page = visit(who)
        for path in (
            "",
            "i/1",
            "items",
            "items/1",
            "agreement",
            "adjudicate/1",
            "log",
        ):
            page.goto(f"{desk.url}/s/{study}/{path}")
            assert "only mine to read" not in page.content()
        for path in ("items/1", "export.json", "export.csv"):
            reply = page.goto(f"{desk.url}/s/{study}/{path}")
            assert reply.status == 403
            assert "Not for you" in page.inner_text("h1")


ASKED = """async ([routes, token]) => {
    const found = [];
    for (const [method, path] of routes) {
        const json = path.startsWith("/api/");
        const reply = await fetch(path, {
            method, redirect: "manual",
            headers: { "x-csrf-token": token, ...(json ? { "content-type": "application/json" } : {}) },
            body: method === "GET" ? undefined : json ? "{}" : new URLSearchParams({ csrf: token }),
        });
        found.push(reply.type === "opaqueredirect" ? 303 : reply.status);
    }
    return found;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)  # rights are no matter of databases
def test_every_forbidden_page_and_post_gives_403_and_is_logged(desk, visit):
    study = desk.study(n=2)
    own = {"ada": "reviewer", "judy": "adjudicator", "coco": "coordinator", "max": "maintainer"}
    own |= {"aud": "auditor", "root": "admin", "maker": "creator", "nobody": "account"}
    refused = 0
    for who, role in own.items():
        page = visit(who)
        page.goto(f"{desk.url}/me")
        token = page.input_value("main [name=csrf]")
        forbidden = [
            route
            for route in ROUTES
            if ANYONE not in route.may and route.may.isdisjoint({role, ACCOUNT})
        ]
        routes = [
            (route.method, route.path.replace("{study}", study).replace("{n}", "1"))
            for route in forbidden
        ]
        assert set(page.evaluate(ASKED, [routes, token])) == {403}, who
        refused += len([route for route in forbidden if "{study}" in route.path])
    with desk.database.read() as db:
        logged = select(func.count()).where(Access.study_id == study, ~Access.allowed)
        assert db.scalar(logged) == refused > 150


def test_a_revision_keeps_the_earlier_version_and_closing_freezes_both(desk, visit):
    study = desk.study(n=1)
    ada, coco = visit("ada"), visit("coco")
    ada.goto(f"{desk.url}/s/{study}/i/1")
    for name in GOOD:
        choose(ada, name, 5)
    ada.click("button.main")
    ada.wait_for_url("**/done")
    ada.goto(f"{desk.url}/s/{study}/i/1")
    choose(ada, "answer", 4)
    ada.click("button.main")
    assert "Say why you change your review." in ada.inner_text(".problems")
    ada.fill("#reason", "I looked it up")
    ada.click("button.main")
    ada.wait_for_url("**/done")
    ada.goto(f"{desk.url}/s/{study}/i/1")
    ada.click(".history summary")
    assert "Version 1" in ada.inner_text(".history")
    assert "I looked it up" in ada.inner_text(".history")
    coco.goto(f"{desk.url}/s/{study}/progress")
    coco.click("text=Close the study")
    coco.fill("#confirm", study)
    coco.click("text=Close for good")
    shown = coco.inner_text(".notice code")
    with coco.expect_download() as download:
        coco.click("text=JSON")
    document = json.loads(Path(download.value.path()).read_text())
    assert document["sha256"] == shown
    assert [one["revision"] for one in document["frozen"]["reviews"]] == [1, 2]
    coco.goto(f"{desk.url}/s/{study}/log")
    assert shown in coco.inner_text("main")  # the trail has it
    ada.reload()
    assert "The study is closed" in ada.inner_text("main")
    assert ada.is_disabled('input[name="answer"][value="4"]')
    assert ada.locator("button.main").count() == 0
