"""Names and texts that models and banks bring stay text in Markdown and LaTeX: no link, no picture,
no markup, no command.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from medassay.report.document import latex_text, markdown_table, markdown_text

# As a reader of Markdown that allows everything would show it.
READER = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")
PLAIN = {"inline", "text", "paragraph_open", "paragraph_close", "softbreak", "hardbreak"}
MARKS = st.text("[]()!<>*_`#|\\&;:/-+=~\"'{}$%^ \n\t.1ahtps\u202e\u2028")
HOSTILE = [
    "[x](javascript:alert(1))",
    "![x](https://evil.example/p.png)",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "https://evil.example",
    "<https://evil.example>",
    "# head",
    "1. list",
    "- list",
    "> quote",
    "```\ncode\n```",
    "    code",
    "a|b\n---|---",
    "x\n===",
    "&lt;b&gt; &#60;i&#62;",
    "[x]: https://evil.example",
    "\\input{/etc/passwd}",
    "\\immediate\\write18{id}",
    "$x$ & # % ^ _ ~ { }",
    "^^5cinput",
    "a\u202eb\u2028c",
    "***",
    "~~~",
    "\\",
    "\\\\",
]
# What LaTeX is given in place of characters that it would act on.
_ESCAPES = re.compile(
    r"\\text(backslash|asciitilde|asciicircum|less|greater|bar)\{\}|\\[&%$#_{}]"
    r"|\$(-|\\(times|geq|leq|pm))\$"
)


def tokens(text):
    """Yield the kinds of all that a reader makes of a text."""
    for token in READER.parse(text):
        yield token.type
        for child in token.children or ():
            yield child.type


@given(st.text() | MARKS)
@example("a" * 3)
def test_in_markdown_a_text_is_a_text(text):
    made = " ".join(markdown_text(text).split("\n"))
    assert set(tokens(f"x {made} x")) <= PLAIN, made


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_texts_in_markdown(text):
    assert set(tokens(f"x {markdown_text(text)}")) <= PLAIN
    table = "\n".join(markdown_table(["model", "score"], [[text, "1"]]))
    kinds = set(tokens(table))
    assert "table_open" in kinds
    assert {k for k in kinds if not k.startswith(("t", "th_", "inline"))} <= PLAIN
    rows = [t for t in READER.parse(table) if t.type == "td_open"]
    assert len(rows) == 2


@given(st.text() | MARKS)
def test_in_latex_nothing_is_left_that_it_acts_on(text):
    left = _ESCAPES.sub("", latex_text(text))
    assert not set(left) & set("\\{}$&#%^_~\n"), left


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_texts_in_latex(text):
    left = _ESCAPES.sub("", latex_text(text))
    assert not set(left) & set("\\{}$&#%^_~\n")
