"""Suites: one command over many tasks, what is absent told, resumed, reported in the published
layout.
"""

import csv
import io
import json
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests import makers
from tests.suite.suite_data import GOOD, LETTERS, MODELS, fake, small_sets, write

from medassay.bank.catalog import BANKS
from medassay.core.records.estimate import Second
from medassay.core.records.model import ModelSpec
from medassay.core.records.relaxed import RelaxedSetting
from medassay.errors import IncompleteError, InputError
from medassay.kinds.catalog import TASKS
from medassay.report.document import Grid, ReportDocument, Section
from medassay.suite.catalog import BENCHMARKS, SUITES
from medassay.suite.plan import SuitePlan, load_suite_plan
from medassay.suite.report import cards, cell, suite_sheet
from medassay.suite.results import SuiteResult, language_gaps, results_of, weighted_means
from medassay.suite.run import SuiteContext, open_suite, run_suite, suite_models


@pytest.fixture
def data(tmp_path):
    return small_sets(tmp_path)


@pytest.fixture
def means(tmp_path, data):
    said = []
    made = SuiteContext(data=data, workspace=tmp_path / "work", secrets={}, tell=said.append)
    return made, said


def plan(*suite, **keys):
    wanted = {
        "models": ("good", "poor"),
        "metrics": ("bertscore=none", "moverscore=none", "bleurt=none"),
    }
    return SuitePlan(suite=suite, **{**wanted, **keys})


def test_every_benchmark_has_a_bank_a_task_and_a_stand_in_that_exists():
    for name, one in BENCHMARKS.items():
        assert one.bank in BANKS, name
        assert one.task in TASKS, name
        assert not one.stands_in_for or one.stands_in_for in BENCHMARKS
    for members in SUITES.values():
        assert set(members) <= BENCHMARKS.keys()


def test_a_suite_runs_what_is_here_and_says_what_is_not(means):
    made, said = means
    suite = run_suite(plan("careqa_suite_open", judge="judge"), MODELS, made)
    parts = {part.benchmark: part for part in suite.parts}
    assert parts["careqa_open"].runs.keys() == {"answers", "prometheus"}
    assert parts["careqa_open"].absent["perplexity"] == "no model here tells likelihoods"
    assert parts["meqsum"].instead_of == "meddialog_qsumm"
    assert "bank fetch medtext" in parts["medtext"].absent["answers"]
    assert "credentialed users" in parts["mimic_repsum"].absent["answers"]
    assert any(line.startswith("unavailable: medtext") for line in said)


def test_results_have_errors_intervals_and_ranks(means):
    suite = run_suite(plan("careqa_open", judge="judge"), MODELS, means[0])
    found = {(one.model, one.metric): one for one in results_of(suite)}
    good, poor = found["good", "chrf"], found["poor", "chrf"]
    assert good.value == 1.0
    assert poor.value < 0.5
    assert poor.se > 0
    assert poor.lo <= poor.value <= poor.hi
    [metric] = {name for _, name in found if name.startswith("prometheus")}
    assert metric == "prometheus:judge[prometheus/1]"
    assert found["good", metric].value == 0.75
    assert good.n == poor.n == 14
    assert found["good", "bleu"].rank is None
    assert not good.ranked  # scripted models are never ranked


def test_the_same_call_goes_on_where_it_was_cut_off(means, monkeypatch):
    from medassay import pipeline

    whole, calls = pipeline.run, []

    def cut(path, **keys):
        calls.append(path.name)
        if len(calls) == 2:
            raise IncompleteError("cut")
        return whole(path, **keys)

    monkeypatch.setattr(pipeline, "run", cut)
    wanted = plan("careqa_open", "meqsum")
    with pytest.raises(IncompleteError, match="1 runs are not finished"):
        run_suite(wanted, MODELS, means[0])
    suite = run_suite(wanted, MODELS, means[0])
    assert calls == ["careqa_open-answers.toml", "meqsum-answers.toml", "meqsum-answers.toml"]
    assert all("answers" in part.runs for part in suite.parts)
    again = run_suite(wanted, MODELS, means[0])
    assert len(calls) == 3
    assert again.record == suite.record


def test_answers_that_are_not_whole_are_not_judged_and_the_rest_goes_on(means):
    models = {
        **MODELS,
        "good": fake("good", fail_items=["careqa-open-3"], replies=GOOD, letters="hash"),
    }
    with pytest.raises(IncompleteError, match="1 runs are not finished: careqa_open"):
        run_suite(plan("careqa_open", "careqa_en", judge="judge"), models, means[0])
    [folder] = (means[0].workspace / "suites").iterdir()
    parts = {part.benchmark: part for part in open_suite(folder).parts}
    assert "answers" in parts["careqa_en"].runs
    assert not parts["careqa_open"].runs.keys() & {"answers", "prometheus"}


def test_a_benchmark_that_is_refused_is_told_and_the_others_run(means):
    made, said = means
    write(
        made.data / "mimic_repsum/test.jsonl",
        [{"extractive_notes_summ": "FINDINGS: Clear lungs.     IMPRESSION: Well."}] * 3,
    )
    far = ModelSpec(
        id="far", provider="openai_compatible", url="http://127.0.0.1:9/v1", location="external"
    )
    wanted = plan("mimic_repsum", models=("far",))
    with pytest.raises(InputError, match=r"no benchmark could be asked: .*may not leave"):
        run_suite(wanted, {"far": far}, made)
    both = plan("mimic_repsum", "careqa_en", models=("far", "good"))
    with pytest.raises(IncompleteError):  # nobody is behind that endpoint
        run_suite(both, {**MODELS, "far": far}, made)
    assert any("refused: mimic_repsum" in line for line in said)


def test_another_entry_of_the_same_name_is_another_suite(means):
    first = run_suite(plan("careqa_en"), MODELS, means[0])
    other = {**MODELS, "good": fake("good", reply="A")}
    assert run_suite(plan("careqa_en"), other, means[0]).folder != first.folder


def test_a_stand_in_that_is_also_named_runs_once(means):
    suite = run_suite(plan("meddialog_qsumm", "meqsum"), MODELS, means[0])
    assert [part.benchmark for part in suite.parts] == ["meqsum"]


@pytest.mark.local_model
def test_answers_are_compared_again_when_a_metric_came(means, encoder, monkeypatch):
    wanted = plan("careqa_open", metrics=("moverscore=none", "bleurt=none"))
    monkeypatch.setenv("HF_HOME", str(means[0].workspace / "none"))
    first = run_suite(wanted, MODELS, means[0])
    monkeypatch.setattr("medassay.score.bertscore.find_model", lambda *_: Path(encoder))
    again = run_suite(wanted, MODELS, means[0])
    assert again.parts[0].runs["answers"] != first.parts[0].runs["answers"]
    [metric] = {one.metric for one in results_of(again) if one.metric.startswith("bertscore")}
    assert re.fullmatch(r"bertscore:encoder\d+@[0-9a-f]{12}/layer last", metric)
    sheet = suite_sheet(again)
    for name, text in sheet.files().items():  # whoever reads a table knows what measured
        if name.endswith((".md", ".csv", ".json", ".html")):
            assert metric.split("/")[0] in text.decode(), name
    assert "encoder" in sheet.files()["suite.tex"].decode()
    assert run_suite(wanted, MODELS, means[0]).record == again.record


def test_languages_are_compared_over_the_questions_that_both_have(means):
    suite = run_suite(plan("careqa_en", "careqa_es"), MODELS, means[0])
    for gap in language_gaps(suite):
        assert gap.n == 16
        assert gap.lo <= gap.difference <= gap.hi
    assert {gap.model for gap in language_gaps(suite)} == {"good", "poor"}


def test_means_are_weighted_by_items_and_say_what_is_lacking(means, data):
    rows = [
        {
            "id": f"i{n}",
            "question": "Q?",
            "opa": "a",
            "opb": "b",
            "opc": "c",
            "opd": "d",
            "cop": n % 4,
            "choice_type": "single",
        }
        for n in range(20)
    ]
    write(data / "medmcqa/dev.json", rows)
    suite = run_suite(plan("multimedqa"), MODELS, means[0])
    accuracy = {(o.model, o.benchmark): o for o in results_of(suite) if o.metric == "accuracy"}
    for one in weighted_means(suite):
        medqa, medmcqa = (accuracy[one.model, name] for name in ("medqa", "medmcqa"))
        assert one.score == pytest.approx((medqa.value * 12 + medmcqa.value * 20) / 32)
        assert one.lo <= one.score <= one.hi
        assert one.lacking == ["mmlu_medical", "pubmedqa"]


def test_the_report_is_written_in_every_form(means):
    suite = run_suite(plan("careqa_open", judge="judge"), MODELS, means[0])
    files = {**suite_sheet(suite).files(), **cards(suite)}
    rows = list(csv.DictReader(io.StringIO(files["suite.csv"].decode())))
    assert {row["metric"].split(":")[0] for row in rows} >= {"rouge1", "bleu", "chrf", "prometheus"}
    assert all(row["lo"] for row in rows)
    document = json.loads(files["suite.json"])
    assert len(document["results"]) == len(rows)
    tex = files["suite.tex"].decode()
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") > 0
    assert "SCRIPTED" in files["suite.md"].decode()
    assert "## Limits" in files["cards/good.md"].decode()
    published = suite_sheet(suite, as_published=True)
    assert any(
        "±" in text
        for section in published.sections
        for row in section.grids[0].rows
        for text in row
    )


def test_a_model_whose_answers_are_all_blank_keeps_its_rows_as_published(means):
    models = MODELS | {"blank": fake("blank", reply=" ")}
    suite = run_suite(plan("careqa_open", models=("good", "blank")), models, means[0])
    whole, published = (
        {o.metric: o for o in results_of(suite, as_published=asked) if o.model == "blank"}
        for asked in (False, True)
    )
    assert published.keys() == whole.keys() >= {"rouge1", "chrf"}
    assert whole["rouge1"].value == 0
    assert (published["rouge1"].value, published["rouge1"].left_out) == (None, 14)
    assert "– (all 14 left out)" in suite_sheet(suite, as_published=True).markdown()


def test_no_files_at_all_is_refused_with_how_to_get_them(means, tmp_path):
    empty = SuiteContext(data=tmp_path / "none", workspace=tmp_path / "w", secrets={})
    with pytest.raises(InputError, match=r"no benchmark has its files.*bank fetch medtext"):
        run_suite(plan("medtext"), MODELS, empty)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'suite = ["nope"]\nmodels = ["m"]',
            "suite 'nope' is unknown; suites are careqa_suite_closed",
        ),
        ('suite = []\nmodels = ["m"]', "'suite' is empty"),
        ('suite = ["multimedqa"]\nmodels = ["m", "m"]', "'models' names something twice"),
        ('suite = ["multimedqa"]\nmodels = ["m"]\nlimit = 0', "'limit' is 0; at least 1"),
        ('suite = ["multimedqa"]\nmodels = ["m"]\nlimt = 3', "unknown key 'limt'"),
        ('suite = ["multimedqa"]\nmodels = "m"', "'models': Input should be a valid"),
    ],
)
def test_a_plan_of_a_suite_that_means_nothing_is_refused(tmp_path, text, says):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        load_suite_plan(path)


def test_models_may_be_entries_folders_or_embedded(tmp_path):
    makers.write_models(tmp_path, {"id": "m", "provider": "fake"})
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/config.json").write_text("{}")
    found = suite_models(
        tmp_path / "models.json", ("m", str(tmp_path / "weights"), "embedded:smollm2")
    )
    assert {"m", "weights", "embedded:smollm2"} <= found.keys()
    with pytest.raises(InputError, match="no folder of weights"):
        suite_models(tmp_path / "none.json", ("x",))


def test_a_folder_without_a_suite_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no suite\.json"):
        open_suite(tmp_path)


def test_what_was_never_seen_is_not_shown_as_never(tmp_path):
    base = {
        "group": "g",
        "benchmark": "b",
        "title": "B",
        "metric": "accuracy",
        "better": "high",
    }
    none = SuiteResult(
        **base,
        model="m",
        setting="s",
        value=0.0,
        se=0.0,
        lo=0.0,
        hi=0.0,
        n=12,
        second=Second(method="wilson", lo=0.0, hi=0.242),
    )
    assert cell(none) == "0.000 [0.000, 0.242]"
    assert cell(none, as_published=True) == "0.000 ± 0.000"
    assert cell(None) == "–"
    assert cell(none, items=20) == "0.000 [0.000, 0.242], 12 of 20"


HOSTILE = "<script>alert(1)</script> =1+1 a_b & 50 % {x} \\input{y} \x1b[31m | `x`"


def test_hostile_names_stay_text_in_every_form():
    grid = Grid(heads=["model", "value"], rows=[[HOSTILE, "1"]], caption=HOSTILE)
    sheet = ReportDocument(
        name="s",
        title=HOSTILE,
        reading=HOSTILE,
        sections=[Section(title=HOSTILE, text=HOSTILE, grids=[grid])],
        columns=["model"],
        lines=[{"model": "=1+1"}],
        data={},
        notes=[HOSTILE],
    )
    files = sheet.files()
    assert b"<script>" not in files["index.html"]
    assert b"\x1b" not in files["index.html"] + files["s.md"] + files["s.tex"]
    assert rb"\input" not in files["s.tex"].replace(rb"\textbackslash{}input", b"")
    assert files["s.csv"].decode().splitlines()[1] == "'=1+1"


def changed(data, n):
    """Write other questions where MedQA lies."""
    rows = [
        {
            "question": f"Other case {n}?",
            "options": dict(zip(LETTERS, "abcd", strict=True)),
            "answer_idx": "B",
        }
        for n in range(n)
    ]
    write(data / "medqa/test.jsonl", rows)


def test_files_are_read_each_time_and_a_change_is_told_with_both_hashes(means):
    made, said = means
    first = run_suite(plan("medqa"), MODELS, made)
    old = first.parts[0].bank
    assert (old.source, old.items) == ("DATA/medqa", 12)
    changed(made.data, 20)
    again = run_suite(plan("medqa"), MODELS, replace(made, tell=said.append))
    new = again.parts[0].bank
    assert again.folder == first.folder
    assert new.items == 20
    [line] = [one for one in said if "changed: it makes" in one]
    assert old.content_sha256[:12] in line
    assert new.content_sha256[:12] in line
    assert "medqa: its files changed, so it is asked anew" in said
    assert {one.n for one in results_of(again) if one.metric == "accuracy"} == {20}
    folders = {one.name for one in (made.workspace / "banks").iterdir()}
    assert folders == {"medqa", f"medqa-{new.content_sha256[:12]}"}
    # Another model is asked the same new files; files that come back are known again.
    other = run_suite(plan("medqa", models=("poor",)), MODELS, made)
    assert other.parts[0].bank == new
    document = json.loads(suite_sheet(again).files()["suite.json"])
    assert document["banks"]["medqa"] == new.to_dict()
    assert new.content_sha256 in suite_sheet(again).files()["suite.md"].decode()


def test_a_bank_of_that_name_from_elsewhere_is_refused(means):
    made, _ = means
    items = [{**item, "question": "Capital of France?"} for item in makers.many_items(2, "medqa")]
    makers.write_bank(made.workspace / "banks/medqa", items, name="medqa", domains=["medqa"])
    with pytest.raises(InputError, match=r"another bank \(2 items, content .* name of MedQA"):
        run_suite(plan("medqa"), MODELS, made)
    assert not (made.workspace / "runs").exists()


def test_stored_runs_stand_where_the_files_are_gone_and_no_other_model_is_asked(means):
    made, said = means
    suite = run_suite(plan("medqa"), MODELS, made)
    empty = replace(made, data=made.workspace / "empty")
    again = run_suite(plan("medqa"), MODELS, empty)
    assert again.record == suite.record
    assert any("its stored runs stand" in line for line in said)
    with pytest.raises(InputError, match="no benchmark has its files"):
        run_suite(plan("medqa", models=("poor",)), MODELS, empty)


@pytest.mark.local_model
def test_nothing_that_a_run_holds_is_lost_in_its_suite(means, weights):
    """Likelihoods by length, Relaxed Perplexity in all its forms, flags and second intervals."""
    made, _ = means
    olaph = [
        {
            "Question": f"What helps {n}?",
            "Free_form_answer": f"Rest helps, said {n} of ten.",
            "Must_have": ["Rest helps."],
            "Nice_to_have": ["Tea helps."],
        }
        for n in range(30)
    ]
    write(made.data / "olaph_medlfqa/live_qa_MedLFQA.jsonl", olaph)
    models = {
        name: ModelSpec(
            id=name, provider="transformers", path=weights, location="local", max_tokens=4
        )
        for name in ("one", "two")
    }
    setting = RelaxedSetting(samples=3, keep=2, stride=8, max_tokens=16)
    wanted = plan("medqa", "olaph", models=("one", "two"), limit=8, relaxed_perplexity=setting)
    suite = run_suite(wanted, models, made)
    results = results_of(suite)
    for part in suite.parts:
        for kind, name in part.runs.items():
            statistics = suite.run(name).statistics.document
            for row in statistics["domains"]["overall"]:
                own = {
                    one.metric: one
                    for one in results
                    if (one.run, one.model) == (name, row["model"])
                }
                for metric, found in row.get("likelihood", {}).get("metrics", {}).items():
                    one = own[metric]
                    assert (one.value, one.lo, one.hi) == (found["score"], found["lo"], found["hi"])
                    assert msgspec.to_builtins(one.second) == found["second"]
                    assert {*found["flags"]} <= {*one.flags}
                if kind == "answers":
                    assert {f for f in row["flags"] if not f.startswith("not_ranked")} <= {
                        f for one in own.values() for f in one.flags
                    }
    names = {one.metric for one in results}
    assert {"accuracy", "acc_norm", "acc_norm_characters", "tied"} <= names
    base = "relaxed_perplexity[l=2,s=3,stride=8,max_tokens=16]"
    assert {base, f"{base} nats per position", f"{base} (nice to have)"} <= names
    assert f"{base.replace('[', '_mean[', 1)}" in names
    assert {one.metric for one in results if one.headline} & names >= {"accuracy", base}
    assert not any(one.rank for one in results if one.metric in ("tied", "bleu"))
    files = suite_sheet(suite).files()
    for text in (files["suite.csv"], files["suite.md"]):
        assert "relaxed perplexity mean[l=2,s=3" in text.decode().replace("_", " ").replace(
            "\\", ""
        )
    assert files["suite.csv"].decode().splitlines()[0].endswith("headline,flags,run")


@pytest.mark.local_model
def test_one_model_alone_has_no_rank(means, weights):
    one = ModelSpec(id="one", provider="transformers", path=weights, location="local")
    suite = run_suite(plan("medqa", models=("one",), limit=6), {"one": one}, means[0])
    assert [found.rank for found in results_of(suite) if found.metric == "accuracy"] == [None]
    assert "first" not in suite_sheet(suite).reading


@pytest.mark.parametrize(
    "wrong",
    [
        {"suite": "medqa"},
        {"suite": ("nowhere",)},
        {"models": ()},
        {"models": ("a", "a")},
        {"limit": 0},
        {"n_resamples": 3},
        {"seed": -1},
        {"perplexities": "no"},
    ],
    ids=str,
)
def test_a_suite_in_python_is_refused_with_the_words_of_its_file(tmp_path, wrong):
    keys = {"suite": ("medqa",), "models": ("a",), **wrong}
    with pytest.raises(InputError) as here:
        SuitePlan(**keys)
    path = tmp_path / "suite.toml"
    path.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items()))
    with pytest.raises(InputError) as there:
        load_suite_plan(path)
    assert str(here.value).removeprefix("SuitePlan: ") == str(there.value).removeprefix(f"{path}: ")
