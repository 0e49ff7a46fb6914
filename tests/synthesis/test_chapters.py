"""Long documents are cut at their headings: nothing is lost, each chapter with its pages, and only
what is asked for is made.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.synthesis.documents import make
from tests.synthesis.shops import question, replies, write_shop

from medassay.synthesis import paths
from medassay.synthesis.chapters import chapters
from medassay.synthesis.headings import (
    Chapter,
    Heading,
    headings_of_text,
    parts_of,
    places_in_lines,
    places_on_pages,
)
from medassay.synthesis.pathway import subject_of
from medassay.synthesis.source import SourceDocument, clean_text, read_source

FILLER = "The sodium is measured again after six hours, and told to the ward.\n\n"


def source_of(parts, name="book"):
    text = clean_text("\n\n".join(part.text for part in parts))
    return SourceDocument(
        name=name, file=f"{name}.md", sha256="0" * 64, text=text, plain=True, parts=tuple(parts)
    )


@st.composite
def documents(draw):
    """Draw parts whose texts hold words that occur nowhere else."""
    levels = draw(st.lists(st.integers(1, 4), max_size=12))
    sizes = draw(st.lists(st.integers(0, 40), min_size=13, max_size=13))
    number, found = 0, []
    for at, level in enumerate([0, *levels]):
        words = [f"w{number + n}" for n in range(sizes[at])]
        number += sizes[at]
        if level or words:
            found.append(Chapter(level, f"Title {at}" if level else "", " ".join(words)))
    return found


@given(documents(), st.integers(1, 400))
def test_chapters_hold_every_word_once_and_in_order(parts, longest):
    whole = source_of(parts)
    found = chapters(whole, longest)
    assert " ".join(one.text for one in found).split() == whole.text.split()
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    if len(whole.text) <= longest:
        assert found == [whole]
    for one in found:
        if len(one.text) > longest and one.chapter:  # only where no heading stands within
            assert not [p for p in one.parts[1:] if p.level]


def test_a_book_is_cut_at_chapters_and_a_long_chapter_at_its_sections():
    parts = [
        Chapter(0, "", "Preface."),
        Chapter(1, "Gout", "a " * 50),
        Chapter(2, "Signs", "b " * 20),
        Chapter(1, "Fever", "c " * 100),
        Chapter(2, "Signs", "d " * 100),
        Chapter(2, "Treatment", "e " * 100),
    ]
    found = chapters(source_of(parts), 250)
    assert [(one.name, one.chapter) for one in found] == [
        ("book-00-front-matter", ""),
        ("book-01-gout", "Gout"),
        ("book-02-fever", "Fever"),
        ("book-03-fever-signs", "Fever, Signs"),
        ("book-04-fever-treatment", "Fever, Treatment"),
    ]


def test_one_title_above_all_is_no_chapter():
    parts = [
        Chapter(1, "Textbook", ""),
        Chapter(2, "Gout", "a " * 90),
        Chapter(2, "Fever", "b " * 90),
    ]
    assert [one.chapter for one in chapters(source_of(parts), 200)] == ["Gout", "Fever"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Chapter 1 Salt\n\ntext\n\nChapter 2\n\ntext", ["Chapter 1 Salt", "Chapter 2"]),
        ("Kapitel 3: Gicht\n\ntext", ["Kapitel 3: Gicht"]),
        (f"1. Salt\n\n{'a ' * 900}\n\n2. Water\n\n{'b ' * 900}", ["1. Salt", "2. Water"]),
        ("1. Rest.\n\n2. Drink.\n\n3. Sleep well\n\nso", []),
        ("Chapter I of the treatment is given in hospital.\n\ntext", []),
        ("text\n\n2019 was warm\n\ntext", []),
        ("1. one\n2. two\n3. three", []),
    ],
)
def test_headings_of_plain_text(text, titles):
    assert [one.title for *_, one in headings_of_text(text.split("\n"))] == titles


def test_pages_are_kept_and_a_heading_is_found_on_its_page():
    pages = [["Textbook", "Preface."], ["1 Gout", "a"], ["b", "2 Fever", "c"], ["d"]]
    headings = [Heading(level=1, title=t, page=p) for t, p in (("Gout", 2), ("Fever", 3))]
    places = places_on_pages(pages, headings[::-1])  # an outline may be out of order
    found = [(part.title, part.text, part.pages) for part in parts_of(pages, places)]
    assert found == [
        ("", "Textbook\nPreface.", (1, 1)),
        ("Gout", "1 Gout\na\nb", (2, 3)),
        ("Fever", "2 Fever\nc\nd", (3, 4)),
    ]


def test_a_heading_that_no_line_holds_begins_with_its_page():
    pages = [["a"], ["b"]]
    places = places_on_pages(pages, [Heading(level=1, title="A picture", page=2)])
    [front, part] = parts_of(pages, places)
    assert (front.text, part.text, part.pages) == ("a", "b", (2, 2))


def long_markdown():
    gout = "# Gout\n\n" + FILLER * 900
    return f"A preface.\n\n{gout}# Fever\n\n{FILLER * 900}"


def test_a_long_document_becomes_a_source_for_each_chapter(tmp_path):
    (tmp_path / "book.md").write_text(long_markdown())
    source = read_source(tmp_path / "book.md", tmp_path)
    assert len(source.text) > 100_000
    front, gout, fever = chapters(source, 100_000)
    assert (front.chapter, gout.chapter, fever.chapter) == ("", "Gout", "Fever")
    assert gout.cited.startswith('book.md, "Gout" (sha256 ')


def test_html_keeps_its_headings_and_is_read_to_its_end(tmp_path):
    pytest.importorskip("trafilatura")
    first, second = (
        "".join(f"<p>{n} {name}: {FILLER * 3}</p>" for n in range(300)) for name in "ab"
    )
    end = "<p>The very end is told here, after all the rest of it.</p>"
    page = f"<html><body><article><h1>Gout</h1>{first}<h1>Fever</h1>{second}{end}</article></body></html>"
    (tmp_path / "book.html").write_text(page)
    source = read_source(tmp_path / "book.html", tmp_path)
    assert len(source.text) > 100_000
    assert "The very end is told here" in source.text
    assert [one.chapter for one in chapters(source, 100_000)] == ["Gout", "Fever"]


def write_book(folder):
    """Write a shop with a book of two chapters in place of its two texts.

    Return the names of the chapters.
    """
    told = replies()
    names = {"fever": "book-01-fever", "low-salt": "book-02-low-salt"}
    write_shop(folder)
    for old, name in names.items():
        tree = json.loads((folder / "graphs" / f"{old}.json").read_text())
        for at, way in enumerate(paths(tree)):
            subject = subject_of(name, way)
            told[f"make_path/{subject}"] = way.full_text
            told[f"make_question/{subject}"] = json.dumps(question(10 * len(name) + at))
        (folder / "graphs" / f"{old}.json").rename(folder / "graphs" / f"{name}.json")
        (folder / "texts" / f"{old}.txt").unlink()
    write_shop_models(folder, told)
    text = f"A preface.\n\n# Fever\n\n{FILLER * 900}# Low salt\n\n{FILLER * 900}"
    (folder / "texts" / "book.md").write_text(text)
    return list(names.values())


def write_shop_models(folder, told):
    document = json.loads((folder / "models.json").read_text())
    [writer] = [one for one in document["models"] if one["id"] == "writer"]
    writer["script"]["replies"] = told
    (folder / "models.json").write_text(json.dumps(document))


def test_items_are_made_of_each_chapter_and_name_it(tmp_path):
    names = write_book(tmp_path)
    made = make(tmp_path)
    assert (made.items, made.queue) == (8, [])
    assert made.dropped == {"before the first chapter": 1}
    lines = [
        json.loads(line)["record"]
        for line in (tmp_path / "shop" / "journal.jsonl").read_text().splitlines()
    ]
    items = [one["result"] for one in lines if one["step"] == "item"]
    assert {item["condition"] for item in items} == {"Fever", "Low salt"}
    assert {item["source"].partition(" (")[0] for item in items} == {
        'book.md, "Fever"',
        'book.md, "Low salt"',
    }
    assert {one["subject"] for one in lines if one["step"] == "source"} == {
        *names,
        "book-00-front-matter",
    }
    assert make(tmp_path).calls == 0


def test_a_chapter_that_nothing_parts_waits_and_the_others_are_made(tmp_path):
    write_book(tmp_path)
    book = tmp_path / "texts" / "book.md"
    book.write_text(book.read_text() + "# Gout\n\n" + FILLER * 2000)
    made = make(tmp_path)
    assert made.items == 8
    [waits] = made.queue
    assert (waits["step"], waits["subject"]) == ("source", "book-03-gout")
    assert "chapter 'Gout'" in waits["why"]
    assert "no headings to part it at" in waits["why"]


PAGES = """<html><style>@page{size:A5;margin:12mm}h1{break-before:page;font-size:22pt}body{font:11pt serif}</style>
<p>A preface of some words.</p><h1>Gout</h1>%s<h1>Fever</h1>%s</html>"""


@pytest.mark.browser
def test_chapters_of_a_real_pdf_have_their_pages(tmp_path, browser):
    path = tmp_path / "book.pdf"
    told = [
        "".join(f"<p>After {n} weeks {what} is measured again.</p>" for n in range(45))
        for what in ("it", "all")
    ]
    page = browser.new_page()
    page.set_content(PAGES % tuple(told))
    for outline in (True, False):
        page.pdf(path=path, prefer_css_page_size=True, outline=outline, tagged=outline)
        source = read_source(path, tmp_path / "pictures")
        front, gout, fever = chapters(source, 1000)
        assert (front.chapter, gout.chapter, fever.chapter) == ("", "Gout", "Fever")
        assert front.pages == (1, 1)
        assert gout.pages[0] == 2
        assert fever.pages[0] == gout.pages[1] + 1
        assert fever.pages[1] == len(source.pictures)
        assert len(fever.pictures) == fever.pages[1] - fever.pages[0] + 1
        assert f"pages 2 to {gout.pages[1]}" in gout.cited


def test_a_table_of_contents_and_repeated_titles_do_not_mislead():
    lines = ["Gout", "Fever", "x", "Gout", "a", "Case", "b", "Fever", "c", "Case", "d"]
    titles = ["Fever", "Gout", "Case", "Fever", "Case"]  # the first stands in a menu alone
    headings = [Heading(level=1, title=title) for title in titles]
    places = places_in_lines(lines, headings)
    assert [(line, one.title) for _, line, one in places][-4:] == [
        (3, "Gout"),
        (5, "Case"),
        (7, "Fever"),
        (9, "Case"),
    ]
    text = f"1. Gout\n\n2. Fever\n\n1. Gout\n\n{'a ' * 2000}\n\n2. Fever\n\n{'b ' * 2000}"
    plain = text.split("\n")
    found = parts_of([plain], headings_of_text(plain))
    assert [(part.title, len(part.text) > 100) for part in found] == [
        ("", False),
        ("1. Gout", True),
        ("2. Fever", True),
    ]


def read_markdown(tmp_path, text):
    (tmp_path / "book.md").write_text(text)
    return chapters(read_source(tmp_path / "book.md", tmp_path), 100_000)


def test_references_end_with_the_chapter(tmp_path):
    chapter = f"{FILLER * 900}## References\n\n1. Somebody said so.\n\n"
    found = read_markdown(
        tmp_path, f"# Gout\n\n{chapter}# Fever\n\n{chapter}# References\n\n2. Nobody."
    )
    assert [one.chapter for one in found] == ["Gout", "Fever"]
    assert not any("Somebody" in one.text or "Nobody" in one.text for one in found)


def test_what_only_one_title_heads_is_no_front_matter(tmp_path):
    [whole] = read_markdown(tmp_path, "# Gout\n\n" + FILLER * 2000)
    assert (whole.name, whole.chapter, whole.document) == ("book", "", "")


@pytest.mark.parametrize("title", ["", "![x](y.png)", "a" * 500])
def test_a_heading_without_a_title_is_none(tmp_path, title):
    text = f"# Gout\n\n{FILLER * 900}# {title}\n\n{FILLER * 100}# Fever\n\n{FILLER * 900}"
    assert [one.chapter for one in read_markdown(tmp_path, text)] == ["Gout", "Fever"]


def test_titles_are_cleaned_and_names_are_as_short_as_files_need_them(tmp_path):
    text = f"# Herz\u00adinsuffizienz\n\n{FILLER * 900}# {'é' * 99}\n\n{FILLER * 900}"
    first, second = read_markdown(tmp_path, text)
    assert first.chapter == "Herzinsuffizienz"
    assert len(f"{second.name}.json".encode()) < 255
    long = tmp_path / f"{'x' * 240}.md"
    long.write_text(text)
    made = chapters(read_source(long, tmp_path), 100_000)
    assert all(len(f"{one.name}.json".encode()) < 255 for one in made)


def test_a_long_front_waits_and_another_document_of_a_chapter_s_name_stays(tmp_path):
    names = write_book(tmp_path)
    book = tmp_path / "texts" / "book.md"
    (tmp_path / "texts" / f"{names[0]}.md").write_text("About fever.")
    made = make(tmp_path)
    subjects = {
        json.loads(line)["record"]["subject"]
        for line in (tmp_path / "shop" / "journal.jsonl").read_text().splitlines()
        if '"step":"source"' in line
    }
    assert {names[0], f"{names[0]}-chapter"} <= subjects
    before = (tmp_path / "shop" / "journal.jsonl").read_bytes()
    make(tmp_path)
    assert (tmp_path / "shop" / "journal.jsonl").read_bytes() == before
    book.write_text(FILLER * 900 + book.read_text())
    assert any("before the first chapter" in one["why"] for one in make(tmp_path).queue)
    assert made.items


def test_many_headings_take_no_long_time():
    lines = [f"line {n} of some words" for n in range(40_000)]
    lines[::20] = [f"{n}. Heading {n}" for n in range(2000)]
    headings = [Heading(level=1, title=f"Heading {n}") for n in range(2000)]
    assert len(parts_of([lines], places_in_lines(lines, headings))) == 2000
