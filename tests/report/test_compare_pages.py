"""Pages of pairs: each row has its own with all its pairs, without script, and none is large
however many models there are.
"""

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
