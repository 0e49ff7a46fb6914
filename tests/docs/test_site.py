"""The documentation site as it is built: whole, offline, readable without scripts, on a phone and in
the dark; its notebooks are executed.

The site is built once: zensical fails on broken links and warnings, a notebook on its first error.
"""

import http.server
import inspect
import json
import re
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.accessibility import violations
from tests.docs.site import build

import medassay

ROOT = Path(__file__).parents[2]
LARGEST = 5_000_000  # bytes
KINDS = (  # a page of each kind
    "",
    "why/",
    "how-to/",
    "how-to/your-own-questions/",
    "reference/",
    "reference/cli/",
    "reference/plan/",
    "reference/python/",
    "reference/python/run/",
    "reference/python/Plan/",
    "reference/python/results/",
    "method/ranks/",
    "decisions/0021-ranks/",
    "glossary/",
    "changelog/",
    "notebooks/1_first_evaluation/",
    "notebooks/5_judges_and_people/",
    "notebooks/6_differential_diagnoses/",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site in a copy of what it is made from."""
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def address(site):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def text_of(page):
    """Return the text of a page, tags left out."""
    html = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"<[^>]+>", " ", html)


def test_every_public_name_has_its_page_with_an_example_that_ran(site):
    listed = text_of(site / "reference/python/index.html")
    for name in medassay.__all__:
        page = text_of(site / f"reference/python/{name}/index.html")
        assert "&gt;&gt;&gt;" in page, name
        assert name in listed
        first = inspect.getdoc(getattr(medassay, name)).split("\n")[0].split("`")[0].strip()
        assert first[:30] in " ".join(page.split()).replace("&#39;", "'").replace("&lt;", "<"), name


def test_keys_of_plans_and_models_stand_there_with_what_they_are(site):
    for name, record in (("plan", medassay.Plan), ("models", medassay.ModelSpec)):
        page = text_of(site / f"reference/{name}/index.html")
        for key in record.__dataclass_fields__:
            assert key in ("own", "trusted_hosts") or f" {key} " in page, key
    assert "default" in page


def test_entries_of_docstrings_are_read_as_what_they_are(site):
    page = " ".join(text_of(site / "reference/python/compare/index.html").split())
    assert "in units of the score: 0.02 is 2 points of 100" in page
    assert "doi:10.1198/016214504000000539" in page
    page = " ".join(text_of(site / "reference/python/run/index.html").split())
    assert "IncompleteError" in page
    assert "folder for runs/, responses/ and banks.lock" in page


def test_the_site_is_small_and_loads_nothing_from_elsewhere(site):
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= LARGEST
    for path in files:
        if path.suffix == ".html":
            for tag, address in parsed(path).loaded:
                assert "://" not in address, (path, tag, address)


class Loads(HTMLParser):
    def __init__(self):
        super().__init__()
        self.loaded = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("script", "img", "source", "iframe"):
            self.loaded += [(tag, attributes[n]) for n in ("src", "srcset") if attributes.get(n)]
        if tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append((tag, attributes.get("href", "")))


def parsed(path):
    parser = Loads()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def test_no_page_names_a_place_of_the_machine_that_built_it(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text, path
        assert str(site) not in text, path
        assert "ipykernel_" not in text, path
        assert "site-packages" not in text, path


def test_notebooks_show_what_came_out(site):
    first = text_of(site / "notebooks/1_first_evaluation/index.html")
    assert "smollm2-135m · zero_shot" in first
    assert "8 of 8" in first  # of the progress
    pages = sorted((site / "notebooks").glob("*/index.html"))
    assert len(pages) == len(list((ROOT / "examples").glob("*.ipynb"))) == 7
    for page in pages:
        text = text_of(page)
        assert "Traceback" not in text
        assert "executed when the site was built" in text
    assert "careful better" in text_of(site / "notebooks/2_compare_two_models/index.html")
    figures = list((site / "notebooks").rglob("*-dark.svg"))
    assert len(figures) >= 4
    for figure in figures:
        assert figure.with_name(figure.name.replace("-dark", "-light")).is_file()


def test_names_of_the_reference_are_the_public_ones():
    from website.build import NAMES

    listed = [name for names in NAMES.values() for name in names]
    assert sorted(listed) == sorted(medassay.__all__)


def test_the_version_is_one():
    version = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    changes = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert (cited, changes[0]) == (version, version)


def test_committed_notebooks_hold_no_outputs():
    for path in (ROOT / "examples").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs"), path
            assert cell.get("execution_count") is None


@pytest.mark.browser
def test_pages_are_accessible_and_fit_a_phone(address, browser):
    page = browser.new_page()
    problems, elsewhere = [], []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: r.url.startswith((address, "data:")) or elsewhere.append(r.url))
    for kind in KINDS:
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(address + kind)
        page.wait_for_load_state("networkidle")
        assert violations(page) == [], kind
        if kind in KINDS[1::3]:
            page.emulate_media(color_scheme="dark")
            assert violations(page, colours_only=True) == [], kind
            page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 390, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, kind
    assert not problems
    assert not elsewhere


@pytest.mark.browser
def test_pages_are_read_without_scripts_and_searched_with_them(address, browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    for kind in KINDS:
        page.goto(address + kind)
        article = page.locator("article")
        assert article.is_visible()
        assert len(article.inner_text()) > 150, kind
        for picture in article.locator("img:visible").all():
            assert picture.get_attribute("alt")
    page = browser.new_page()
    page.goto(address, wait_until="networkidle")  # the index is there
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox").or_(page.get_by_role("textbox")).first
    box.fill("noninferior")
    page.get_by_text("Not worse, equally good").first.wait_for()


def test_the_pictures_of_why_are_what_their_simulation_draws():
    from website.pictures import pictures, winners

    for name, svg in pictures().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == svg, name
    text = " ".join((ROOT / "docs/why.md").read_text(encoding="utf-8").split())
    first, last = winners()
    assert f"the first had {first:.1f} % on average and the last {last:.1f} %" in text


def test_a_broken_link_fails_the_build(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text("# A\n\n[b](nowhere.md)\n")
    config = (ROOT / "website/zensical.toml").read_text().replace("../../src", str(ROOT / "src"))
    config = config.split("[project.plugins")[0] + "[project.validation]\ninvalid_links = true\n"
    (tmp_path / "zensical.toml").write_text(re.sub(r"extra_.*\n", "", config))
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    told = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert "page does not exist" in told
    assert "nowhere.md" in told
