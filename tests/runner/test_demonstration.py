"""A demonstration: scripted models are ranked there and nowhere else, and every page says so."""

import json

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.bank.find import find_bank
from medassay.cli import demo
from medassay.cli.demo_models import QUALITY, scripted_models
from medassay.errors import GateError, InputError
from medassay.storage.ledger import read_ledger

MODELS = [makers.fake("one", letters="hash"), makers.fake("two", reply="A")]


def place(folder, *models, **plan):
    return makers.workspace(folder, makers.many_items(24), *models, **plan)


def test_beside_a_real_model_it_is_said_which_ones_are_scripted(tmp_path, mock_server, cli):
    models = [makers.endpoint(mock_server(), name=name) for name in ("real", "other")]
    plan = place(tmp_path, *models, MODELS[0])
    code, shown, errors = cli("run", plan)
    assert (
        code,
        "SCRIPTED: one: answers or judges were scripted, which measures nothing." in shown,
    ) == (0, True), errors
    run = max((tmp_path / "runs").iterdir())
    for names, told in (("real,other", False), ("real,one", True)):
        assert ("SCRIPTED" in "".join(cli("compare", run, "--only", names)[1:])) is told
    code, _, errors = cli("publish", run, "--to", "site")
    assert "of law-2026.1 (24 items), and all replies and scores of 3 models" in errors
    pages = sorted((tmp_path / "site/p").rglob("*.html"))
    for path in pages:
        text = path.read_text()
        assert "Rows with this mark come from scripted answers or judges" in text, path
        assert "Answers or judges here were scripted" not in text, path


@pytest.fixture(scope="module")
def ten(tmp_path_factory):
    """Run and publish the scripted board of the demo as the command does it."""
    folder = tmp_path_factory.mktemp("demo")
    source = demo.files("medassay.cli") / "demo_plan" / "demonstration.toml"
    (folder / "demonstration.toml").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    bank = find_bank("demo", folder, folder / "banks.lock")
    document = {"schema_version": 1, "models": scripted_models(bank.items, 20261126)}
    (folder / "scripted.json").write_text(json.dumps(document), encoding="utf-8")
    run = pipeline.run(folder / "demonstration.toml", secrets={})
    return run, medassay.publish(run, folder / "scripted"), folder


def test_the_board_shows_ranges_groups_and_orders(ten):
    run, _, _ = ten
    rows = run.statistics.rows("overall")
    assert [row.model for row in rows if row.rank is not None] == [row.model for row in rows]
    assert {row.model for row in rows} == QUALITY.keys()
    assert run.statistics.relations("overall", "solo").n_items == 120
    ranges = [(row.rank_lo, row.rank_hi) for row in rows]
    assert sum(lo != hi for lo, hi in ranges) >= 5  # ranges
    assert sum(lo == 1 for lo, _ in ranges) > 1  # several may be the best
    pairs = run.statistics.relations("overall", "solo").pairs
    better = [pair for pair in pairs if pair.better is not None and pair.better != ""]
    assert 10 < len(better) < len(pairs)  # orders, and pairs that nobody can tell apart
    assert all("scripted" in row.flags for row in rows)
    # Who is scripted to be better is better, but for neighbours.
    scores = {row.model: row.score for row in rows}
    names = list(QUALITY)
    assert all(scores[a] > scores[b] for a, b in zip(names, names[4:], strict=False))
    assert medassay.verify(run.path).ok


def test_every_page_of_it_says_that_it_is_scripted(ten):
    _, _, folder = ten
    pages = [*(folder / "scripted").rglob("*.html")]
    assert len(pages) > 80
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.count("data-demonstration") == 1, page
        assert "<title>Demonstration" in text
        assert 'class="demonstration"' in text
    assert medassay.verify(folder / "scripted").ok
    assert [entry.record["demonstration"] for entry in read_ledger(folder / "scripted")] == [True]


def test_one_page_leads_to_both_boards(ten, tmp_path):
    run, _, folder = ten
    medassay.publish(run, folder / "site")  # in the place of the real model's
    page = demo._start_page(folder, run, run)
    assert 'href="scripted/index.html"' in page
    assert 'href="site/index.html"' in page
    assert "Ten scripted models, 120 questions" in page
    assert (folder / f"scripted/p/{run.id}/figure/forest-solo.svg").is_file()
    assert f'src="scripted/p/{run.id}/figure/forest-solo.svg"' in page


def test_nothing_else_ranks_scripted_models(tmp_path):
    plain = medassay.run(place(tmp_path / "plain", *MODELS), secrets={})
    assert {row.reason_unranked for row in plain.statistics.rows("overall")} == {"fake"}
    site = medassay.publish(plain, tmp_path / "site")
    assert "data-demonstration" not in site.read_text()
    assert "demonstration" not in read_ledger(tmp_path / "site")[0].record
    baseline = {"id": "random", "provider": "baseline", "model": "random"}
    shown = medassay.run(place(tmp_path / "b", *MODELS, baseline, demonstration=True), secrets={})
    reasons = {row.model: row.reason_unranked for row in shown.statistics.rows("overall")}
    assert reasons == {"one": "", "two": "", "random": "baseline"}
    with pytest.raises(InputError, match=r"differs from .* in methodology"):
        medassay.publish([plain, shown], tmp_path / "site")
    with pytest.raises(GateError, match=r"holds measurements, .* is a demonstration"):
        medassay.publish(shown, tmp_path / "site")


def test_a_demonstration_asks_nobody(tmp_path, cli):
    real = makers.endpoint("http://127.0.0.1:9/v1", "real")
    plan = place(tmp_path, MODELS[0], real, demonstration=True)
    code, _, errors = cli("run", plan, "--yes")
    assert (code, errors.count("\n")) == (3, 1)
    assert "'demonstration' ranks scripted models (provider fake), and 'real' is asked" in errors
    assert not (tmp_path / "runs").exists()
