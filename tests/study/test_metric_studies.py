"""Studies of metrics, settings and banks: known answers on small made-up data, real data where it
is known, and what is refused.
"""

import csv
import io
import json

import numpy as np
import pytest
from tests import makers
from tests.optional import scipy_stats

import medassay
from medassay.bank.folder import load_bank
from medassay.cli.main import call
from medassay.errors import IncompleteError, InputError, ModelError
from medassay.exchange.predictions import import_predictions
from medassay.score.text import rouge
from medassay.statistic.metric.spread import resilience
from medassay.study.answers import StudyAnswer, answers_of, gauges_named, sample_answers
from medassay.study.bank import bank_study
from medassay.study.bank_sheet import bank_sheet
from medassay.study.item_check import checkup, checkup_sheet, read_answers
from medassay.study.rephrase import REPHRASINGS, Rephraser
from medassay.study.settings import settings_sheet, settings_study
from medassay.study.stability import (
    consistency_sheet,
    consistency_study,
    resilience_sheet,
    resilience_study,
)

REFERENCE = "The patient has chest pain and takes aspirin every day"


def text_items(n=12):
    return [
        {
            "id": f"t{i:02}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Question {i}?",
            "reference": f"{REFERENCE}, case {i}.",
            "source": "written for a test",
        }
        for i in range(n)
    ]


@pytest.fixture
def text_run(tmp_path):
    makers.write_bank(tmp_path / "bank", text_items())
    replies = {f"t{i:02}": f"{REFERENCE}, case {i}." if i % 2 else "He is well." for i in range(12)}
    makers.write_models(
        tmp_path,
        {"id": "m", "provider": "fake", "script": {"replies": replies}},
        {
            "id": "words",
            "provider": "fake",
            "script": {"reply": "In other words: pain in the chest."},
        },
        {"id": "dead", "provider": "fake", "script": {"fail_every": 1}},
    )
    return medassay.run(makers.write_plan(tmp_path, task="text", models=["m"]))


def rephraser(name, workspace):
    return Rephraser(name, workspace / "models.json", secrets={}, workspace=workspace)


def test_resilience_is_of_the_rephrasings_alone(text_run, tmp_path):
    study = resilience_study(answers_of(text_run), rephraser("words", tmp_path), {}, tmp_path)
    # The script says the same whatever it is given: nothing moves within an answer.
    assert study.same == study.n == 12
    assert all(one.mean == 0 for one in study.metrics.values())
    assert study.scripted
    assert "No metric moved" in resilience_sheet(study).reading


def test_resilience_by_hand(tmp_path, monkeypatch):
    answers = [
        StudyAnswer(item=str(i), model="m", repeat=0, text=f"text {i}", reference="a b c d")
        for i in range(2)
    ]
    said = {"text 0": ("a b c d", "a b c", "a b", "a", "x", "a b c d"), "text 1": ("a",) * 6}
    makers.write_models(tmp_path, {"id": "w", "provider": "fake", "temperature": 0.5})
    one = rephraser("w", tmp_path)
    monkeypatch.setattr(one, "rephrase", lambda texts: said)
    study = resilience_study(answers, one, {}, tmp_path)
    values = [rouge(text, "a b c d").rouge1 for text in said["text 0"]]
    assert study.metrics["rouge1"].range == pytest.approx(max(values) - min(values))
    moved = study.metrics["rouge1"]
    assert moved.mean == pytest.approx(np.var(values) / 1.0 / 2)
    table = np.array([values, [rouge("a", "a b c d").rouge1] * 6])
    wanted = resilience(table, span=float(np.ptp(table)))
    assert (moved.mean_squared, moved.meta_variance) == (wanted.mean_squared, wanted.meta_variance)
    assert moved.mean != moved.meta_variance
    assert one.spec.temperature == 0.5


def test_a_rephraser_that_fails_ends_the_study_and_keeps_what_was_said(text_run, tmp_path):
    with pytest.raises(
        ModelError, match=r"model 'dead' does not answer: .*scripted failure in passing"
    ):
        rephraser("dead", tmp_path).rephrase(["one text"])
    makers.write_models(
        tmp_path,
        {
            "id": "weak",
            "provider": "fake",
            "script": {"reply": "Said.", "fail_items": ["rephrasing-1"]},
        },
    )
    with pytest.raises(IncompleteError, match=r"rephraser 'weak'.*the same command goes on"):
        rephraser("weak", tmp_path).rephrase(["one text", "two texts"])


def test_a_greedy_rephraser_is_asked_at_temperature_one(tmp_path):
    makers.write_models(tmp_path, {"id": "w", "provider": "fake", "script": {"reply": "Said."}})
    one = rephraser("w", tmp_path)
    assert one.spec.temperature == 1.0
    assert one.rephrase(["b", "a", "a"]) == {
        "a": ("Said.",) * REPHRASINGS,
        "b": ("Said.",) * REPHRASINGS,
    }
    with pytest.raises(InputError, match="'nobody' is not an enabled entry"):
        rephraser("nobody", tmp_path)


def drawn(values, metric="rouge1", model="m"):
    return [
        StudyAnswer(
            item=f"i{at}", model=model, repeat=r, text="x", reference="y", values={metric: v}
        )
        for at, row in enumerate(values)
        for r, v in enumerate(row)
    ]


def test_consistency_by_hand_and_metrics_that_can_be_negative():
    study = consistency_study(drawn([[0.2, 0.4, 0.3], [0.0, 0.0, 0.0]]))
    told = study.metrics["rouge1"]
    assert told.cv == pytest.approx(np.std([0.2, 0.4, 0.3]) / 0.3)
    assert (told.zero_mean, told.n) == (1, 2)
    assert told.variance == pytest.approx(np.var([0.2, 0.4, 0.3]) / 2)
    signed = consistency_study(drawn([[-0.2, 0.1, 0.3]], metric="bleurt"))
    assert signed.metrics["bleurt"].cv is None
    assert "consistency" in consistency_sheet(study).name


def test_consistency_averages_models_within_a_prompt():
    both = drawn([[0.2, 0.4]]) + drawn([[0.5, 0.5]], model="other")
    cv = np.std([0.2, 0.4]) / 0.3
    assert consistency_study(both).metrics["rouge1"].cv == pytest.approx(cv / 2)


def test_consistency_needs_repeats(text_run):
    with pytest.raises(InputError, match="repeats = 11"):
        consistency_study(answers_of(text_run))


def test_a_sample_keeps_whole_items():
    answers = drawn([[0.1, 0.2]] * 30)
    kept = sample_answers(answers, 10)
    assert len({a.item for a in kept}) == 10
    assert len(kept) == 20
    assert sample_answers(answers, None) == answers


def table(folder, rows, name="t.csv"):
    path = folder / name
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue())
    return path


def labelled(n=40):
    words = REFERENCE.split()
    return [
        {
            "prediction": " ".join(words[: 1 + i % len(words)]),
            "reference": REFERENCE,
            "item": str(i // 4),
            "good": (1 + i % len(words)) / len(words),
            "bad": -(1 + i % len(words)),
        }
        for i in range(n)
    ]


def test_the_check_up_finds_what_agrees_with_people_and_what_says_the_same(tmp_path):
    answers = read_answers(table(tmp_path, labelled()), {}, ["good", "bad"])
    study = checkup(answers, {}, tmp_path)
    good = {one.metric: one for one in study.people["good"]}
    assert good["rouge1"].pearson > 0.9
    assert good["rouge1"].lo <= good["rouge1"].pearson <= good["rouge1"].hi
    scores = [rouge(answer.text, answer.reference).rouge1 for answer in answers]
    labels = [answer.people["good"] for answer in answers]
    assert good["rouge1"].spearman == pytest.approx(scipy_stats.spearmanr(scores, labels).statistic)
    assert good["rouge1"].kendall == pytest.approx(scipy_stats.kendalltau(scores, labels).statistic)
    bad = {one.metric: one for one in study.people["bad"]}
    assert bad["rouge1"].pearson == pytest.approx(-good["rouge1"].pearson, abs=1e-9)
    assert ("rouge1", "rouge1_unicode") in study.same
    assert (study.n, study.n_items) == (40, 10)
    files = checkup_sheet(study).files()
    assert "people-good.svg" in files


@pytest.mark.parametrize(
    ("columns", "people", "says"),
    [
        ({"prediction": "nope"}, [], r"no column 'nope' \(prediction\); found prediction"),
        (
            {"answer": "x"},
            [],
            "'answer' is unknown; known are prediction, reference, item, model",
        ),
        ({"item": "Idd"}, [], r"no column 'Idd' \(item\); found prediction"),
        ({}, ["nope"], "no column 'nope'"),
        ({}, ["reference"], "row 2: reference: 'The patient .*'; expected a number"),
    ],
)
def test_a_table_that_cannot_be_checked_is_refused(tmp_path, columns, people, says):
    with pytest.raises(InputError, match=says):
        read_answers(table(tmp_path, labelled()), columns, people)


def test_labels_in_another_table_go_line_by_line(tmp_path):
    rows = labelled()
    first = table(tmp_path, [{k: r[k] for k in ("prediction", "reference")} for r in rows])
    other = table(tmp_path, [{"good": r["good"]} for r in rows], "l.csv")
    assert [a.people for a in read_answers(first, {}, ["good"], other)][3] == {
        "good": rows[3]["good"]
    }
    short = table(tmp_path, [{"good": 1}], "s.csv")
    with pytest.raises(InputError, match="1 rows for 40"):
        read_answers(first, {}, ["good"], short)


def test_labels_in_another_order_are_refused_where_both_tables_name_the_items(tmp_path):
    rows = labelled()
    first = table(tmp_path, [{k: r[k] for k in ("item", "prediction", "reference")} for r in rows])
    labels = [{"item": r["item"], "good": r["good"]} for r in rows]
    same = read_answers(first, {}, ["good"], table(tmp_path, labels, "same.csv"))
    assert same[3].people == {"good": rows[3]["good"]}
    turned = table(tmp_path, labels[::-1], "turned.csv")
    with pytest.raises(InputError, match=r"turned\.csv row 2: item '9', and '0' in"):
        read_answers(first, {}, ["good"], turned)


def test_too_few_answers_say_nothing(tmp_path):
    with pytest.raises(InputError, match="3 answers with a reference; at least 10"):
        checkup(read_answers(table(tmp_path, labelled(3)), {}, []), {}, tmp_path)


def test_unknown_metrics_are_refused():
    with pytest.raises(InputError, match="'nope' is unknown; known are bertscore"):
        gauges_named(["nope"])


@pytest.mark.real_data
def test_the_worked_example_of_four_hundred_summaries(data, tmp_path):
    """Pearson of ROUGE-1 with FactualF1 .41 and with OmissionRate -.46, as the data's card has
    them; nothing sees hallucination.
    """
    folder = data / "mts_dialog/correlation_study"
    answers = read_answers(
        folder / "MTS-Dialog-Automatic-Summaries-ValidationSet.csv",
        {"prediction": "Automatic Summary", "reference": "Reference Summary", "item": "ID"},
        ["FactualF1", "OmissionRate", "HallucinationRate"],
        folder / "MTS-Dialog-Manual-Scores4CorrelationStudy.csv",
    )
    study = checkup(answers, {}, tmp_path)
    found = {label: {o.metric: o.pearson for o in rows} for label, rows in study.people.items()}
    assert round(found["FactualF1"]["rouge1"], 2) == 0.41
    assert round(found["OmissionRate"]["rouge1"], 2) == -0.46
    assert study.people["FactualF1"][0].metric == "chrf"
    assert max(abs(r) for r in found["HallucinationRate"].values()) < 0.15
    assert "No metric tells HallucinationRate" in checkup_sheet(study).reading


def test_settings_are_paired_item_by_item(tmp_path):
    items = makers.law_items()
    dev = [{**item, "id": f"dev-{item['id']}", "split": "dev"} for item in items[:4]]
    makers.write_bank(tmp_path / "bank", items + dev)
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    few = medassay.run(
        makers.write_plan(tmp_path, settings=["zero_shot", "few_shot"], few_shot_k=3)
    )
    shuffled = medassay.run(makers.write_plan(tmp_path, shuffle_options=True))
    study = settings_study([few, shuffled])
    factors = {(one.factor, one.with_, one.without) for one in study.effects}
    assert ("few-shot", "3 examples", "none") in factors
    assert ("option order", "shuffled", "as in the bank") in factors
    for one in study.effects:
        assert one.difference == pytest.approx(one.mean_with - one.mean_without)
        assert one.lo <= one.difference <= one.hi
        assert one.n == len(items)
        assert one.p_holm >= one.p
    assert any(one.lo < one.hi for one in study.effects)
    assert "Few-shot" in settings_sheet(study).reading
    asked = {one.factor: one.asked for one in study.effects}
    assert asked["few-shot"].startswith("plain, options as in the bank")
    assert asked["option order"].startswith("plain, no examples")


def test_runs_that_differ_in_nothing_are_refused(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(tmp_path))
    with pytest.raises(InputError, match="no two rows of a model differ"):
        settings_study([run])


def predictions(folder, wrong_key=3):
    """Write six models of rising strength on forty items.

    The strong ones agree on A where the key says B.
    """
    rng = np.random.default_rng(3)
    rows = []
    for m in range(6):
        for i in range(40):
            key = "B"
            right = rng.random() < 0.35 + 0.12 * m
            said = "A" if i == wrong_key else key if right else "C"
            if i == wrong_key and m < 2:
                said = "B"
            rows.append(
                {
                    "item": f"q{i:02}",
                    "model": f"m{m}",
                    "domain": "d",
                    "prediction": said,
                    "key": key,
                }
            )
    return table(folder, rows)


def test_a_wrong_key_is_suspected_when_strong_models_agree_on_another_answer(tmp_path):
    columns = {c: c for c in ("item", "model", "domain", "prediction", "key")}
    run = import_predictions(predictions(tmp_path), columns, runs=tmp_path / "runs")
    record = bank_study([run], [])
    study = makers.plain(record)
    first = study["suspects"][0]
    assert (first["item"], first["key"], first["instead"], first["agree"]) == (
        "d/q03",
        "B",
        "A",
        True,
    )
    assert (first["solved_by"], first["n_models"]) == (2, 6)
    item = next(one for one in study["items"] if one["item"] == "d/q03")
    assert item["discrimination"] < 0
    assert item["difficulty"] == pytest.approx(2 / 6)
    assert study["review"][0]["reason"] == "suspected wrong key"
    assert b"suspected wrong key" in bank_sheet(record).files()["bank.csv"]


def bank_of(folder, name, items):
    makers.write_bank(folder / name, items, name=name)
    return load_bank(folder / name)


def choice(name, question, split="test", options=("one", "two", "three"), expected="A", **more):
    return {
        "id": name,
        "domain": "law",
        "question": question,
        "options": list(options),
        "expected": expected,
        "source": "written for a test",
        "split": split,
        **more,
    }


LONG = (
    "A man of sixty years comes with pain in his chest that began two hours ago and goes to his"
    " left arm"
)


def test_duplicates_and_leaks_are_found_within_and_across_banks(tmp_path):
    first = bank_of(
        tmp_path,
        "one",
        [
            choice("a", f"{LONG}. What now?"),
            choice("b", f"{LONG}. What next?", split="dev"),
            choice("c", "Which court?"),
        ],
    )
    second = bank_of(
        tmp_path,
        "two",
        [choice("x", f"{LONG}. What now?"), choice("y", "Something else entirely here?")],
    )
    study = makers.plain(bank_study([], [first, second]))
    assert [(one["first"], one["second"]) for one in study["leaks"]] == [("one/a", "one/b")]
    assert {(one["first"], one["second"], one["across"]) for one in study["duplicates"]} == {
        ("one/a", "two/x", True),
        ("one/b", "two/x", True),
    }
    same = next(one for one in study["duplicates"] if one["first"] == "one/a")
    assert (same["likeness"], same["options_too"]) == (1.0, True)


def test_the_text_of_a_synthetic_item_is_not_shown(tmp_path):
    secret = [choice(n, f"{LONG}. Secret?", kind="synthetic") for n in ("a", "b")]
    study = makers.plain(bank_study([], [bank_of(tmp_path, "one", secret)]))
    assert study["duplicates"][0]["text"] == "(private)"
    assert "Secret" not in json.dumps(study)


def test_the_text_of_a_bank_that_may_not_leave_is_not_shown(tmp_path):
    makers.write_bank(
        tmp_path / "one",
        [choice(n, f"{LONG}. Secret?") for n in ("a", "b")],
        name="one",
        may_leave=False,
    )
    assert "Secret" not in json.dumps(makers.plain(bank_study([], [load_bank(tmp_path / "one")])))


def test_open_answers_tell_nothing_of_keys(text_run):
    with pytest.raises(InputError, match="no closed answer"):
        bank_study([text_run], [])


def test_private_answers_go_to_no_rephraser_elsewhere(tmp_path, capsys):
    makers.write_bank(tmp_path / "bank", text_items(), may_leave=False)
    makers.write_models(
        tmp_path,
        {"id": "m", "provider": "fake", "script": {"reply": "He is well."}},
        {"id": "far", "provider": "openai_compatible", "url": "http://127.0.0.1:9/v1"},
    )
    run = medassay.run(makers.write_plan(tmp_path, task="text", models=["m"]))
    for command in ("resilience", "metrics"):
        base = [
            "--rephraser",
            "far",
            "--models",
            str(tmp_path / "models.json"),
            "--workspace",
            str(tmp_path),
        ]
        assert call(["study", command, str(run.path), *base]) == 3
        assert "may not leave" in capsys.readouterr().err


def test_a_label_that_is_infinite_is_refused(tmp_path):
    rows = labelled()
    rows[2]["good"] = "inf"
    with pytest.raises(InputError, match="row 4: good: 'inf'"):
        read_answers(table(tmp_path, rows), {}, ["good"])


def test_other_entries_or_banks_are_not_compared_as_settings(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    first = medassay.run(makers.write_plan(tmp_path))
    makers.write_models(tmp_path, makers.fake(reply="A"))
    second = medassay.run(makers.write_plan(tmp_path, shuffle_options=True))
    with pytest.raises(InputError, match="no two rows of a model differ"):
        settings_study([first, second])


def test_habits_of_keys_are_told(tmp_path):
    items = [
        choice(
            f"i{n:03}",
            f"Question {n}?",
            options=(f"a rather long answer {n}", f"b{n}", f"c{n}"),
        )
        for n in range(60)
    ]
    [habits] = bank_study([], [bank_of(tmp_path, "one", items)]).keys
    assert habits.counts == [60, 0, 0]
    assert habits.p_positions < 1e-9
    assert (habits.longest, habits.p_longest < 1e-9) == (1.0, True)


def test_options_that_are_always_the_same_have_no_positions(tmp_path):
    items = [choice(f"i{n}", f"Question {n}?", options=("yes", "no", "maybe")) for n in range(9)]
    assert bank_study([], [bank_of(tmp_path, "one", items)]).keys == []


def test_nothing_at_all_is_refused():
    with pytest.raises(InputError, match="name runs"):
        bank_study([], [])


def test_the_commands_write_pages_and_print_json(text_run, tmp_path, capsys):
    models, out = str(tmp_path / "models.json"), tmp_path / "out"
    base = ["--models", models, "--workspace", str(tmp_path)]
    run = str(text_run.path)
    for number, command in enumerate(
        (
            ["study", "resilience", run, "--rephraser", "words", "--sample", "3", *base],
            ["study", "metrics", run, "--rephraser", "words", *base],
            ["study", "bank", str(tmp_path / "bank")],
        )
    ):
        assert call([*command, "--json", "--to", str(out / str(number))]) == 0
        assert json.loads(capsys.readouterr().out)["page"].endswith("index.html")
        assert (out / str(number) / "index.html").is_file()
    assert call(["study", "consistency", run]) == 3
    assert call(["metrics", "list", "--json"]) == 0
    assert {"bleurt", "rouge1"} <= {
        m["name"] for m in json.loads(capsys.readouterr().out)["metrics"]
    }
