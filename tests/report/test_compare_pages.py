"""Pages of pairs: each row has its own with all its pairs, without script, and none is large
however many models there are.
"""

import csv
import re

import msgspec
import numpy as np
import pytest

import medassay
from medassay.core.records.relations import RowPair
from medassay.exchange.predictions import import_predictions
from medassay.report.pages.compare import pairs_figure


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Publish 120 models over 24 items."""
    folder = tmp_path_factory.mktemp("many")
    random = np.random.default_rng(5)
    lines = ["item,model,domain,score"]
    for model in range(120):
        right = random.random(24) < 0.2 + 0.6 * model / 120
        lines += [f"q{n:02},model-{model:03},d,{int(right[n])}" for n in range(24)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    columns = {"item": "item", "model": "model", "domain": "domain", "score": "score"}
    run = import_predictions(folder / "t.csv", columns, runs=folder)
    return run, medassay.publish(run, folder / "site").parent


def board_of_domains(folder, n):
    """Publish two models over a domain of 60 items and one of n; return the folder of the pages."""
    random = np.random.default_rng(5)
    lines = ["item,model,domain,score"]
    for model, rate in (("a", 0.9), ("b", 0.4)):
        lines += [f"q{k:02},{model},first,{int(random.random() < rate)}" for k in range(60)]
        lines += [f"z{k:02},{model},second,{int((model == 'b') == (k < 3))}" for k in range(n)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    columns = {"item": "item", "model": "model", "domain": "domain", "score": "score"}
    run = import_predictions(folder / "t.csv", columns, runs=folder)
    return medassay.publish(run, folder / "site").parent


NO_P = "has a single common item, or cluster, and so no spread: nothing gives a p"


@pytest.mark.parametrize("n", [1, 2, 12])
def test_a_mean_over_a_domain_of_one_item_has_no_p(tmp_path, n):
    """Nothing tests it: the one item has no spread."""
    publication = board_of_domains(tmp_path, n)
    page = (publication / "compare" / "index.html").read_text()
    shown = re.findall('data-label="p[^"]*">([^<]*)<', page)
    assert ([text == "–" for text in shown], NO_P in page) == ([n == 1] * 2, n == 1)
    [path] = publication.rglob("pairs.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = {row["domain"]: row for row in csv.DictReader(lines)}
    assert rows["overall"]["test"] == ("" if n == 1 else "stratified_t")
    assert [rows["overall"][name] == "" for name in ("p", "p_holm")] == [n == 1] * 2
    assert (rows["first"]["test"], float(rows["first"]["p"]) < 0.01) == ("mcnemar", True)


@pytest.mark.slow
def test_every_row_has_a_page_of_its_pairs_and_no_page_is_over_200_kb(site):
    _, publication = site
    pages = sorted((publication / "compare").rglob("index.html"))
    assert len(pages) == 121
    assert max(page.stat().st_size for page in pages) <= 200_000
    overview = (publication / "compare" / "index.html").read_text()
    assert overview.count('<a href="../compare/model-') == 120
    own = (publication / "compare" / "model-119-zero-shot" / "index.html").read_text()
    assert own.count('<tr role="row" data-pair=') == 119
    assert re.findall(r"<script(?! src)", own) == []


def test_a_row_s_page_says_what_the_board_says(site):
    run, publication = site
    [field] = [f["d"] for f in run.statistics.document["fields"].values()]
    pair = next(
        p for p in field["pairs"] if (p["first"][0], p["second"][0]) == ("model-000", "model-119")
    )
    page = (publication / "compare" / "model-119-zero-shot" / "index.html").read_text()
    row = page.partition('data-pair="model-119 − model-000"')[2].partition("</tr>")[0]
    said = {
        "first": "model-000 better",
        "second": "model-119 better",
        "": "no difference shown",
    }
    assert said[pair["better"]] in row
    record = msgspec.convert(pair, RowPair)
    assert record.turned().turned() == record
    assert record.turned().lo == -pair["hi"]


def test_pairs_stand_in_the_order_of_the_ranking_the_higher_row_first(site):
    run, publication = site
    ranked = [row.model for row in run.statistics.rows("overall") if row.rank is not None]
    own = (publication / "compare" / f"{ranked[5]}-zero-shot" / "index.html").read_text()
    others = [model for model in ranked if model != ranked[5]]
    assert re.findall(r'data-pair="[\w-]+ − ([\w-]+)"', own) == others
    drawing = pairs_figure(run.statistics, "solo")
    expected = [f"{ranked[0]} − {other}" for other in ranked[1:61]]
    assert [row["pair"] for row in drawing.rows] == expected
    assert any(row["diff"] > 0 for row in drawing.rows)
