"""What a publication holds besides rankings and answers: documents, times, cost."""

import csv
import json

import pytest
from tests import makers
from tests.optional import scipy_stats

import medassay
from medassay.errors import GateError, InputError
from medassay.publishing.publish import About


@pytest.fixture
def run(tmp_path):
    items = makers.many_items(12)
    items[0].update(kind="synthetic", question="One two three four five six seven eight nine?")
    makers.write_bank(tmp_path / "bank", items)
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    return medassay.run(makers.write_plan(tmp_path), secrets={})


def documents(folder, **texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def test_validation_documents_are_published_as_text(run, tmp_path):
    given = documents(
        tmp_path / "docs", methodology="# How\n<script>alert(1)</script>", limits="None."
    )
    page = medassay.publish(run, tmp_path / "site", about=About(validation=given)).parent
    shown = (page / "validation/index.html").read_text()
    assert "&lt;script&gt;alert(1)" in shown
    assert (page / "validation/methodology.md").read_bytes() == (
        given / "methodology.md"
    ).read_bytes()
    assert "validation/index.html" in (page / "index.html").read_text()
    assert medassay.verify(tmp_path / "site").ok


def test_a_document_with_words_of_a_synthetic_item_stops_the_publication(run, tmp_path):
    text = "We asked: one, two, three, four, five, six, seven, *eight*."
    given = documents(tmp_path / "docs", study=text)
    with pytest.raises(GateError, match=r"validation/.*holds words of item 'q00000', question"):
        medassay.publish(run, tmp_path / "site", about=About(validation=given))
    assert not (tmp_path / "site/p").exists()


def test_what_becomes_public_names_where_local_models_are(tmp_path, cli, mock_server):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    url = mock_server("--text", "A")
    elsewhere = makers.endpoint(url, "n", location="external")
    makers.write_models(tmp_path, makers.endpoint(url), elsewhere)
    run = medassay.run(makers.write_plan(tmp_path, models=["n"]), secrets={})
    code, _, errors = cli("publish", run.path, "--to", "site")
    assert (code, "local models" in errors) == (0, False)
    run = medassay.run(makers.write_plan(tmp_path, models=["m", "n"]), secrets={})
    code, _, errors = cli("publish", run.path, "--to", "site")
    assert (code, f"Also where local models are: {url}." in errors) == (0, True)


def test_folders_of_weights_are_named_whatever_their_location(tmp_path, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    weights = tmp_path / "weights"
    makers.write_models(tmp_path, {**makers.fake(reply="A"), "path": str(weights)})
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    code, _, errors = cli("publish", run.path, "--to", "site")
    assert (code, f"Also where local models are: {weights}." in errors) == (0, True)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.pdf", b"%PDF", "expected a .md or .txt file"),
        ("x.md", b"", "not empty"),
        ("x.md", b"\xff", "not UTF-8"),
        (".x.md", b"x", "plain name"),
    ],
)
def test_other_documents_are_refused(run, tmp_path, name, data, says):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / name).write_bytes(data)
    with pytest.raises(InputError, match=says):
        medassay.publish(run, tmp_path / "site", about=About(validation=tmp_path / "docs"))
    with pytest.raises(InputError, match="no documents"):
        medassay.publish(run, tmp_path / "site", about=About(validation=tmp_path / "none"))


def test_times_and_cost_stand_on_the_run_page_and_in_its_table_only(tmp_path, mock_server):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    price = {"input": 2.0, "output": 10.0, "currency": "EUR"}
    model = makers.endpoint(mock_server("--text", "A"), price=price, engine="mock")
    makers.write_models(tmp_path, model)
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    page = medassay.publish(run, tmp_path / "site").parent
    with (page / "data/times.csv").open(newline="") as file:
        [row] = list(csv.DictReader(file))
    timings = [json.loads(line) for line in (run.path / "timings.jsonl").read_text().splitlines()]
    asked, said = (sum(t["tokens"][at] for t in timings) for at in (0, 1))
    assert (row["kind"], row["replies"], row["engine"]) == ("quiz", "12", "mock")
    assert float(row["cost"]) == pytest.approx((2 * asked + 10 * said) / 1e6)
    assert float(row["mean_seconds"]) == pytest.approx(sum(t["seconds"] for t in timings) / 12)
    seconds = [timing["seconds"] for timing in timings]
    interval = scipy_stats.ttest_1samp(seconds, 0).confidence_interval()
    ends = (float(row["seconds_lo"]), float(row["seconds_hi"]))
    assert ends == pytest.approx((max(0, interval.low), interval.high), rel=1e-3)
    shown = next((page / "run").rglob("index.html")).read_text()
    assert f"{float(row['mean_seconds']):.3f} [{ends[0]:.3f}, {ends[1]:.3f}]" in shown
    assert row["cpu"] == run.manifest_document["machine"]["cpu"]
    assert "EUR" in next((page / "run").rglob("index.html")).read_text()
    assert "EUR" not in (page / "index.html").read_text()


@pytest.mark.parametrize(
    ("more", "callable_by_others"),
    [
        ({"location": "local"}, False),
        ({"location": "external"}, True),
        ({"location": "external", "api": False}, False),
    ],
)
def test_models_that_others_cannot_call_are_refused_on_request(
    tmp_path, mock_server, more, callable_by_others
):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    random = {"id": "random", "provider": "baseline", "model": "random"}
    model = {**makers.endpoint(mock_server("--text", "A")), **more}
    makers.write_models(tmp_path, model, random)
    run = medassay.run(makers.write_plan(tmp_path, models=["m", "random"]), secrets={})
    about = About(require_api=True)
    if callable_by_others:
        assert medassay.publish(run, tmp_path / "site", about=about).is_file()
    else:
        with pytest.raises(GateError, match="--require-api: m cannot be called by others"):
            medassay.publish(run, tmp_path / "site", about=about)
        assert not (tmp_path / "site/p").exists()


def test_imports_are_refused_where_readers_must_be_able_to_ask_again(tmp_path):
    lines = ["item,model,domain,prediction,key", *(f"q{n},gpt-4o,law,A,A" for n in range(12))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    columns = {name: name for name in lines[0].split(",")}
    run = medassay.import_predictions(tmp_path / "t.csv", columns, runs=tmp_path / "runs")
    with pytest.raises(GateError, match="gpt-4o were imported: who was asked is not known"):
        medassay.publish(run, tmp_path / "site", about=About(require_api=True))
    assert medassay.publish(run, tmp_path / "site").is_file()
