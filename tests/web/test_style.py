"""One visual language: every component of boards, viewer and review app stands on a style page."""

import re

import pytest
from tests.accessibility import violations
from website.style_pages import sheets, style_page, write_style_pages

from medassay.report.pages.html import asset


def classes_of(sheet):
    """Return the classes that a style sheet names."""
    text = re.sub(r"/\*.*?\*/", "", sheet.decode(), flags=re.S)
    selectors = " ".join(re.findall(r"([^{}]+)\{", text))
    return set(re.findall(r"\.([a-zA-Z][\w-]*)", selectors))


def shown_on(name):
    """Return the classes that a style page shows."""
    return {
        one for names in re.findall(r'class="([^"]*)"', style_page(name)) for one in names.split()
    }


@pytest.mark.parametrize("name", sheets())
def test_every_class_of_the_style_is_seen_on_its_page(name):
    shown = shown_on(name) | (shown_on("boards") & classes_of(asset("base.css")))
    named = set().union(*map(classes_of, sheets()[name].values()))
    # Of one page as a whole: the mark behind a demonstration.
    assert named - shown <= {"demonstration"}


@pytest.mark.parametrize("name", sheets())
def test_colours_are_those_of_the_language(name):
    for sheet, content in sheets()[name].items():
        own = content.decode()
        if "--text:" in own:  # where they are named
            own = own.partition("* { box-sizing")[2]
        # Of paper-white pictures of graphs, and of shadows behind dialogs.
        colours = set(re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb\([^)]*\)", own))
        assert colours <= {"#fff", "#8884", "rgb(0 0 0 / .5)"}, sheet


@pytest.mark.parametrize("width", [390, 1024, 1440])
@pytest.mark.parametrize("name", sheets())
def test_the_style_pages_fit_and_have_no_violation(tmp_path, browser, name, width):
    write_style_pages(tmp_path)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, colours_only=width < 1440) == []
    page.emulate_media(media="print")
    assert not page.is_visible(".scheme.dark h1")
    page.close()
