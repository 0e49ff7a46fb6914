"""Runs that compare answers with references: every metric with its interval, what is absent, what
is empty, resumed and verified.
"""

import json

import pytest
from tests import makers
from tests.runner.text_plans import GOOD, POOR, REFERENCE, fake, items

import medassay
from medassay.errors import InputError
from medassay.kinds.catalog import TASKS
from medassay.runner.measure import text_measures_of
from medassay.runner.rescore import rescore
from medassay.score.text import chrf
from medassay.storage.measure import MeasureStore, pair_key


@pytest.fixture
def plan(tmp_path):
    def write(*models, **keys):
        makers.write_bank(tmp_path / "bank", items())
        makers.write_models(tmp_path, *models)
        names = [m["id"] for m in models]
        return makers.write_plan(tmp_path, models=names, **{"task": "medtext", **keys})

    return write


def rows(run):
    return {r["model"]: r for r in medassay.leaderboard(run).domains["overall"]}


def values(run, name):
    return {m: e and e["score"] for m, e in rows(run)[name]["text"]["metrics"].items()}


def test_an_answer_ends_at_the_first_blank_line(plan):
    run = medassay.run(plan(fake("good", GOOD)))
    trials = [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]
    assert {t["value"] for t in trials} == {f"{REFERENCE} Case {i}." for i in range(12)}
    assert rows(run)["good"]["text"]["metrics"]["rouge1"]["score"] == 1.0


def test_what_is_empty_scores_the_worst_and_is_counted(plan):
    run = medassay.run(plan(fake("poor", POOR)))
    row = rows(run)["poor"]
    values = [chrf("The patient is well.", f"{REFERENCE} Case {i}.") for i in range(2, 12)]
    assert row["score"] == pytest.approx(sum(values) / 12)
    told = row["text"]
    assert told["left_out"] == 2
    assert told["metrics"]["chrf"]["score"] == pytest.approx(row["score"])
    assert told["metrics"]["chrf"]["n"] == 12
    published = told["as_published"]["chrf"]
    assert (published["score"], published["n"]) == (pytest.approx(sum(values) / 10), 10)


def test_every_metric_has_interval_standard_error_and_n(plan):
    run = medassay.run(plan(fake("poor", POOR), fake("good", GOOD)))
    for row in rows(run).values():
        for estimate in row["text"]["metrics"].values():
            if estimate is not None:
                assert estimate["lo"] <= estimate["score"] <= estimate["hi"]
                assert estimate["se"] is not None


def test_a_metric_without_its_model_is_unavailable_never_zero(plan, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    run = medassay.run(plan(fake("good", GOOD)))
    told = run.statistics.document["text"]
    assert "bleurt" in told["unavailable"]
    assert "bleurt" not in told["metrics"]
    assert "bleurt" not in rows(run)["good"]["text"]["metrics"]


@pytest.mark.local_model
def test_metrics_by_models_are_computed_once_kept_and_verified(
    plan, encoder, tmp_path, monkeypatch
):
    metrics = [f"bertscore={encoder}", f"moverscore={encoder}"]
    path = plan(fake("good", GOOD), fake("poor", POOR), metrics=metrics)
    run = medassay.run(path)
    good, poor = (rows(run)[name]["text"]["metrics"] for name in ("good", "poor"))
    assert good["bertscore"]["score"] == pytest.approx(1.0, abs=1e-5)
    assert poor["bertscore"]["score"] < 1
    assert (poor["bertscore"]["n"], poor["bertscore"]["nulls"]) == (10, 2)
    assert poor["moverscore"]["n"] == 12  # its scale has a worst end
    assert medassay.verify(run.path).ok
    kept = {p.name: p.read_bytes() for p in (tmp_path / "measures").iterdir()}
    monkeypatch.setattr("medassay.score.bertscore.BertScore.score", None)
    monkeypatch.setattr("medassay.score.moverscore.MoverScore.score", None)
    again = rescore(run)
    for name in ("good", "poor"):
        assert values(again, name) == values(run, name)
    assert {p.name: p.read_bytes() for p in (tmp_path / "measures").iterdir()} == kept


@pytest.mark.local_model
def test_measuring_goes_on_where_it_was_cut_off(plan, encoder, tmp_path, monkeypatch):
    from medassay.score.bertscore import BertScore

    path = plan(fake("good", GOOD), fake("poor", POOR), metrics=[f"bertscore={encoder}"])
    monkeypatch.setattr("medassay.runner.measure._BATCH", 4)
    whole, calls = BertScore.score, []

    def cut(self, pairs):
        calls.append(len(pairs))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(self, pairs)

    monkeypatch.setattr(BertScore, "score", cut)
    with pytest.raises(KeyboardInterrupt):
        medassay.run(path)
    run = medassay.run(path)
    assert sum(calls) - calls[2] == 22  # 12 good pairs and 10 poor ones, none twice
    assert rows(run)["poor"]["text"]["metrics"]["bertscore"]["n"] == 10


def test_a_torn_line_of_kept_values_is_dropped(tmp_path):
    store = MeasureStore(tmp_path, "m@1")
    store.put({"a": [1.0], "b": [None]})
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + b'{"key": "c", "val')
    again = MeasureStore(tmp_path, "m@1")
    assert (again.get("a"), again.get("b"), again.get("c")) == ((1.0,), (None,), None)
    again.put({"c": [3.0], "a": [9.0]})
    assert MeasureStore(tmp_path, "m@1").get("a") == (1.0,)
    assert pair_key("a", "b") != pair_key("b", "a")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"metrics": ["bertsore"]},
            "'bertsore' is no metric that needs a model; known are bertscore",
        ),
        ({"metrics": ["bertscore=/nowhere"]}, "/nowhere: no folder with a config.json"),
    ],
)
def test_metrics_that_cannot_be_are_refused_before_any_call(plan, keys, says):
    with pytest.raises(InputError, match=says):
        medassay.run(plan(fake("good", GOOD), **keys))


def test_metrics_of_a_task_that_compares_no_texts_are_refused():
    with pytest.raises(InputError, match="task 'closed' compares no texts; leave 'metrics' out"):
        text_measures_of(("bleurt",), TASKS["closed"])


def test_a_metric_can_be_left_out(plan):
    run = medassay.run(plan(fake("good", GOOD), metrics=["bleurt=none"]))
    assert "bleurt" not in run.statistics.document["text"]["unavailable"]


@pytest.mark.local_model
def test_local_models_get_plain_prompts_that_end_at_blank_lines(plan, weights):
    model = {
        "id": "tiny",
        "provider": "transformers",
        "path": weights,
        "device": "cpu",
        "max_tokens": 8,
    }
    run = medassay.run(plan(model))
    entry = run.manifest_document["models"]["tiny"]
    assert (entry["protocol"], entry["stop"]) == ("completions", ["\n\n"])
    chat = medassay.run(plan(model, chat_template=True))
    assert chat.manifest_document["task"] == "medtext_chat"
    assert chat.manifest_document["models"]["tiny"]["protocol"] == "chat"
