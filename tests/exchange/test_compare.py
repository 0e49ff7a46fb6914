import json

import numpy as np
import pytest
from tests import makers
from tests.exchange.score_tables import answers, table

import medassay
from medassay.cli.main import call
from medassay.errors import InputError
from medassay.exchange.compare import compare
from medassay.exchange.predictions import import_predictions
from medassay.statistic import mcnemar, paired_difference, seed_of
from medassay.statistic.test import planner


@pytest.fixture
def pair(tmp_path):
    chance = np.random.default_rng(3)
    a, b = (chance.random(120) < 0.8).astype(int), (chance.random(120) < 0.6).astype(int)
    return (
        table(tmp_path, "a", answers("new", a)),
        table(tmp_path, "b", answers("old", b)),
        a,
        b,
    )


def test_a_pair_is_what_the_statistics_say_of_it(pair):
    one, other, a, b = pair
    [found] = makers.plain(compare([one, other], margin=0.05).pairs)
    seed = seed_of(*sorted(r.seal.root for r in (one, other)), "d", "solo")
    expected = paired_difference(a, b, seed=seed)
    assert (found["a"], found["b"], found["n"]) == ("new", "old", 120)
    for key, value in (("diff", "value"), ("lo", "lo"), ("hi", "hi"), ("p", "p")):
        assert found[key] == pytest.approx(getattr(expected, value), abs=1e-12)
    only = (int((a > b).sum()), int((a < b).sum()))
    assert (found["only_a"], found["only_b"]) == only
    assert found["mcnemar_p"] == found["p"] == mcnemar(*only)
    assert found["p_holm"] == found["p"]
    lo, hi = found["bounds_90"]
    assert lo < found["diff"] < hi
    lo, hi = found["simultaneous"]
    assert lo < found["diff"] < hi
    assert found["family"] == 1
    half, lo, hi = 1 / 120, found["simultaneous"][0], found["simultaneous"][1]
    assert (lo > 0) == (found["better"] == "a")
    assert (hi < 0) == (found["better"] == "b")
    assert hi - found["diff"] == pytest.approx(found["diff"] - lo)
    assert hi - found["diff"] > half  # one item of 120 besides chance
    assert found["items_to_tell"] is None or found["items_to_tell"] >= 10


def test_exchanging_the_sides_turns_the_sign(pair):
    one, other, *_ = pair
    [forth] = makers.plain(compare([one, other], margin=0.05).pairs)
    [back] = makers.plain(compare([other, one], margin=0.05).pairs)
    assert back["diff"] == pytest.approx(-forth["diff"])
    assert (back["lo"], back["hi"]) == (
        pytest.approx(-forth["hi"]),
        pytest.approx(-forth["lo"]),
    )
    assert back["bounds_90"] == pytest.approx([-forth["bounds_90"][1], -forth["bounds_90"][0]])
    for key in ("p", "items_to_tell", "equivalent"):
        assert back[key] == forth[key]
    assert {"a": "b", "b": "a", "": ""}[back["better"]] == forth["better"]


def test_within_a_run_the_family_is_that_of_its_board(tmp_path):
    chance = np.random.default_rng(3)
    rows = [
        row
        for name, p in (("a", 0.85), ("b", 0.6), ("c", 0.55), ("d", 0.5))
        for row in answers(name, (chance.random(80) < p).astype(int))
    ]
    run = table(tmp_path, "t", rows)
    [alone] = makers.plain(compare([run], only=["a", "b"], family="pair").pairs)
    [within] = makers.plain(compare([run], only=["a", "b"]).pairs)
    assert (alone["family"], within["family"]) == (1, 6)
    wider = [one["simultaneous"][1] - one["simultaneous"][0] for one in (alone, within)]
    assert wider[0] <= wider[1]
    board = {
        (p["first"][0], p["second"][0]): p
        for p in run.statistics.document["fields"]["solo"]["d"]["pairs"]
    }
    # To the last digit: no reading contradicts the board.
    for found in makers.plain(compare([run]).pairs):
        pair = board[found["a"], found["b"]]
        assert {"first": "a", "second": "b", "": ""}[pair["better"]] == found["better"]
        assert found["simultaneous"] == pytest.approx([pair["lo"], pair["hi"]], abs=1e-12)
        assert found["p_holm"] == pytest.approx(pair["p_holm"])


def test_a_model_that_answered_too_little_to_rank_widens_no_family(tmp_path):
    chance = np.random.default_rng(11)
    rows = []
    for name, skill in (("a", 0.85), ("b", 0.7), ("c", 0.6), ("d", 0.5)):
        rows += answers(name, (chance.random(90) < skill).astype(int))
    rows += answers("part", (chance.random(70) < 0.9).astype(int))  # 78 % of the items
    run = table(tmp_path, "run", rows)
    board = {
        (p["first"][0], p["second"][0]): p
        for p in run.statistics.document["fields"]["solo"]["d"]["pairs"]
    }
    assert len(board) == 6
    found = {(p["a"], p["b"]): p for p in makers.plain(compare([run]).pairs)}
    assert len(found) == 10
    for names, pair in found.items():
        if "part" in names:
            assert (pair["n"], pair["family"]) == (70, 10)
            continue
        assert (pair["n"], pair["family"]) == (90, 6)
        ends = [board[names]["lo"], board[names]["hi"]]
        assert pair["simultaneous"] == pytest.approx(ends, abs=1e-12)


def test_of_fewer_than_ten_clusters_no_reading_is_given(tmp_path):
    runs = [table(tmp_path, n, answers(n, [v] * 9)) for n, v in (("a", 1), ("b", 0))]
    [row] = makers.plain(compare(runs).pairs)
    assert (row["better"], row["simultaneous"]) == (None, None)


def test_only_common_items_are_compared_and_the_rest_is_told(tmp_path):
    rows = answers("new", [1, 0] * 20)
    one = table(tmp_path, "a", rows)
    other = table(tmp_path, "b", answers("old", [1, 1] * 20)[:30])
    found = compare([one, other])
    assert found.pairs[0].n == 30
    assert found.notes == ["a: 10 of its 40 items are not in all runs"]


def test_domains_are_averaged_and_compared_one_by_one_on_request(tmp_path):
    chance = np.random.default_rng(5)
    runs = [
        table(
            tmp_path,
            name,
            [
                *answers(name, chance.integers(0, 2, 30), "first"),
                *answers(name, chance.integers(0, 2, 12), "second"),
            ],
        )
        for name in "ab"
    ]
    found = makers.plain(compare(runs, by_domain=True).pairs)
    assert [row["domain"] for row in found] == ["overall", "first", "second"]
    assert found[0]["diff"] == pytest.approx((found[1]["diff"] + found[2]["diff"]) / 2)
    assert (found[0]["test"], found[1]["test"]) == ("stratified_t", "mcnemar")
    assert found[0]["n"] == 42


def test_a_mean_over_a_domain_of_one_item_has_no_p(tmp_path, capsys):
    """McNemar's p of the plain counts would stand there, and could point the other way."""
    chance = np.random.default_rng(5)
    runs = [
        table(
            tmp_path,
            name,
            [
                *answers(name, (chance.random(60) < rate) * 1, "first"),
                *answers(name, [last], "second"),
            ],
        )
        for name, rate, last in (("a", 0.9, 0), ("b", 0.4, 1))
    ]
    overall, first, second = makers.plain(compare(runs, by_domain=True).pairs)
    assert (overall["p"], overall["test"], overall["p_holm"]) == (None, None, None)
    assert (first["test"], first["p"] < 0.01, first["p_holm"] < 0.01) == ("mcnemar", True, True)
    assert second["n"] == 1
    assert call(["compare", *(str(run.path) for run in runs)]) == 0
    shown = capsys.readouterr().out
    assert "p (Holm)" in shown
    assert "mcnemar" not in shown
    assert "stratified" not in shown


def test_domains_that_share_cases_are_tested_by_their_draws_whatever_their_size(tmp_path):
    chance = np.random.default_rng(5)
    lines = ["item,model,domain,score,cluster"]
    for model, rate in (("a", 0.9), ("b", 0.4)):
        right = (chance.random(60) < rate) * 1
        lines += [f"q{n:02},{model},first,{right[n]},case{n // 2}" for n in range(60)]
        lines.append(f"z,{model},second,{int(model == 'b')},case0")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    columns = {name: name for name in lines[0].split(",")}
    run = import_predictions(tmp_path / "t.csv", columns, to=tmp_path / "run")
    [pair] = compare([run]).pairs
    assert (pair.test, pair.p is not None, pair.p_holm is not None) == ("bootstrap", True, True)
    page = medassay.publish(run, tmp_path / "site").parent / "compare" / "index.html"
    assert 'data-label="p (Holm)">–' not in page.read_text()


def test_three_models_make_a_family_of_three_pairs(tmp_path):
    chance = np.random.default_rng(6)
    rates = (("a", 0.9), ("b", 0.75), ("c", 0.5))
    runs = [table(tmp_path, n, answers(n, (chance.random(200) < r) * 1)) for n, r in rates]
    found = makers.plain(compare(runs).pairs)
    assert [(row["a"], row["b"]) for row in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for row in found:
        assert row["p_holm"] >= row["p"]
        assert row["simultaneous"][0] <= row["lo"] + 0.02
    [first] = makers.plain(compare(runs, only=["c", "a"]).pairs)
    assert (first["a"], first["b"]) == ("c", "a")
    with pytest.raises(InputError, match="no model 'x'; there are a, b, c"):
        compare(runs, only=["x"])


def test_identical_answers_are_never_different_and_claim_no_width(tmp_path):
    runs = [table(tmp_path, n, answers("same", [1, 0] * 10)) for n in "ab"]
    [row] = makers.plain(compare(runs, margin=0.05).pairs)
    assert (row["a"], row["b"]) == ("same · 1. a", "same · 2. b")
    assert row["identical"]
    assert row["better"] == ""
    assert row["simultaneous"] is None
    assert row["equivalent"] is False  # 20 items show nothing within 5 points
    assert row["items_to_tell"] is None


def test_the_terminal_prints_no_interval_of_no_width(tmp_path, cli):
    runs = [table(tmp_path, n, answers("same", [1, 0] * 10)).path for n in "ab"]
    code, shown, _ = cli("compare", *runs)
    assert code == 0
    assert "│ 0.0 " in shown
    assert "[0.0, 0.0]" not in shown


def test_without_a_reading_no_interval_and_no_p_are_printed(tmp_path, cli):
    for n in (9, 10):
        for model, wrong in (("a", 0), ("b", 5)):
            table(tmp_path, f"{model}{n}", answers(model, [0] * wrong + [1] * (n - wrong)))
        code, told, _ = cli("compare", tmp_path / f"a{n}", tmp_path / f"b{n}")
        assert code == 0
        assert ("no reading" in told, "[" in told, "mcnemar" in told) == (n < 10, n > 9, n > 9)


def test_pairs_stand_with_those_that_they_are_tested_with(tmp_path, cli):
    rows = answers("a", [1] * 40) + answers("b", [1] * 30 + [0] * 10)
    rows += answers("c", [1] * 12 + [0] * 12)  # too few items for a rank
    table(tmp_path, "run", rows)
    code, told, _ = cli("compare", tmp_path / "run")
    assert code == 0
    alone, together = told.split("3 pairs tested at once")
    assert "this pair alone is tested" in alone
    assert (alone.count("│ a "), alone.count("│ c "), together.count("│ c ")) == (2, 0, 2)


def test_graded_scores_take_the_t_test(tmp_path):
    chance = np.random.default_rng(7)
    one = chance.random(60).round(2)
    runs = [
        table(tmp_path, "a", answers("a", one)),
        table(tmp_path, "b", answers("b", (one * 0.8).round(2))),
    ]
    [row] = makers.plain(compare(runs, margin=0.2).pairs)
    assert (row["test"], row["mcnemar_p"], row["bounds_method"]) == (
        "paired_t",
        None,
        "paired_t",
    )
    assert row["better"] == "a"
    assert row["items_to_tell"] is None  # it is told already
    near = table(tmp_path, "c", answers("c", (one * 0.98 + 0.01 * chance.random(60)).round(2)))
    [row] = makers.plain(compare([runs[0], near]).pairs)
    assert row["better"] or row["items_to_tell"] > 60


def test_pairs_that_are_almost_alike_do_not_take_minutes(monkeypatch):
    """A difference of a few items in 6,000 would need millions; they are not tried one by one."""
    asked = []
    power = planner.power_right_wrong
    monkeypatch.setattr(
        planner, "power_right_wrong", lambda *given: asked.append(given) or power(*given)
    )
    found = planner.items_to_show(0.0007, discordance=0.12, c=3.1)
    assert power(found, 0.12, 0.0007, 3.1) >= planner.POWER > power(found - 60, 0.12, 0.0007, 3.1)
    assert 3e6 < found < 4.5e6
    assert len(asked) < 100


def test_runs_that_do_not_fit_together_are_refused(tmp_path):
    one = table(tmp_path, "a", answers("a", [1, 0] * 10))
    elsewhere = table(tmp_path, "b", answers("b", [1, 0] * 10, "other"))
    with pytest.raises(InputError, match="no item in common"):
        compare([one, elsewhere])
    with pytest.raises(InputError, match="1 model to compare"):
        compare([one])
    keyed = tmp_path / "k.csv"
    for name, key in (("x", "A"), ("y", "B")):
        keyed.write_text(
            "item,model,domain,prediction,key\n"
            + "".join(f"q{n},{name},d,A,{key}\n" for n in range(12))
        )
        columns = {n: n for n in ("item", "model", "domain", "prediction", "key")}
        import_predictions(keyed, columns, to=tmp_path / name)
    with pytest.raises(InputError, match="another 'expected' in"):
        compare([medassay.open_run(tmp_path / n) for n in "xy"])


def test_baselines_are_compared_only_by_name(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(15))
    random = {"id": "random", "provider": "baseline", "model": "random"}
    longest = {"id": "longest", "provider": "baseline", "model": "longest"}
    makers.write_models(tmp_path, random, longest)
    run = medassay.run(makers.write_plan(tmp_path, models=["random", "longest"]), secrets={})
    with pytest.raises(InputError, match="when --only names them"):
        compare([run])
    [row] = makers.plain(compare([run], only=["random", "longest"]).pairs)
    assert row["n"] == 15


def test_the_planner_says_before_a_run_how_many_items_it_needs(cli):
    code, shown, _ = cli(
        *("--json", "study", "power", "--difference", "0.05", "--discordance", "0.2"),
        *("--items", "668"),
    )
    found = json.loads(shown)
    assert (code, found["items"], found["models"]) == (0, 668, 2)
    assert found["power"] == pytest.approx(0.8005, abs=1e-4)
    code, shown, _ = cli(
        *("study", "power", "--difference", "0.1", "--deviation", "0.35"),
        *("--models", "10", "--items", "205"),
    )
    assert code == 0
    assert shown.startswith("205 items for a difference of 0.1, on a board of 10 models")
    assert "80.2 % power with 205 items" in shown
    for wrong in (
        ("--difference", "0.1"),
        ("--difference", "0.1", "--discordance", "0.05"),
        ("--difference", "0", "--deviation", "0.1"),
        ("--difference", "0.1", "--deviation", "0.1", "--items", "0"),
        ("--difference", "0.1", "--deviation", "0.1", "--discordance", "0.2"),
    ):
        code, _, errors = cli("study", "power", *wrong)
        assert (code, errors.count("\n")) == (3, 1), errors


def clustered(tmp_path, name, scores, cluster):
    path = tmp_path / f"{name}.csv"
    lines = ["item,model,domain,score,cluster"]
    lines += [f"q{n:04},{name},d,{score},{cluster(n)}" for n, score in enumerate(scores)]
    path.write_text("\n".join(lines) + "\n")
    columns = {n: n for n in lines[0].split(",")}
    return import_predictions(path, columns, to=tmp_path / name)


def test_items_that_share_a_case_in_one_run_share_it_in_the_comparison(tmp_path):
    chance = np.random.default_rng(8)
    a, b = (np.repeat(chance.integers(0, 2, 12), 4) for _ in range(2))
    known = clustered(tmp_path, "a", a, lambda n: f"case {n // 4}")
    blind = clustered(tmp_path, "b", b, lambda n: "")
    [one] = makers.plain(compare([known, blind]).pairs)
    [other] = makers.plain(compare([blind, known]).pairs)
    assert one["n_clusters"] == other["n_clusters"] == 12
    assert one["p"] == other["p"]
    assert one["mcnemar_p"] is None
    conflicting = clustered(tmp_path, "c", b, lambda n: f"case {n % 12}")
    with pytest.raises(InputError, match="into other clusters"):
        compare([known, conflicting])


def test_cases_that_span_domains_claim_no_equivalence(tmp_path):
    chance = np.random.default_rng(9)
    runs = []
    for name in "ab":
        scores = chance.integers(0, 2, 12)
        lines = ["item,model,domain,score,cluster"]
        for domain in ("x", "y"):
            lines += [f"q{n:02},{name},{domain},{s},case {n}" for n, s in enumerate(scores)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        columns = {n: n for n in lines[0].split(",")}
        runs.append(import_predictions(tmp_path / f"{name}.csv", columns, to=tmp_path / name))
    [row] = makers.plain(compare(runs, margin=0.9).pairs)
    assert row["n_clusters"] == 12
    assert row["bounds_90"] is None
    assert row["equivalent"] is False
    assert row["test"] == "bootstrap"


def test_a_margin_as_wide_as_the_scale_is_a_slip(tmp_path, cli):
    runs = [table(tmp_path, n, answers(n, [1, 0] * 20)).path for n in "ab"]
    code, _, errors = cli("compare", *runs, "--gate", "noninferior:2")
    assert code == 3
    assert "0.02 is 2 points of 100" in errors


def test_close_models_over_domains_of_unequal_size_are_compared(tmp_path):
    """Over several domains the items needed are not counted from a share of items that one alone
    has right.
    """
    rows = ["item,model,domain,prediction,key,setting"]
    for domain, n in (("large", 60), ("small", 12)):
        for i in range(n):
            wrong = domain == "large" and i < 3
            rows += [
                f"{domain}-{i},A,{domain},A,A,zero_shot",
                f"{domain}-{i},B,{domain},{'B' if wrong else 'A'},A,zero_shot",
            ]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    columns = {name: name for name in rows[0].split(",")}
    run = medassay.import_predictions(tmp_path / "t.csv", columns, runs=tmp_path)
    assert call(["compare", str(run.path)]) == 0
    page = medassay.publish(run, tmp_path / "site")
    assert "items would be needed to tell A from B" in page.read_text()
