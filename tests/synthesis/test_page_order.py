"""Printed guidelines, by two generators: every sentence comes out whole, and in the order in which
people read them.
"""

import pytest
from tests.synthesis import printed

from medassay.synthesis.page_order import Page, PageBox, Piece, reading_order
from medassay.synthesis.source import read_source


def misread(text, expected):
    """Return the sentences that are torn, or that stand before one that comes earlier."""
    at, wrong = 0, []
    for sentence in expected:
        found = text.find(sentence, at)
        if found < 0:
            wrong.append(f"{'swapped' if sentence in text else 'torn'}: {sentence}")
        else:
            at = found + len(sentence)
    return wrong


def words_of(path, tmp_path):
    return " ".join(read_source(path, tmp_path / "pictures").text.split())


@pytest.mark.browser
@pytest.mark.parametrize("layout", printed.CHROMIUM, ids=lambda layout: layout.__name__)
def test_no_sentence_of_a_page_from_a_browser_is_torn_or_swapped(layout, browser, tmp_path):
    html, expected = layout()
    page = browser.new_page()
    page.set_content(html)
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True, print_background=True)
    page.close()
    text = words_of(tmp_path / "page.pdf", tmp_path)
    assert misread(text, expected) == []
    assert "Guideline of the society" not in text
    assert "Chapter 3" not in text


@pytest.mark.parametrize("layout", printed.REPORTLAB, ids=lambda layout: layout.__name__)
def test_no_sentence_of_a_page_from_reportlab_is_torn_or_swapped(layout, tmp_path):
    data, expected = layout()
    (tmp_path / "page.pdf").write_bytes(data)
    text = words_of(tmp_path / "page.pdf", tmp_path)
    assert misread(text, expected) == []
    assert "Society of examples" not in text
    assert "Page 1 of 3" not in text


def test_at_least_twelve_layouts_are_held():
    assert len(printed.CHROMIUM) + len(printed.REPORTLAB) >= 12


def lines(left, top, n, word):
    return [
        Piece(
            left,
            top + 14 * i,
            left + 200,
            top + 14 * i + 11,
            f"{word} number {i} goes on to its end",
        )
        for i in range(n)
    ]


def test_a_rule_across_both_columns_parts_what_is_above_it_from_what_is_below():
    above = [*lines(40, 40, 4, "one"), *lines(300, 40, 4, "two")]
    below = [*lines(40, 140, 4, "three"), *lines(300, 140, 4, "four")]
    rule = PageBox(40, 118, 500, 119)
    words = [line.split()[0] for line in reading_order([Page([*above, *below], [rule])])[0]]
    assert words == ["one"] * 4 + ["two"] * 4 + ["three"] * 4 + ["four"] * 4
    words = [line.split()[0] for line in reading_order([Page([*above, *below])])[0]]
    assert words == ["one"] * 4 + ["three"] * 4 + ["two"] * 4 + ["four"] * 4


def test_any_pieces_lose_no_word_and_take_bounded_time():
    pieces = [
        Piece(10 * (i % 37), 7 * (i % 101), 10 * (i % 37) + 30, 7 * (i % 101) + 9, f"w{i}")
        for i in range(1500)
    ]
    [lines] = reading_order([Page(pieces, [PageBox(i, i, i + 1, i + 90) for i in range(400)])])
    text = "\n".join(lines)
    assert sorted(text.split()) == sorted(p.text for p in pieces)
