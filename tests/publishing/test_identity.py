"""Who publishes a board stands on every page, in its data, in feeds; nothing else changes."""

import json
from xml.etree import ElementTree

import pytest
import yaml
from tests import makers

import medassay
from medassay.errors import InputError
from medassay.publishing.history import set_status
from medassay.publishing.publish import About

BOARD = """
title = "Law & <Medicine>"
purpose = "How models answer questions of law. For people who choose one."
publisher = "The house of law"
contact = "board@example.org"
may_conclude = "Which model knows more of this law."
may_not_conclude = "That a model may practise."
dispute = "Write to us."
licence = "CC-BY-4.0"
address = "https://board.example.org/law/"
logo = "mark.svg"
[domains]
law = "The law"
[settings]
zero_shot = "question alone"
"""
LOGO = '<svg xmlns="http://www.w3.org/2000/svg"><circle r="4"/></svg>'


@pytest.fixture
def run(tmp_path):
    plan = makers.workspace(
        tmp_path / "w", makers.law_items(), makers.fake("m", reply="A"), makers.fake("n", reply="B")
    )
    return medassay.run(plan, secrets={})


@pytest.fixture
def board(tmp_path):
    (tmp_path / "board.toml").write_text(BOARD)
    (tmp_path / "mark.svg").write_text(LOGO)
    return tmp_path / "board.toml"


def pages(site):
    return {path: path.read_text() for path in sorted(site.rglob("*.html"))}


def test_every_page_says_who_and_what_for(run, board, tmp_path):
    site = tmp_path / "site"
    medassay.publish(run, site, publication="one")
    for path, text in pages(site).items():
        assert "Law &amp; &lt;Medicine&gt;</title>" in text, path
        assert "The house of law" in text, path
        assert '<meta name="description" content="How models answer questions of law.' in text, path
        assert "<Medicine>" not in text, path
    about = (site / "p/one/about/index.html").read_text()
    for part in ("Which model knows more", "may practise", "Write to us.", "question alone"):
        assert part in about
    assert 'href="mailto:board@example.org"' in about
    ranking = (site / "p/one/domain/law/index.html").read_text()
    assert "<h1>The law</h1>" in ranking
    assert "Setting: question alone." in ranking
    assert (site / "p/one/logo.svg").read_text() == LOGO
    kept = json.loads((site / "p/one/data/board.json").read_text())
    assert (kept["title"], kept["schema_version"]) == ("Law & <Medicine>", 1)
    assert medassay.verify(site).ok


def test_feeds_tell_publications_and_what_became_of_them(run, board, tmp_path):
    site = tmp_path / "site"
    medassay.publish(run, site, publication="one")
    set_status(site, "one", "retracted", reason="A key was <wrong>.\x00\x1b")
    space = {"a": "http://www.w3.org/2005/Atom"}
    feed = ElementTree.fromstring((site / "feed.xml").read_bytes())
    titles = [e.findtext("a:title", namespaces=space) for e in feed.findall("a:entry", space)]
    assert titles == ["one: retracted", "Publication one"]
    assert feed.find("a:entry/a:summary", space).text.startswith("A key was <wrong>.")
    document = json.loads((site / "feed.json").read_text())
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert [item["title"] for item in document["items"]] == titles
    assert document["items"][1]["url"] == "https://board.example.org/law/p/one/"
    assert len({item["id"] for item in document["items"]}) == 2
    unknown = (site / "404.html").read_text()
    assert 'href="https://board.example.org/law/p/one/style.css"' in unknown
    assert "../" not in unknown.replace("p/one/../../", "")
    assert medassay.verify(site).ok


def test_feeds_parse_as_readers_of_feeds_parse_them(run, board, tmp_path):
    import feedparser

    medassay.publish(run, tmp_path / "site", publication="one")
    feed = feedparser.parse((tmp_path / "site" / "feed.xml").read_bytes())
    assert not feed.bozo
    assert feed.feed.title == "Law & <Medicine>"
    assert feed.entries[0].link == "https://board.example.org/law/p/one/"


def test_without_a_board_file_a_publication_is_what_it_was(run, tmp_path):
    site = tmp_path / "site"
    medassay.publish(run, site, publication="one")
    assert not (site / "feed.xml").exists()
    assert not (site / "404.html").exists()
    assert not (site / "p/one/about").exists()
    assert "medassay</title>" in (site / "p/one/index.html").read_text()
    assert medassay.verify(site).ok


def test_an_address_that_is_no_longer_told_takes_its_files_along(run, board, tmp_path):
    site = tmp_path / "site"
    medassay.publish(run, site, publication="one")
    first = (site / "p/one/index.html").read_bytes()
    board.write_text(BOARD.replace('address = "https://board.example.org/law/"', ""))
    medassay.publish(medassay.rescore(run), site, publication="two")
    assert not (site / "feed.xml").exists()
    assert (site / "p/one/index.html").read_bytes() == first
    assert medassay.verify(site).ok
    board.unlink()
    medassay.publish(medassay.rescore(run), site, publication="three")
    assert "The house of law" in (site / "log/index.html").read_text()  # the last that said so
    assert "The house of law" not in (site / "p/three/index.html").read_text()
    assert medassay.verify(site).ok


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('title = "x"', "has no 'purpose'; expected title, purpose, publisher, contact at least"),
        (f'{BOARD}\n[settings2]\na="b"', "settings2"),
        (BOARD.replace('licence = "CC-BY-4.0"', "licence = 4"), "licence"),
        (BOARD.replace("mark.svg", "../mark.svg"), r"logo '\.\./mark\.svg'; expected the name"),
        (BOARD.replace("mark.svg", "other.svg"), "other.svg: no such file"),
        (BOARD.replace("mark.svg", "mark.png"), "mark.png: is no PNG"),
        (BOARD.replace("https://board.example.org/law/", "javascript:x/"), "expected https://"),
        (BOARD.replace("org/law/", "org/law"), "with / at its end"),
        (BOARD.replace("The house of law", " "), "'publisher' is empty"),
        (BOARD.replace("Write to us.", "x" * 5000), "'dispute' has more than 4,000 characters"),
        (BOARD.replace('"The law"', '"\u200b"'), r"domains\.law is empty"),
        (BOARD.replace("org/law/", "org/the law/"), "holds a blank"),
        (BOARD.replace("The house of law", r"Law\nhouse"), "'publisher' is .* one line"),
        ("title = ", "not readable as TOML"),
    ],
)
def test_a_wrong_board_file_is_told_and_nothing_is_published(run, board, tmp_path, line, message):
    board.write_text(line)
    (tmp_path / "mark.png").write_text("no picture")
    site = tmp_path / "site"
    with pytest.raises(InputError, match=message):
        medassay.publish(run, site, publication="one", about=About(board=board))
    assert not (site / "p" / "one").exists()
    assert not (site / "log.jsonl").exists()
    with pytest.raises(InputError, match=r"nowhere\.toml: no such board file"):
        medassay.publish(run, site, publication="one", about=About(board=tmp_path / "nowhere.toml"))


def test_a_damaged_copy_is_told(run, board, tmp_path):
    site = tmp_path / "site"
    medassay.publish(run, site, publication="one")
    kept = site / "p/one/data/board.json"
    kept.chmod(0o644)
    kept.write_text(kept.read_text().replace("The house of law", "Somebody else"))
    report = medassay.verify(site)
    assert not report.ok
    assert "board.json" in report.first_mismatch or "index.html" in report.first_mismatch


def test_the_publications_of_a_site_say_whether_they_stand(run, board, tmp_path):
    site = tmp_path / "site"
    medassay.publish(run, site, publication="one")
    medassay.publish(medassay.rescore(run), site, publication="two")
    set_status(site, "one", "corrected", reason="A key.", following="two")
    front = (site / "index.html").read_text()
    assert '<a href="status/one/index.html">corrected</a> since' in front
    assert 'read instead <a href="p/two/index.html">two</a>' in front
    assert '<a href="status/two/index.html">current</a></li>' in front


def test_a_publication_says_how_it_is_cited(run, board, tmp_path):
    board.write_text(BOARD.replace("The house of law", "The house of law & {order}"))
    place = medassay.publish(run, tmp_path / "site", publication="one").parent
    root = run.seal.root
    cff = yaml.safe_load((place / "data" / "CITATION.cff").read_text())
    assert cff["authors"] == [{"name": "The house of law & {order}"}]
    assert cff["url"] == "https://board.example.org/law/p/one/"
    assert (cff["license"], cff["version"]) == ("CC-BY-4.0", "one")
    assert cff["identifiers"][0]["value"] == f"sha256:{root}"
    bibtex = (place / "data" / "citation.bib").read_text()
    assert bibtex.startswith("@misc{one,\n")
    assert r"author = {{The house of law \& \{order\}}}," in bibtex
    assert root in bibtex
    datacite = json.loads((place / "data" / "datacite.json").read_text())
    assert datacite["publisher"] == {"name": "The house of law & {order}"}
    page = (place / "data" / "index.html").read_text()
    assert f"publication one of {run.seal.sealed_at[:10]}, data root {root[:16]}" in page
    for name in ("CITATION.cff", "citation.bib", "datacite.json", "board.json"):
        assert f'href="{name}"' in page
    assert medassay.verify(tmp_path / "site").ok
