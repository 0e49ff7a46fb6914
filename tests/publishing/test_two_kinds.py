"""A board of choice and open questions with a baseline: what pages say of each is true of each."""

import csv
import re
from html import unescape

import pytest
from tests import makers
from tests.runner.judged_plans import workspace

import medassay
from medassay.exchange.review_entries import run_entries
from medassay.runner.preview import preview
from medassay.study.judges import compare_with_people
from medassay.viewer.place import ViewedPlace

N_OPEN, N_CHOICE = 6, 12


def text_of(path):
    """Return the text of a page in one line."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", path.read_text())).split())


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    choice = [
        {**item, "domain": ("icu", "ward")[at % 2]}
        for at, item in enumerate(makers.many_items(N_CHOICE))
    ]
    marked = [{**item, "harm": True} for item in makers.open_items(N_OPEN, "clinic")]
    replies = {item["id"]: item["facts"][0]["text"] for item in marked}
    replies |= {item["id"]: item["expected"] for item in choice}
    models = [makers.fake(name, replies=replies) for name in ("first", "second")]
    models.append({"id": "chance", "provider": "baseline", "model": "random"})
    folder = tmp_path_factory.mktemp("two")
    plan = workspace(folder, [*choice, *marked], models, makers.judges(), demonstration=True)
    card = folder / "bank/bank.toml"
    card.write_text(card.read_text().replace('["law"]', '["clinic", "icu", "ward"]'))
    plan.write_text(plan.read_text().replace('task = "open"\n', ""))
    return plan


@pytest.fixture(scope="module")
def run(plan):
    return medassay.run(plan, secrets={})


@pytest.fixture(scope="module")
def board(run, tmp_path_factory):
    return medassay.publish(run, tmp_path_factory.mktemp("site")).parent


def test_partly_wrong_answers_are_not_told_as_no_wrong_ones(board):
    model = text_of(board / "model/first/index.html")
    sentence = f"0 of {N_OPEN} answers to questions where a wrong answer could harm a patient have"
    assert f"Fact score: {sentence} the worst score, partly wrong ones not counted" in model
    harm = text_of(board / "harm/index.html")
    assert f"0 of {N_OPEN} at the worst score" in harm
    assert "only those at the worst score are counted" in harm


def test_a_baseline_is_no_other_model_and_has_no_list_of_failures(board):
    page = (board / "model/first/index.html").read_text()
    others = re.findall(r'data-worst.*?data-label="Mean of the other answers to it">([^<]+)', page)
    assert set(others) == {"33.3"}  # of `second`, as good as this one, not of `chance`
    assert "data-worst" not in (board / "model/chance/index.html").read_text()


def test_where_no_domain_ranks_the_leads_do_not_say_that_nobody_does(board):
    text = text_of(board / "leads/index.html")
    assert "Accuracy: No single domain ranks any model." in text
    assert "Fact score: No model is ranked." in text


def test_bars_of_a_model_are_as_long_as_its_own_scores(board):
    page = (board / "model/first/index.html").read_text()
    rows = re.findall(r'<tr role="row" data-score="([^"]+)".*?data-level="([^"]+)"', page, re.S)
    assert rows
    assert all(score == level for score, level in rows)


def test_the_viewer_counts_all_trials_of_a_baseline_too(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = ViewedPlace(str(run.path))
    shown = place.summary(run.path.name)
    assert shown.trials == shown.expected == len(run.trials()) == 3 * (N_OPEN + N_CHOICE)
    place.stop()


def test_no_judge_is_counted_for_a_baseline(plan):
    shown = preview(plan)
    judges = [model for model in shown.models if model.model.startswith("judge-")]
    assert {model.calls + model.stored for model in judges} <= {2 * N_OPEN}


def test_physicians_are_not_asked_about_a_baseline(run):
    entries = run_entries(run, "answer")
    assert {entry.hidden["trial"]["model"] for entry in entries} == {"first", "second"}


def test_labels_of_choices_are_left_out_when_a_judge_is_held_against_people(run, tmp_path):
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["domain", "model", "setting", "item", "score"])
        for at in range(N_OPEN):
            table.writerow(["clinic", "first", "zero_shot", f"open-{at:03}", 0.5])
        table.writerow(["icu", "first", "zero_shot", makers.many_items(1)[0]["id"], 1])
    result = compare_with_people(run, "judge-alpha", path)
    assert (result.labelled, result.unjudged) == (N_OPEN, 1)
