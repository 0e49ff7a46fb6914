"""A board of a thousand models in a browser and on paper."""

import gzip
import json
import re

import pypdf
import pytest

import medassay
from medassay.publishing.publish import About
from medassay.report.board import shown_rows

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_thousand_models_with_all_facts_fit_the_budget_and_the_printed_page(tmp_path, browser):
    lines, entries = ["item,model,domain,prediction,key"], []
    for m in range(1000):
        name = f"model-{m:04}-instruct-{m % 97}b"
        licence = ["MIT", "Apache-2.0", "Llama 3.3", ""][m % 4]
        facts = {"family": f"family-{m % 37}", "licence": licence, "size": (m * 7919) % 700 + 0.5}
        entries.append({"id": name, "provider": "import", **facts})
        lines += [
            f"q{n:02},{name},d,{'A' if (m * 7 + n * 13) % 31 > m % 29 else 'B'},A"
            for n in range(20)
        ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "models.json").write_text(json.dumps({"schema_version": 1, "models": entries}))
    run = medassay.import_predictions(
        tmp_path / "t.csv",
        {n: n for n in lines[0].split(",")},
        runs=tmp_path,
        models=medassay.load_models(tmp_path / "models.json"),
    )
    ranked, _ = shown_rows(medassay.leaderboard(run).rows("overall"))
    assert len(ranked) == 1000
    # Pages of single answers say nothing here.
    site = medassay.publish(
        run, tmp_path / "site", publication="many", about=About(compact=True)
    ).parent
    content = (site / "index.html").read_text(encoding="utf-8")
    assert content.count("data-licence=") >= 750
    assert len(gzip.compress(content.encode())) <= 80 * 1024
    assert len(re.findall("<t[dh]", content)) <= 12_000
    assert len(re.findall("<tr", content)) <= 2_000
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    page.pdf(path=tmp_path / "board.pdf")
    page.emulate_media(media="print")
    back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    context.close()
    printed = [sheet.extract_text() for sheet in pypdf.PdfReader(tmp_path / "board.pdf").pages]
    rows = [text for text in printed if "-instruct-" in text]
    assert sum(text.count("-instruct-") for text in rows) >= 1000
    assert len(rows) > 10
    assert all("Rank" in text and "Score" in text for text in rows)  # on each sheet
    assert back in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
