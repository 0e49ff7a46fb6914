"""Accuracy, judge and similarity of models in settings; what each context adds.

Real predictions replayed.
"""

import csv
import io
import json
import re
import shutil
from collections import Counter

import numpy as np
import pytest
from tests import makers
from tests.optional import scipy_stats
from tests.study.context_runs import (
    SETTINGS,
    answers,
    furnish,
    run,
    three_runs,
)

import medassay
from medassay.errors import InputError
from medassay.exchange.healthbranches import import_healthbranches
from medassay.exchange.predictions import import_predictions
from medassay.kinds.results import leaderboard
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import open_run
from medassay.study.contexts import contexts_study
from medassay.study.contexts_sheet import contexts_sheet


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return furnish(tmp_path_factory.mktemp("contexts"))


@pytest.fixture(scope="module")
def runs(place):
    return three_runs(place)


@pytest.fixture(scope="module")
def study(runs):
    return contexts_study(runs)


def test_every_row_has_its_three_measures_in_every_category(study):
    assert study.metrics == {"accuracy": "accuracy", "judge": "g_eval", "similarity": "chrf"}
    places = Counter(row.category for row in study.rows)
    assert places == dict.fromkeys(("all", "gout", "anaemia"), 3 * 5 * 3)
    assert {row.n for row in study.rows} == {60, 30}


def test_numbers_are_the_means_of_the_items_and_lie_in_their_intervals(study, runs):
    scores = read_jsonl(runs[0].path / "scores.jsonl")
    wanted = {}
    for one in scores:
        wanted.setdefault((one["model"], one["setting"]), []).append(one["score"])
    for row in study.rows:
        # m0 always gives the reference: on the scale of likeness, which has no ends, all alike give
        # no interval.
        alike = row.measure == "similarity" and row.model == "m0"
        assert (row.lo is None) == alike
        assert row.lo is None or row.lo <= row.score <= row.hi
        if (row.category, row.measure) == ("all", "accuracy"):
            assert row.score == pytest.approx(np.mean(wanted[row.model, row.setting]))


def test_scripted_models_and_toplines_get_no_mark(study):
    assert {row.rank for row in study.rows} == {None}


def test_models_of_one_setting_share_ranks_and_toplines_get_none(place, mock_server, tmp_path):
    own = tmp_path / "own"  # the other tests need the scripted models
    shutil.copytree(place, own, ignore=shutil.ignore_patterns("runs", "responses", "spend"))
    makers.write_models(own, *(makers.endpoint(mock_server(), name) for name in ("m0", "m1", "m2")))
    found = contexts_study([run(own, "closed", templates=["healthbranches_quiz"], seed=9)])
    marks = {(r.setting, r.rank) for r in found.rows if r.category == "all"}
    assert {setting for setting, rank in marks if rank} == {"zero_shot", "rag"}
    assert {rank for _, rank in marks} == {1, None}


def test_the_ranks_of_a_setting_are_those_of_a_board_of_its_models(tmp_path):
    """Three models of a quiz whose skill differs: the ranges are those that the run's own board
    gives.
    """

    def answered(skill):
        return {f"q{at:03}": "ABCDE"[at % 5] if at % 10 < skill else "none" for at in range(60)}

    rows = [
        (item, model, "d", f"{int(reply in 'ABCDE')}")
        for model, skill in (("good", 9), ("fair", 8), ("poor", 3))
        for item, reply in answered(skill).items()
    ]
    table = tmp_path / "table.csv"
    table.write_text(
        "\n".join(["item,model,domain,score", *(",".join(row) for row in rows)]) + "\n"
    )
    made = import_predictions(
        table, {n: n for n in ("item", "model", "domain", "score")}, to=tmp_path / "run"
    )
    board = {r["model"]: r for r in made.statistics.document["domains"]["overall"]}
    study = contexts_study([made])
    assert len(study.rows) == 3
    for row in study.rows:
        same = board[row.model]
        for key in ("rank_lo", "rank_hi", "score", "lo", "hi", "n"):
            assert getattr(row, key) == pytest.approx(same[key], abs=1e-12), key
    assert board["poor"]["rank_lo"] == 3
    grid = contexts_sheet(study).sections[0].grids[0]
    assert any("rank 1–2" in cell for line in grid.rows for cell in line)


def test_each_context_is_paired_with_zero_shot(study):
    assert len(study.gains) == 3 * 4 * 3
    assert {one.value for one in study.gains if one.measure == "accuracy"} == {0.0}
    assert not any(one.different for one in study.gains)
    assert all(one.lo <= one.value <= one.hi for one in study.gains)


def test_rank_correlations_are_those_of_scipy(study):
    score = {(r.measure, r.setting, r.model): r.score for r in study.rows if r.category == "all"}
    assert len(study.correlations) == 5 * 3
    for one in study.correlations:
        a, b = ([score[m, one.setting, f"m{k}"] for k in range(3)] for m in (one.first, one.second))
        if one.rho is not None:
            assert one.rho == pytest.approx(scipy_stats.spearmanr(a, b).statistic)
        assert one.n == 3


def test_answers_longer_than_asked_for_are_counted(study):
    found = {(one.model, one.setting): one for one in study.long}
    assert found["m0", "rag"].long == 0
    assert found["m2", "rag"].long == sum(at % 7 < 2 for at in range(60))
    assert found["m2", "rag"].answers == 60


def test_the_retrieval_is_told_by_its_own_quality(study, runs):
    trials = [t for t in read_jsonl(runs[0].path / "trials.jsonl") if t["setting"] == "rag"]
    share = np.mean([t["own_source"] for t in trials if t["model"] == "m0"])
    row = next(s for s in study.sources if (s.model, s.measure) == ("m0", "accuracy"))
    assert row.score == pytest.approx(share)
    assert row.lo <= row.score <= row.hi


def test_the_sheet_comes_in_every_form(study, tmp_path, cli, runs):
    files = contexts_sheet(study).files()
    assert {
        "index.html",
        "contexts.md",
        "contexts.tex",
        "contexts.csv",
        "contexts.json",
    } <= set(files)
    rows = list(csv.DictReader(io.StringIO(files["contexts.csv"].decode())))
    assert len(rows) == len(study.rows)
    assert "topline\\_path" in files["contexts.tex"].decode()
    code, out, err = cli("study", "contexts", *(r.path for r in runs), "--to", "sheet", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["metrics"]["similarity"] == "chrf"
    assert (tmp_path / "sheet" / "panels.svg").read_text().count("<svg") == 1
    assert len(list((tmp_path / "sheet").glob("gains-[123].svg"))) == 3


def test_two_runs_with_the_same_row_and_runs_that_measure_none_are_refused(runs, place):
    with pytest.raises(InputError, match="both measure accuracy; give one run of each"):
        contexts_study([runs[0], open_run(runs[0].path), rerun(place)])
    with pytest.raises(InputError, match="both measure accuracy"):
        contexts_study([runs[0], runs[0]])
    with pytest.raises(InputError, match="expected a quiz"):
        contexts_study([ddx_run(place)])


def rerun(place):
    makers.write_models(place, *(answers(f"m{k}", k) for k in range(3)))
    return run(place, "closed", templates=["healthbranches_quiz"])


def ddx_run(place):
    folder = place / "ddx"
    makers.write_bank(folder / "bank", makers.ddx_items(4), name="d", domains=("medicine",))
    makers.write_models(folder, makers.fake(reply='{"diagnoses":[{"rank":1,"name":"Disease 1"}]}'))
    return medassay.run(makers.write_plan(folder, task="ddx_names"), secrets={})


@pytest.mark.real_data
def test_seven_models_raw_predictions_become_the_same_table(data, tmp_path):
    run = import_healthbranches(
        data / "healthbranches" / "predictions_v3_full", to=tmp_path / "run"
    )
    assert medassay.verify(run.path).ok
    found = contexts_study([run])
    rows = {(r.model, r.setting): r for r in found.rows if r.category == "all"}
    assert len({model for model, _ in rows}) == 7
    assert {setting for _, setting in rows} == {"zero_shot", "rag", "zero_shot:quiz_baseline"}
    # As the data card counts it by hand, whatever the case of the letter.
    assert round(rows["mistral", "zero_shot"].score, 3) == 0.563
    assert rows["llama2:7b", "zero_shot"].rank != 1
    gains = {one.model: one for one in found.gains}
    assert set(gains) == {model for model, _ in rows}
    assert gains["llama2:7b"].different
    assert gains["llama2:7b"].value == pytest.approx(
        100 * (rows["llama2:7b", "rag"].score - rows["llama2:7b", "zero_shot"].score)
    )
    assert len({r.category for r in found.rows}) == 1 + 16
    assert any(r.few for r in found.rows)


@pytest.mark.real_data
def test_what_the_authors_left_unread_is_an_outcome_not_a_loss(data, tmp_path):
    run = import_healthbranches(
        data / "healthbranches" / "predictions_v3_full", to=tmp_path / "run"
    )
    trials = list(read_jsonl(run.path / "trials.jsonl"))
    assert len(trials) == 6300
    outcomes = Counter(t["outcome"] for t in trials)
    assert set(outcomes) <= {"answered", "unparsed", "truncated", "refused"}
    keys = Counter(item["expected"] for item in read_jsonl(run.path / "items.jsonl"))
    assert keys["E"] / 300 > 0.5  # the position bias that the card warns of


def raw(folder, questions, predictions):
    folder.mkdir()
    for name, rows in (("questions.csv", questions), ("raw_predictions.csv", predictions)):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


QUESTION = {
    "row": "1",
    "question": "What?",
    "options": "['a', 'b', 'c', 'd', 'e']",
    "correct_option": "B",
    "condition": "gout",
}
SAID = {
    "row": "1",
    "run": "quiz",
    "condition_setting": "zero_shot",
    "model": "m",
    "raw_prediction": "B",
    "correct_option": "B",
}


@pytest.mark.parametrize(
    ("predictions", "says"),
    [
        ([SAID, SAID], "row 3: a second prediction of m for row 1"),
        ([{**SAID, "row": "7"}], "row 2: row '7' is not among those of questions.csv"),
        ([{**SAID, "condition_setting": "magic"}], "expected a model and a condition_setting"),
        ([{"row": "1", "model": "m"}], "raw_predictions.csv"),
    ],
)
def test_broken_predictions_are_told_by_row_and_leave_nothing(tmp_path, predictions, says):
    folder = raw(tmp_path / "in", [QUESTION], predictions)
    with pytest.raises(InputError) as caught:
        import_healthbranches(folder, to=tmp_path / "run")
    assert says in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_run_of_one_item_says_that_it_is_too_little(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items()[:1])
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    with pytest.raises(InputError, match="no row has two items with a score"):
        contexts_study([run])


def test_questions_without_rows_and_odd_categories_are_refused(tmp_path):
    bare = {k: v for k, v in QUESTION.items() if k != "row"}
    with pytest.raises(InputError, match="row"):
        import_healthbranches(raw(tmp_path / "a", [bare], [SAID]), to=tmp_path / "run")
    for n, text in enumerate(("[]", '"x"', "{", '{"gout": "../x"}', '{"gout": ["x"]}', "\xff")):
        folder = raw(tmp_path / f"b{n}", [QUESTION], [SAID])
        (folder / "category.json").write_text(text, encoding="latin-1")
        with pytest.raises(InputError, match=r"category\.json"):
            import_healthbranches(folder, to=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.local_model
def test_the_demo_asks_real_models_in_every_setting(tmp_path, capsys, monkeypatch):
    from importlib.resources import files

    from medassay.cli.demo import _compare_contexts
    from medassay.cli.output import out

    monkeypatch.setattr(out, "json", False)
    for file in (files("medassay.cli") / "demo_rag").iterdir():
        text = file.read_text(encoding="utf-8")
        text = text.replace("seed = ", "sample = 2\nseed = ")
        text = re.sub(r'"max_tokens": \d+', '"max_tokens": 4', text)
        if file.name == "open.toml":  # the quiz is asked in all of them
            text = re.sub("settings = .*", 'settings = ["zero_shot"]', text)
        text = re.sub(
            r"\bk = \d+", "k = 1", text
        )  # short prompts: most of the time is reading them
        (tmp_path / file.name).write_text(text)
    _compare_contexts(tmp_path)
    told = capsys.readouterr().out
    assert "own source retrieved" in told
    boards = [leaderboard(p) for p in sorted((tmp_path / "runs").iterdir())]
    assert {row["setting"] for board in boards for row in board.domains["overall"]} == set(SETTINGS)
    assert (tmp_path / "contexts" / "index.html").exists()
