"""The page of a shortlist in a real browser."""

import pytest
from msgspec.structs import replace
from tests.accessibility import violations

from medassay.selection import Candidate, SelectionSteps, shortlist
from medassay.selection.candidate import our_candidates
from medassay.selection.discipline import DisciplineScores
from medassay.selection.written import files_of

pytestmark = pytest.mark.browser
HOSTILE = '<img src=x onerror="document.title=1"> \u202egnp'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    import numpy as np

    folder = tmp_path_factory.mktemp("shortlist")
    hostile = Candidate(model=HOSTILE, scores=our_candidates()[0].scores, predictions="b")
    candidates = [replace(c, predictions="a") for c in our_candidates()]
    rng = np.random.default_rng(1)
    right = {
        name: rng.integers(0, 2, (2, 30)).astype(float) for name in SelectionSteps().disciplines
    }
    scores = DisciplineScores(models=("a", "b"), right=right, blank={"a": 0, "b": 3})
    found = shortlist([*candidates, hostile], SelectionSteps(), scores)
    for name, content in files_of(found, found.document()).items():
        (folder / name).write_bytes(content)
    return folder


def test_the_page_shows_who_stays_who_goes_and_why(page, site):
    page.goto(f"file://{site}/index.html")
    assert page.inner_text("h1") == "8 of 18 models"
    assert page.locator("tr[data-model]").count() == 8
    assert "Yi-1.5-9B-Chat: a window of 4,096 tokens" in page.inner_text("main")
    assert "No difference is shown for 28 of 28 pairs" in page.inner_text("main")
    assert "U+202E" in page.inner_text("main")
    assert page.locator("img").count() == 0
    assert page.title().startswith("Shortlist ")


def test_axe_finds_no_violation_and_nothing_overflows(browser, site):
    page = browser.new_page(viewport={"width": 1200, "height": 900}, bypass_csp=True)
    page.goto(f"file://{site}/index.html")
    assert violations(page) == []
    for width, scheme in ((1200, "dark"), (400, "dark"), (400, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert violations(page, colours_only=True) == [], (width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
