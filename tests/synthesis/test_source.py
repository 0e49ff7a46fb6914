"""Documents: their text cleaned, in reading order, nothing added.

A real PDF to text and, by a vision model, to a graph.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.core.records.model import Sampling
from medassay.core.records.prompt import Prompt, message_text, pictures_in
from medassay.errors import InputError
from medassay.model.fake import Fake
from medassay.synthesis.items import present_items
from medassay.synthesis.page_order import Page, Piece, reading_order
from medassay.synthesis.project import read_workshop
from medassay.synthesis.source import clean_text, read_source, share_from, source_files
from medassay.synthesis.synthesize import synthesize


@given(st.text())
def test_cleaning_is_done_once_and_for_all(text):
    once = clean_text(text)
    assert clean_text(once) == once
    assert share_from(once, text) > 0.9 or len(once.split()) < 20


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("hypo-\nnatraemia", "hyponatraemia"),
        ("hypo\u2010\nnatraemia", "hyponatraemia"),
        ("hypo\u00ad\nnatraemia and so\u00addium", "hyponatraemia and sodium"),
        ("beta-\nblocker, a beta-blocker", "beta-blocker, a beta-blocker"),
        ("T-\nWave", "T-Wave"),
        ("a  b\t c \n\n\n\n d", "a b c\n\nd"),
        ("e\u0301", "\u00e9"),
        ("x\x00\u202ey", "xy"),
    ],
)
def test_broken_words_are_joined_and_blanks_collapse(text, clean):
    assert clean_text(text) == clean


def test_words_that_are_not_in_the_source_are_counted():
    source = "Sodium is low. Saline is given."
    assert share_from("Sodium is low.", source) == 1
    assert share_from("Sodium is low today.", source) == 0.75
    assert share_from("low low", source) == 0.5
    assert share_from("", source) == 1


def column(left, top, lines, width=30):
    return [
        Piece(left, top + 12 * n, left + 5 * len(line), top + 12 * n + 11, line)
        for n, line in enumerate(lines)
    ]


def test_columns_are_read_one_after_the_other_and_tables_by_row():
    left = [f"left column, its line number {n}" for n in range(8)]
    right = [f"right column, line number {n} of it" for n in range(8)]
    head = [Piece(40, 20, 310, 31, "A title across the whole page of two columns")]
    table = [
        Piece(40 + 100 * c, 200 + 20 * r, 90 + 100 * c, 211 + 20 * r, f"cell {r}{c}")
        for r in range(3)
        for c in range(3)
    ]
    pieces = [*head, *column(40, 50, left), *column(300, 50, right), *table]
    expected = [
        head[0].text,
        *left,
        *right,
        *(f"cell {r}0  cell {r}1  cell {r}2" for r in range(3)),
    ]
    assert reading_order([Page(pieces)]) == [expected]


def test_headers_footers_and_page_numbers_are_left_out():
    pages = []
    for n in range(3):
        body = [f"a line of page {'abc'[n]} number {'xyzuvwst'[m]}" for m in range(8)]
        pages.append(
            [
                *column(40, 10, ["Journal of salt"]),
                *column(40, 60, body),
                *column(40, 300, [f"Page {n + 1} of 3"]),
            ]
        )
    text = "\n".join(line for page in reading_order([Page(one) for one in pages]) for line in page)
    assert "Journal" not in text
    assert "Page" not in text
    assert len(text.splitlines()) == 24


def test_markdown_and_html_lose_their_marks_not_their_words(tmp_path):
    (tmp_path / "salt.md").write_text(
        "---\ntitle: x\n---\n# Salt\n\nSodium *below* [135](http://x).\n\n| a | b |\n|---|---|\n| 1"
        " | 2 |\n"
    )
    assert read_source(tmp_path / "salt.md", tmp_path).text == "Sodium below 135."
    page = (
        "<html><body><nav>Menu</nav><article><h1>Salt</h1><p>Sodium below 135 is low. It is"
        " measured in plasma, and told in mmol per"
        " litre.</p></article><script>x()</script></body></html>"
    )
    (tmp_path / "page.html").write_text(page)
    found = read_source(tmp_path / "page.html", tmp_path)
    assert "Sodium below 135 is low." in found.text
    assert "x()" not in found.text
    assert not found.plain


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.txt", b"\xff\xfe\xff", "not UTF-8"),
        ("a.txt", b"  \n ", "holds no text"),
        ("a.pdf", b"no pdf at all", "not readable as PDF"),
        (
            "a.pdf",
            b"%PDF-1.7\n1 0 obj <</Type/Catalog>> endobj\ntrailer<</Root 1 0 R>>",
            "a.pdf",
        ),
        ("a.docx", b"x", "unknown ending"),
    ],
)
def test_what_cannot_be_read_is_refused(name, data, says, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=says):
        read_source(tmp_path / name, tmp_path / "pictures")


def test_two_documents_of_one_name_are_refused(tmp_path):
    for name in ("salt.md", "salt.txt"):
        (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match="the same name"):
        source_files(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        source_files(tmp_path / "none")


PAGE = """<!doctype html><html lang=en><style>@page{size:A4;margin:18mm 15mm}body{font:10.5pt/1.35 serif}
.c{column-count:2;column-gap:9mm;text-align:justify}table{border-collapse:collapse;width:100%;margin:6mm 0}
td,th{border:1px solid;padding:2mm 3mm}p{margin:0 0 2mm}</style><h1>Salt</h1><p>A. Author, B. Writer</p><div class=c>
<p>A sodium below 135 mmol per litre is hypo&shy;natrae&shy;mia; below 125 it is pro&shy;found. Symp&shy;toms and speed decide how
urgent it is, not the num&shy;ber alone. Seizures, coma or vomiting with drow&shy;si&shy;ness are severe symp&shy;toms. Then saline is
given whatever the cause, and re&shy;peat&shy;ed until the sodium has risen by five. The rise must not ex&shy;ceed ten in the first day
and eight in each fol&shy;low&shy;ing day, since a faster one dam&shy;ages the pons.</p><p>With&shy;out severe symp&shy;toms the cause is
sought first. Plas&shy;ma osmo&shy;lal&shy;ity is meas&shy;ured. When it is nor&shy;mal or high, glucose, lipids or pro&shy;tein explain
the low value. When it is low, the osmo&shy;lal&shy;ity of the urine is next. Below 100 too much water is drunk, as in primary
poly&shy;dip&shy;sia, and restric&shy;tion of fluid is enough, as a well-known rule says; it is so
well-known that all know it.</p></div>
<table><tr><th>Urine sodium<th>Volume<th>Treatment<tr><td>30 or less<td>low<td>isotonic saline<tr><td>above 30<td>normal<td>restriction
of fluid</table><svg width=500 height=140 font-size=11><g fill=none stroke=#000><rect x=5 y=50 width=130 height=30 /><rect x=200 y=10
width=140 height=30 /><rect x=200 y=95 width=140 height=30 /><path d="M135 65L200 25M135 65L200 110"/></g><text x=12 y=70>Severe
symptoms?</text><text x=210 y=30>Saline of 3 percent</text><text x=210 y=115>Seek the cause</text></svg></html>"""
GRAPH = {
    "node": "Salt",
    "content": "",
    "children": [
        {
            "node": "Severe symptoms?",
            "content": "seizures, coma",
            "children": [
                {"node": "Saline of 3 percent", "content": ""},
                {"node": "Seek the cause", "content": ""},
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def pdf(tmp_path_factory, browser):
    """Print a page with two columns, broken words, a table and a drawing, by a real browser."""
    path = tmp_path_factory.mktemp("pdf") / "salt.pdf"
    page = browser.new_page()
    page.set_content(PAGE)
    page.pdf(path=path, prefer_css_page_size=True)
    return path


@pytest.mark.browser
def test_a_real_pdf_is_read_in_order_with_whole_words(pdf, tmp_path):
    source = read_source(pdf, tmp_path / "pictures")
    text = " ".join(source.text.split())
    for part in (
        "A sodium below 135 mmol per litre is hyponatraemia; below 125 it is profound.",
        "The rise must not exceed ten in the first day and eight in each following day",
        "damages the pons. Without severe symptoms the cause is sought first.",
        (
            "as in primary polydipsia, and restriction of fluid is enough, as a well-known rule"
            " says; it is so well-known that all know it."
        ),
        (
            "Urine sodium Volume Treatment 30 or less low isotonic saline above 30 normal"
            " restriction of fluid"
        ),
        "Saline of 3 percent",
    ):
        assert part in text
    assert len(source.made) == 10
    [picture] = source.pictures
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.browser
def test_a_real_pdf_becomes_items_by_a_model_that_sees(pdf, tmp_path, monkeypatch):
    from tests.synthesis.shops import question

    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/salt.pdf").write_bytes(pdf.read_bytes())
    text = (
        "Seizures, coma or vomiting with drowsiness are severe symptoms. Then saline is given"
        " whatever the cause."
    )
    bad = {**GRAPH, "children": [{"node": "Salt", "content": ""}]}
    script = {
        "replies": {
            "make_text/salt": ["Sodium is a metal that cats like very much indeed.", text],
            "make_graph/salt": [
                json.dumps(bad),
                f"Here it is:\n```json\n{json.dumps(GRAPH)}\n```",
            ],
        },
        "reply": json.dumps(question(1)),
    }
    makers.write_models(
        tmp_path,
        {
            **makers.fake("eyes"),
            "family": "one",
            "script": script,
            "capabilities": ["chat", "vision"],
        },
    )
    (tmp_path / "plan.toml").write_text(
        'name = "salt"\ngenerator = "eyes"\n[pathways]\nsources = "texts"\nrefine = false\n'
    )
    seen = []
    complete = Fake.complete

    async def watched(self, prompt: Prompt, sampling: Sampling, *, repeat: int):
        seen.append(
            (
                prompt.template.partition("@")[0],
                len(pictures_in(prompt.messages[0])),
                message_text(prompt.messages[0]),
            )
        )
        return await complete(self, prompt, sampling, repeat=repeat)

    monkeypatch.setattr(Fake, "complete", watched)
    made = synthesize(tmp_path / "plan.toml", tmp_path / "shop", secrets={}, workspace=tmp_path)
    shop = read_workshop(tmp_path / "shop")
    assert (made.items, made.queue) == (4, [])
    assert shop.latest("graph", "salt").result == GRAPH
    assert shop.latest("text", "salt").result == text
    problems = [
        call.get("problem")
        for step in ("text", "graph")
        for call in shop.latest(step, "salt").record["calls"]
    ]
    assert "of the words stand in the document" in problems[0]
    assert "repeated on its own path" in problems[2]
    assert problems[1] is problems[3] is None
    assert [n for what, n, _ in seen if what in ("make_text", "make_graph")] == [1] * 4
    assert [n for what, n, _ in seen if what == "make_question"] == [0] * 2
    asked = next(said for what, _, said in seen if what == "make_question")
    assert text in asked
    assert (tmp_path / "shop/graphs/salt.svg").is_file()
    history = shop.history(present_items(shop)[0].place[1])
    assert history[0].place == ("source", "salt")
    assert history[0].result["pages"] == ["sources/salt/page-001.png"]
