"""Boards in another language: complete catalogues, sentences by their form, nothing injected."""

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.growth import growth
from tests.packs import unpack

import medassay
from medassay.core.ranks import range_title, ranking_sentence, small_domain_text
from medassay.errors import InputError
from medassay.publishing.disputes import open_dispute
from medassay.publishing.publish import About
from medassay.report.dictionary import COLUMNS
from medassay.report.localize import localized
from medassay.report.pages.data import FILES
from medassay.report.pages.figures import figure_in
from medassay.report.pages.html import asset
from medassay.report.plot.bars import StackedCount, stacked
from medassay.report.plot.matrix import GridCell, score_grid
from medassay.report.plot.trend import _caption
from medassay.report.texts import ENGLISH, SHIPPED, shipped_texts, texts_of

GERMAN = shipped_texts("de")
# Pages of other tools, which are English alone: shortlists, reading sheets, studies, the demo.
ELSEWHERE = {"shortlist.html", "sheet.html", "extraction.html", "demo.html"}


def templates():
    package = Path(str(files("medassay")))
    found = [*(package / "report/pages/templates").glob("*.html"), *package.glob("kinds/*/*.html")]
    return {path: path.read_text() for path in found if path.name not in ELSEWHERE}


def texts_in(source):
    """Return the texts of a template, in their order."""
    texts = []
    localized(source, texts.append)
    return texts


@pytest.mark.parametrize("language", [name for name in SHIPPED if name != "en"])
def test_a_shipped_catalogue_has_every_text_of_boards_and_no_other(language):
    own = shipped_texts(language).catalogue.texts
    needed = {text for source in templates().values() for text in texts_in(source)}
    assert sorted(needed - own.keys()) == []
    assert sorted(own.keys() - needed) == []


@pytest.mark.parametrize("language", [name for name in SHIPPED if name != "en"])
def test_words_in_quotes_nouns_and_scripts_of_a_catalogue_are_used(language):
    catalogue = shipped_texts(language).catalogue
    code = "".join(templates().values())
    for literal in catalogue.literals:
        assert f'"{literal}"' in code, literal
    nouns = set(re.findall(r'counted\((?:[^"{}]|\["\w+"\])*"([^"]+)"', code))
    assert nouns - {"items"} <= catalogue.nouns.keys()  # that is a key of a table
    scripts = (asset("script.js") + asset("cells.js")).decode()
    for words in catalogue.scripts:
        assert json.dumps(words, ensure_ascii=False) in scripts, words


def test_labels_of_the_code_are_translated():
    from medassay.core.ledger import STATES
    from medassay.core.records.dispute import DECISIONS
    from medassay.report.pages.about import _LEGEND
    from medassay.report.pages.model import _FACTS, _SAMPLING
    from medassay.report.row_filters import _LABELS, _SIZES

    words = [*STATES, *DECISIONS, "open", "published", *_LEGEND.values(), *_SIZES.values()]
    words += [*_FACTS.values(), *_SAMPLING.values(), *_LABELS.values()]
    words += [label.lower() for label in _LABELS.values()]
    words += ["answered", "unparsed", "truncated", "refused", "failed"]
    words += [about for about in FILES.values()]
    words += [column.meaning for column in COLUMNS.values()]
    words += [column.kind for column in COLUMNS.values()]
    same = {"Version", "Top p", "Text"}  # in both languages
    assert [word for word in words if GERMAN.said(word) == word and word not in same] == []


# No letter of them stands in a sentence, and what patterns and holes are made of does.
NAMES = st.text("ΑΒΓΔΕΖ{}()[]*+?.|^$ -/", min_size=1, max_size=12).map(str.strip)
NAMES = NAMES.filter(lambda name: re.search("[Α-Ζ]", name))
# Words that only English sentences have.
ENGLISH_WORDS = re.compile(r"\b(shown|better|worse|with|confidence|ranked|model is|items would)\b")


@given(
    st.lists(NAMES, min_size=1, max_size=9, unique=True),
    st.lists(NAMES, max_size=4, unique=True),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["model", "pair of model and setting"]),
)
def test_sentences_are_translated_by_their_form_with_every_name_in_place(
    first, others, graded, told, who
):
    needed = (first[0], first[1], 12_345) if told and len(first) > 1 else None
    sentence = ranking_sentence(first, others, graded=graded, needed=needed, who=who)
    german = GERMAN.said(sentence)
    for name in (*first, *others):
        assert sentence.count(name) == german.count(name)
    assert not ENGLISH_WORDS.search(german), (sentence, german)
    numbers = re.findall(r"\d+", sentence.replace(",", ""))
    assert sorted(re.findall(r"\d+", german.replace(",", "").replace(".", ""))) == sorted(numbers)


@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30))
def test_titles_of_ranges_are_translated(lo, more, below):
    title = range_title(lo, lo + more, lo + more + below).partition(": ")[2]
    assert not ENGLISH_WORDS.search(GERMAN.said(title))
    assert (
        GERMAN.said(small_domain_text("rare", 2, 2, 0.5)) == "rare: 2 Aufgaben, 50,0 % des Mittels"
    )


def test_the_point_of_a_name_is_not_the_point_of_a_number():
    needed = ("gpt-3.5", "m-1,000", 12_345)
    german = GERMAN.said(ranking_sentence(["gpt-3.5", "m-1,000"], [], needed=needed))
    assert german.count("gpt-3.5") == german.count("m-1,000") == 2
    assert "12.300" in german  # rounded
    text = small_domain_text("v1.5", 2000, 1000, 0.025)
    assert GERMAN.said(text) == "v1.5: 2000 Aufgaben in 1000 Gruppen, 2,5 % des Mittels"


def test_reasons_are_translated_one_by_one_and_a_name_with_a_semicolon_stays_whole():
    why = "1 item corrected; 1 new row in this ranking"
    assert GERMAN.said(why) == "1 Aufgabe berichtigt; 1 neue Zeile in dieser Rangliste"
    assert GERMAN.said("methodology a → b; question bank c → d").startswith("Verfahren a → b; Frag")
    assert GERMAN.said("a; b better") == "a; b besser"
    assert GERMAN.said("Distribution of a score of mine") == "Verteilung: a score of mine"
    assert GERMAN.grouped("6,049 of 121,016") == "6049 of 121.016"


def test_a_hostile_reason_takes_time_that_grows_with_its_length():
    assert GERMAN.reason("wrong") == "falsch"
    assert GERMAN.reason("judge failed: a; b") == "Bewerter fehlgeschlagen: a; b"
    assert GERMAN.reason("3 of 1000 missing") == "3 von 1000 fehlen"
    assert ENGLISH.reason("wrong") == "wrong"
    for piece in ("x against ", "judge failed: ", "1 of ", " of 1 missing"):
        assert growth(GERMAN.reason, piece, 500) < 24  # linear: 8


def test_names_are_not_translated_though_they_are_words_of_ours():
    sentence = ranking_sentence(["open", "model"], ["text"])
    assert "open oder model" in GERMAN.said(sentence)


@pytest.mark.parametrize(
    "source",
    [
        "<p>Mean of {{ n }} domains{% if x %}, {{ y }} alike{% endif %}.</p>",
        '<td data-label="Score" title="{{ a }} of {{ b }}">{{ c|units(d["a > b"]) }}</td>',
        "<pre>Mean of {{ n }}</pre><code>medassay verify</code><script>var Mean = 1;</script>",
        "{# Mean of #}{% set x = {'a': \"Ranking\"} %}<p>{{ x if \"Ranking\" else '<b>' }} ranks</p>",
        "a < b & c > d {{ e }} {not jinja}",
    ],
)
def test_a_template_whose_texts_are_exchanged_for_themselves_stays_as_it_is(source):
    assert localized(source, lambda text: text) == source
    assert localized(source, lambda _: None) == source


def test_all_templates_stay_as_they_are_in_their_own_words_and_parse_in_german():
    german = GERMAN.catalogue
    for path, source in templates().items():
        assert localized(source, lambda text: text) == source, path
        jinja2.Environment().parse(localized(source, german.texts.get, german.literals.get))


@pytest.mark.parametrize(
    ("catalogue", "text"),
    [
        ({"texts": {"Rank": "<script>"}}, "expected words alone"),
        ({"texts": {"Rank": "{{ board.manifest }}"}}, "other marks than it|expected words alone"),
        ({"texts": {"Rank": "{% include 'x' %}"}}, "other marks than it"),
        ({"texts": {"Rank": '" onclick='}}, "expected words alone"),
        ({"texts": {"{0} of {1}": "{0} {2}"}}, "other marks than it"),
        ({"literals": {"Ranking": 'x") }} {{ ("'}}, "other marks|expected words alone"),
        ({"literals": {"Ranking": "a\\"}}, "expected words alone"),
        ({"literals": {"current": "retracted"}}, "'current' is none of ours"),
        ({"literals": {"base.html": "x"}}, "is none of ours"),
        ({"scripts": {"use strict": "x"}}, "is none of ours"),
        ({"scripts": {"Reply": '");alert("'}}, "expected words alone"),
        ({"phrases": {"{a}{b0}{b1}ZZZ": "{a}{b0}{b1}"}}, "is none of ours"),
        ({"phrases": {"{said_a}": "{said_a}"}}, "is none of ours"),
        ({"phrases": {"open": "  "}}, "is empty"),
        ({"texts": {"{0} of {1}": "{0}"}}, "other marks than it"),
        ({"texts": {"{0} of {1}": "{0} {0} {1}"}}, "other marks than it"),
        ({"texts": {"{0} of {1}": "{0} 99 {1}"}}, "other numbers than it"),
        ({"texts": {"At most": "\ud800"}}, "expected words alone"),
        ({"nouns": {"item": ["9 models", "x"]}}, "other numbers than it"),
        ({"decimal": "9"}, "expected one of"),
        ({"decimal": ""}, "expected one of"),
        ({"thousands": "\\1"}, "another mark than for decimals"),
        ({"decimal": ",", "thousands": ","}, "another mark than for decimals"),
        ({"day": "{day}.{month}"}, "each once"),
        ({"day": "{day:>999999999}{month}{year}"}, "each once"),
        ({"day": "{year}{month}{day}7"}, "each once"),
        ({"phrases": {"{x} better": "{x.__class__}"}}, "other marks|expected words alone"),
        ({"phrases": {"open": "a\u202eb"}}, "expected words alone"),
        ({"language": "../de"}, "expected one as 'de'"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"nouns": {"item": ["one"]}}, "Expected `array` of length 2"),
    ],
)
def test_a_hostile_or_wrong_catalogue_is_refused_by_name(catalogue, text):
    with pytest.raises(InputError, match=text):
        texts_of({"language": "xx", "name": "X", **catalogue}, "xx.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("german")
    made = makers.many_items(24)
    for n, item in enumerate(made):
        item |= {"category": ["drugs", "signs"][n % 2], "harm": n == 3}
    made[0]["question"] = "What is the score of the ranking of models and domains?"
    right = {item["id"]: item["expected"] for item in made}
    most = {name: key if n % 5 else "A" for n, (name, key) in enumerate(right.items())}
    plan = makers.workspace(
        folder / "w",
        made,
        *(makers.fake(name, replies=replies) for name, replies in (("m", right), ("n", most))),
        demonstration=True,
    )
    run = medassay.run(plan, secrets={})
    for name in ("one", "two"):
        medassay.publish(run, folder / "de", publication=name, about=About(language="de"))
        medassay.publish(run, folder / "en", publication=name)
    open_dispute(folder / "de", "two", "Der Schlüssel ist falsch.")
    return folder


# Words that German has not, where they are no names of files.
ENGLISH_ON_PAGES = re.compile(
    r"\b(the|with|which|shown|answers|interval|models|of|and|from|items|scores?|ranking"
    r"|wrong|cases?|difference|publications?|pairs?)\b(?!\.(?:csv|json|parquet))"
)


def words_of(page):
    """Return the words of a page that are ours: without what models, items and publishers say."""
    words = re.sub(r"<(pre|code|script|style|bdi)\b.*?</\1>", " ", page, flags=re.S)
    words = re.sub(r'<(\w+)\b[^>]* (?:dir="auto"|lang="en")[^>]*>.*?</\1>', " ", words, flags=re.S)
    # Names of cases, of fields of records, of answers that a graph of judges knows.
    words = re.sub(r"case-\d+|date and source|>(right|wrong)<", " ", words)
    return re.sub(r"<[^>]+>", " ", words)


def assert_german(site):
    """Assert that no page and no figure of a site has a word of English."""
    for path in site.rglob("*.html"):
        page = path.read_text()
        assert '<html lang="de">' in page, path
        words = words_of(page)
        english = {word[0] for word in ENGLISH_ON_PAGES.finditer(words)}
        assert not english, (path, english, words[words.find(min(english)) - 80 :][:200])
    for path in site.rglob("figure/*.svg"):
        texts = re.findall(r"<(?:text|title|desc)[^>]*>([^<]*)<", path.read_text())
        words = " ".join(texts).replace("date and source", "")
        assert words
        assert not ENGLISH_ON_PAGES.search(words), (path, words)


def test_a_german_board_is_german_on_every_page_and_verifies(folder):
    assert_german(folder / "de")
    assert medassay.verify(folder / "de").ok


@pytest.mark.parametrize("name", ["diagnoses", "records", "tools"])
def test_pages_and_figures_of_every_kind_are_german(name, tmp_path):
    unpack(name, tmp_path)
    runs = [seal.parent for seal in tmp_path.glob("*/seal.json")]
    assert runs
    for run in runs:
        site = tmp_path / f"site-{run.name}"
        medassay.publish(run, site, publication="eins", about=About(language="de"))
        for cell in site.glob("p/eins/c*/"):  # names of items are words of English there
            shutil.rmtree(cell)
        assert_german(site)


def test_a_figure_in_another_language_has_its_words_and_numbers_and_keeps_names():
    counts = [
        StackedCount(place=str(year), part=f"part {part}", n=1_100 + part)
        for year in (2020, 2021)
        for part in range(10)
    ]
    english = stacked(counts, over="year", by="category")
    german = figure_in(GERMAN, english)
    assert figure_in(ENGLISH, english) is english
    assert german.caption == "22.090 Aufgaben. Die 7 größten von 10 sind unterschieden."
    drawing = german.svg()
    for words in (
        "Aufgaben nach Kategorie und Jahr",
        ">Jahr<",
        ">3 andere<",
        ">part 9<",
        ">2.000<",
    ):
        assert words in drawing
    cells = [
        GridCell(row="one", column="3.5", value=0.25),
        GridCell(row="3.5", column="b", value=1),
    ]
    grid = figure_in(GERMAN, score_grid(cells, unit="JSON similarity"))
    assert [(row["row"], row["column"], row["shown"]) for row in grid.rows] == [
        ("one", "3.5", "0,25"),
        ("3.5", "b", "1,00"),
    ]
    assert grid.caption == "Am niedrigsten: 3.5 von one, 0,25."


@given(st.integers(1, 9), st.integers(0, 3), st.integers(0, 60), NAMES)
def test_captions_of_trends_are_translated_by_their_form(n, changes, left_out, name):
    rows = [f"{name} {number}" for number in range(left_out)]
    german = GERMAN.said(_caption(n, changes, rows))
    assert not re.search(r"\b(publication|changed|and|times|once|more|Drawn)\b", german)
    assert all(row in german for row in rows[:12])


def test_numbers_for_people_have_commas_and_numbers_for_software_points(folder):
    page = (folder / "de/p/two/index.html").read_text()
    assert re.search(r"\d,\d <span class=\"interval\">\[\d+,\d; \d+,\d\]", page)
    assert re.search(r'data-score="0\.\d+" data-lo="0\.\d+"', page)
    assert re.search(r'<time datetime="2\d{3}-\d\d-\d\d">\d\d\.\d\d\.2\d{3}</time>', page)
    english = (folder / "en/p/two/data/leaderboard.csv").read_bytes()
    assert (folder / "de/p/two/data/leaderboard.csv").read_bytes() == english


def test_texts_of_items_stay_as_they_are(folder):
    page = next((folder / "de/p/two/cell").rglob("index.html")).read_text()
    assert "What is the score of the ranking of models and domains?" in page


def test_english_is_kept_by_no_file(folder):
    assert not (folder / "en/p/one/data/language.json").exists()
    kept = json.loads((folder / "de/p/one/data/language.json").read_text())
    assert kept == {"language": "de", "schema_version": 1}


def test_somebodys_own_catalogue_is_used_and_kept(folder, tmp_path):
    own = {
        "language": "fr",
        "name": "Français",
        "decimal": ",",
        "thousands": " ",
        "texts": {"Models and domains": "Modèles et domaines", "Rank": "Rang", "Data": "Données"},
    }
    (tmp_path / "fr.json").write_text(json.dumps(own))
    run = folder / "en/p/one/data/run"
    about = About(language=str(tmp_path / "fr.json"))
    medassay.publish(run, tmp_path / "site", publication="one", about=about)
    page = (tmp_path / "site/p/one/index.html").read_text()
    assert '<html lang="fr">' in page
    assert ">Données</a>" in page
    assert "Is this the current publication?" in page  # what it lacks stays English
    (tmp_path / "fr.json").unlink()
    assert medassay.verify(tmp_path / "site").ok


@pytest.mark.parametrize(
    ("language", "text"),
    [("xx", "expected en, de, or a catalogue"), ("no/such.json", "no/such.json")],
)
def test_an_unknown_language_is_refused_before_anything_is_written(
    folder, tmp_path, language, text
):
    run = folder / "en/p/one/data/run"
    with pytest.raises(InputError, match=text):
        medassay.publish(run, tmp_path / "site", about=About(language=language))
    assert not (tmp_path / "site").exists()


def test_english_words_are_the_templates_own():
    assert ENGLISH.said("open") == "open"
    assert "Rank" not in ENGLISH.catalogue.texts
