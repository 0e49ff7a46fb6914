"""Models × domains: every cell is what the statistics say, shaded by where its range of ranks
begins.
"""

import re
from html import unescape

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import medassay
from medassay.core.records.statistics import OVERALL
from medassay.exchange.predictions import import_predictions
from medassay.report.pages.matrix import shade_of


class Place:
    def __init__(self, rank_lo):
        self.rank = self.rank_lo = rank_lo


def publication(folder, models, domains=3, items=20):
    random = np.random.default_rng(7)
    lines = ["item,model,domain,score"]
    for model in range(models):
        for domain in range(domains):
            right = random.random(items) < 0.1 + 0.8 * model / models
            lines += [
                f"d{domain}-q{n:02},model-{model:03},domain-{domain},{int(right[n])}"
                for n in range(items)
            ]
    folder.mkdir(exist_ok=True)
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    columns = {"item": "item", "model": "model", "domain": "domain", "score": "score"}
    run = import_predictions(folder / "t.csv", columns, runs=folder)
    return run, medassay.publish(run, folder / "site").parent


def cells(page):
    """Return model → domain → (shade, score, ranks) of the matrix on a page."""
    table = page.partition('<table class="matrix"')[2].partition("</table>")[0]
    rows = {}
    for name, row in re.findall(r'<tr role="row" data-matrix="([^"]*)">(.*?)</tr>', table, re.S):
        rows[unescape(name)] = {
            domain: (int(shade), score, ranks)
            for shade, domain, score, ranks in re.findall(
                r'shade-(\d)" data-label="([^"]*)"><a href="[^"]*">([^<]*)</a>'
                r'<span class="ranks">([^<]*)</span>',
                row,
            )
        }
    return rows


def test_each_cell_is_what_the_statistics_say(tmp_path):
    run, place = publication(tmp_path / "w", 8)
    page = (place / "matrix" / "index.html").read_text()
    shown = cells(page)
    assert list(shown) == [row.model for row in run.statistics.rows(OVERALL)]
    for domain in ("domain-0", "domain-1", "domain-2"):
        for row in run.statistics.rows(domain):
            shade, score, ranks = shown[row.model][domain]
            assert (score, ranks) == (f"{100 * row.score:.1f}", row.rank_text())
            assert (shade == 4) is (row.rank_lo == 1)
    # A board this small has the matrix below its overall ranking, too.
    assert cells((place / "index.html").read_text()) == shown
    assert 'href="./matrix/index.html"' in (place / "index.html").read_text()


def test_many_models_are_on_several_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("medassay.report.pages.matrix.ROWS_A_PAGE", 5)
    monkeypatch.setattr("medassay.report.pages.matrix.FEW_ROWS", 5)
    _, place = publication(tmp_path / "w", 8, domains=2, items=12)
    first = cells((place / "matrix" / "index.html").read_text())
    second = cells((place / "matrix" / "page-2" / "index.html").read_text())
    assert (len(first), len(second)) == (5, 3)
    assert not first.keys() & second.keys()
    assert not cells((place / "index.html").read_text())  # the ranking stays within its limits


def test_one_domain_has_no_matrix(tmp_path):
    _, place = publication(tmp_path / "w", 3, domains=1)
    assert not (place / "matrix").exists()
    assert "Models and domains" not in (place / "index.html").read_text()


@given(st.integers(1, 1_000), st.integers(1, 1_000), st.integers(2, 1_000))
def test_a_range_that_begins_further_up_is_never_lighter(first, second, n_ranked):
    better, worse = sorted((min(first, n_ranked), min(second, n_ranked)))
    assert 4 >= shade_of(Place(better), n_ranked) >= shade_of(Place(worse), n_ranked) >= 1
    assert (shade_of(Place(better), n_ranked) == 4) is (better == 1)
