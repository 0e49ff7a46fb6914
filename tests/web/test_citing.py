"""A number and an answer are cited with data root, hash and address."""

import re

import pytest
from tests import makers
from tests.web.looking import served

import medassay
from medassay.publishing.publish import About

BOARD = """
title = "Law & more"
purpose = "How models answer questions of law. For people who choose one."
publisher = "The house of law"
contact = "board@example.org"
address = "https://board.example.org/"
"""


@pytest.fixture(scope="module", params=[False, True], ids=["pages", "compact"])
def site(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cite")
    (folder / "board.toml").write_text(BOARD)
    plan = makers.workspace(folder / "w", makers.law_items(), makers.fake("m", reply="A"))
    about = About(compact=request.param)
    medassay.publish(
        medassay.run(plan, secrets={}), folder / "site", publication="one", about=about
    )
    return folder / "site"


def test_each_answer_says_how_it_is_cited(site, browser):
    if (site / "p/one/cell/index.html").exists():
        path = "p/one/cell/index.html?file=m.jsonl&domain=law&model=m&setting=zero_shot&mode=solo"
    else:
        path = "p/one/cell/m/law/zero-shot-solo/index.html"
    with served(site) as address:
        page = browser.new_page()
        page.goto(f"{address}/{path}")
        page.wait_for_selector("article button.cite")
        article = page.locator("article").first
        article.locator("button.cite").click()
        told = article.locator("p.citation").inner_text()
        names = ("data-sha256", "id", "data-answer")
        sha256, anchor, item = (article.get_attribute(name) for name in names)
    assert told.startswith("The house of law (2026): Law & more, publication one of ")
    assert f", {item}, answer sha256 {sha256}. https://board.example.org/p/one/" in told
    assert told.endswith(f"#{anchor}")
    page.close()
    assert medassay.verify(site).ok


def test_a_number_is_cited_on_the_page_of_its_model(site):
    text = (site / "p/one/model/m/index.html").read_text()
    cited = re.findall(r"<li>(The house of law .*?)</li>", text)
    assert len(cited) == 2
    for one in cited:
        assert re.search(
            r"data root [0-9a-f]{16}…: m, (overall|law), zero_shot, solo, Accuracy", one
        )
        assert re.search(r"\d\d\.\d \[\d+\.\d, \d+\.\d\] n=\d+", one)
        assert one.endswith("https://board.example.org/p/one/model/m/")
