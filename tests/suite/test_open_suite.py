"""Suites of one's own benchmarks, and suites wherever a run is taken."""

import json
import os
import pty
import shutil
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace
from tests import makers
from tests.runner.mixed_plans import text_items
from tests.suite.suite_data import MODELS, small_sets

import medassay
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.kinds.catalog import find_task
from medassay.statistic.interval.effective import effective_interval
from medassay.storage.records import read_trials
from medassay.suite.benchmark import Benchmark
from medassay.suite.catalog import BENCHMARKS
from medassay.suite.curve import curve_gate, curves
from medassay.suite.join import join_suites
from medassay.suite.plan import SuitePlan, load_suite_plan
from medassay.suite.report import suite_sheet
from medassay.suite.results import results_of, vote_scores, weighted_means
from medassay.suite.run import SuiteContext, open_suite, preview_suite, run_suite

PLAN = """
models = ["good", "poor"]

[[benchmark]]
name = "exam"
title = "Our exam"
bank = "exam"
weight = 3

[[benchmark]]
name = "words"
bank = "words"
weight = 1
[benchmark.task]
scorer = "my.py:score"
template = "ask.txt"
"""
SCORE = "def score(item, answer):\n    return min(1.0, len(answer.value) / 100)\n"
ASK = "{{ question }} In a few words."
GOOD = {f"q{n:05}": "ABCD"[n % 4] for n in range(12)}
STUDENTS = [
    makers.fake("good", replies=GOOD, reply="Sudden weakness of one side."),
    makers.fake("poor", reply="A"),
]


def written(folder, text=PLAN, students=STUDENTS, n=12):
    makers.write_bank(folder / "exam", makers.many_items(n), name="exam")
    makers.write_bank(folder / "words", text_items(10), name="words")
    (folder / "my.py").write_text(SCORE)
    (folder / "ask.txt").write_text(ASK)
    makers.write_models(folder, *students)
    (folder / "suite.toml").write_text(text)
    return folder / "suite.toml"


def ran(folder, cli, *options):
    code, out, errors = cli("run", "suite.toml", "--trust-code", *options)
    assert code == 0, errors
    [suite] = (folder / "suites").iterdir()
    return open_suite(suite), out


def test_a_benchmark_of_ones_own_with_own_code_is_planned_run_reported_and_verified(tmp_path, cli):
    written(tmp_path)
    code, out, errors = cli("run", "suite.toml", "--plan")
    assert code == 0, errors
    assert "own code: scorer my.py:score@" in out
    assert "good: 22 calls" in out
    assert not (tmp_path / "runs").exists()
    code, _, errors = cli("run", "suite.toml")
    assert code == 2
    assert "--trust-code" in errors
    suite, out = ran(tmp_path, cli)
    assert "By the weights of the plan: exam, words" in out
    values = {(r.benchmark, r.model): r.value for r in results_of(suite)}
    assert values["exam", "good"] == 1
    assert values["exam", "poor"] == 0.25
    assert values["words", "good"] == pytest.approx(0.28)
    assert "Our exam" in out
    code, out, _ = cli("verify", suite.folder)
    assert code == 0
    assert "own code my.py:score@" in out
    assert "exam: seal" in out
    code, out, _ = cli("suite", "report", suite.folder, "--to", "report")
    assert code == 0
    assert "By the weights of the plan: exam, words" in out
    [good, poor] = weighted_means(suite)
    assert good.score == pytest.approx((3 * 1 + 0.28) / 4)
    # All answers of a benchmark score alike: an interval of no width would be a claim too much.
    assert good.lo < good.score < good.hi
    parts = [np.ones(12), np.full(10, 0.28)]
    effective = effective_interval([(x, None) for x in parts], scale=Scale(), weights=[0.75, 0.25])
    assert (good.lo, good.hi) == effective.ends
    assert poor.score == pytest.approx((3 * 0.25 + 0.01) / 4)
    document = json.loads((tmp_path / "report/lm-eval/results_good_zero_shot.json").read_text())
    assert document["results"]["exam"]["acc,none"] == 1
    assert document["n-samples"]["exam"] == {"original": 12, "effective": 12}
    assert document["medassay"]["runs"]["exam"] == suite.parts[0].runs["answers"]


def test_a_suite_is_published_exported_and_compared_benchmark_by_benchmark(tmp_path, cli):
    written(tmp_path)
    suite, _ = ran(tmp_path, cli)
    code, _, errors = cli("publish", suite.folder, "--to", "site", "--yes")
    assert code == 0, errors + str(code)
    assert len(list((tmp_path / "site/p").iterdir())) == 2
    assert medassay.verify(tmp_path / "site").ok
    assert cli("publish", suite.folder, "--to", "other", "--id", "x", "--yes")[0] == 2
    code, _, _ = cli("export", suite.folder, "--format", "csv", "--to", "tables")
    assert code == 0
    assert {p.name for p in (tmp_path / "tables").iterdir()} == {"exam.csv", "words.csv"}
    code, out, errors = cli("compare", suite.folder, suite.folder, "--only", "good,poor")
    assert code == 0, errors
    assert "exam, accuracy: law, solo" in out
    code, _, errors = cli("compare", suite.folder, suite.run(suite.parts[0].runs["answers"]).path)
    assert code == 3
    assert "stands beside one" in errors


def test_asked_anew_the_suite_is_held_against_its_stored_runs(tmp_path, cli):
    written(tmp_path)
    suite, _ = ran(tmp_path, cli)
    before = dict(suite.parts[0].runs)
    again, _ = ran(tmp_path, cli, "--fresh")
    assert again.parts[0].runs != before
    run = again.run(again.parts[0].runs["answers"])
    assert run.manifest_document["fresh_of"] == before["answers"]


def test_a_changed_bank_is_asked_anew(tmp_path, cli):
    written(tmp_path)
    suite, _ = ran(tmp_path, cli)
    makers.write_bank(
        tmp_path / "exam", makers.many_items(8), name="exam", question_bank_version="exam-2026.2"
    )
    again, _ = ran(tmp_path, cli)
    assert again.parts[0].runs != suite.parts[0].runs
    assert again.parts[1].runs == suite.parts[1].runs


def test_the_answer_that_most_repeats_give_is_told_beside_the_mean(tmp_path, cli):
    replies = {
        "q00000": ["A", "B", "A"],  # right by vote
        "q00001": ["A", "C", "B"],  # one of three: a third
        "q00002": ["?", "C", "?"],  # the only vote is right
        "q00003": ["?", "?", "?"],  # no vote at all
        **{f"q{n:05}": ["A", "A", "B"] for n in range(4, 12)},
    }
    text = PLAN.split("[[benchmark]]")[1]
    text = f'models = ["m"]\n[[benchmark]]{text}repeats = 3\nvote = true\n'
    written(tmp_path, text, [makers.fake("m", replies=replies)])
    suite, out = ran(tmp_path, cli)
    run = suite.run(suite.parts[0].runs["answers"])
    values = {}
    for trial in read_trials(run.path):
        values.setdefault(trial.item, []).append(trial.value)
    votes = {item: value for (_, item), value in vote_scores(run)["m", "zero_shot"].items()}
    if values["q00000"] == ["A", "B", "A"]:  # the script gives one reply to each repeat
        assert votes["q00000"] == 1
        assert votes["q00001"] == pytest.approx(1 / 3)
        assert votes["q00002"] == 1
        assert votes["q00003"] == 0
    assert "accuracy, vote of 3" in out


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('bank = "exam"', "has no name"),
        ('name = "exam"\nbank = "exam"\nvote = true', "'vote' needs 'repeats'"),
        ('name = "Exam 1"\nbank = "exam"', "expected a-z"),
        ('name = "multimedqa"\nbank = "exam"', "is called as a suite"),
        ('name = "exam"\nbank = "exam"\nwieght = 1', "benchmark 'exam': 'wieght': unknown key"),
        ('name = "exam"\nbank = "exam"\ntask = {like = "open"}', "names nothing of your own"),
        ('name = "exam"\nbank = "nowhere"', "bank 'nowhere' is no folder with a bank.toml"),
        ('name = "exam"\nbank = "exam"\nweight = -2', "'weight' is -2; at least 0"),
        ('name = "exam"\nbank = "exam"\ntask = {scorr = "x"}', "benchmark 'exam': 'task.scorr'"),
        ('name = "exam"\nbank = "exam"\ntask = "opne"', "task 'opne' is unknown"),
    ],
)
def test_a_benchmark_that_means_nothing_is_refused(tmp_path, cli, table, says):
    written(tmp_path, f'models = ["good"]\n[[benchmark]]\n{table}\n')
    code, _, errors = cli("run", "suite.toml", "--trust-code")
    assert code == 3
    assert says in errors


def test_shipped_benchmarks_written_as_tables_give_the_same_runs_to_the_byte(tmp_path):
    data = small_sets(tmp_path)
    names = ("careqa_en", "careqa_open", "meqsum", "medqa", "medmcqa")
    options = {
        "models": ("good", "poor"),
        "metrics": ("bertscore=none", "moverscore=none", "bleurt=none"),
    }
    suites = {}
    for how in ("shipped", "written"):
        plan = SuitePlan(suite=names, **options)
        if how == "written":
            tables = [
                {"name": n, "task": BENCHMARKS[n].task, **BENCHMARKS[n].to_dict()} for n in names
            ]
            lines = [f"models = {json.dumps(options['models'])}"]
            lines += [f"metrics = {json.dumps(options['metrics'])}"]
            for table in tables:
                lines += ["[[benchmark]]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())]
            (tmp_path / "suite.toml").write_text("\n".join(lines) + "\n")
            plan = load_suite_plan(tmp_path / "suite.toml")
            assert not plan.suite
        context = SuiteContext(data=data, workspace=tmp_path / how, secrets={})
        suites[how] = run_suite(plan, MODELS, context)
    parts = {how: {p.benchmark: p.runs for p in suite.parts} for how, suite in suites.items()}
    assert parts["shipped"] == parts["written"]
    assert len(parts["shipped"]) == 5
    for runs in parts["shipped"].values():
        for name in runs.values():
            for file in ("items.jsonl", "trials.jsonl", "scores.jsonl", "statistics.json"):
                shipped, written_ = (suites[how].run(name).path / file for how in suites)
                assert shipped.read_bytes() == written_.read_bytes()
    sheets = [suite_sheet(suite) for suite in suites.values()]
    assert sheets[0].lines == sheets[1].lines


def test_every_catalogued_benchmark_is_open_as_its_task_is():
    for name, benchmark in BENCHMARKS.items():
        assert benchmark.is_open == (benchmark.task != "closed_likelihood"), name
        assert find_task(benchmark.task)
        again = Benchmark(**{**benchmark.to_dict(), "settings": benchmark.settings})
        assert again == benchmark


def test_a_preview_asks_nobody_and_a_judge_is_told_apart(tmp_path):
    data = small_sets(tmp_path)
    plan = SuitePlan(suite=("careqa_open",), models=("good",), judge="poor", perplexities=False)
    context = SuiteContext(data=data, workspace=tmp_path / "work", secrets={})
    cost = preview_suite(plan, MODELS, context)
    assert cost.calls == 14
    assert any("judged by 'poor' once answers are there" in line for line in cost.limits)
    assert not (tmp_path / "work/runs").exists()


def checkpoint(step, right, n=40, **more):
    replies = {f"q{i:05}": "ABCD"[i % 4] if i < right else "ABCD"[(i + 1) % 4] for i in range(n)}
    entry = makers.fake(f"step-{step}", replies=replies)
    return {**entry, "series": "pretraining", "step": step, **more}


def test_checkpoints_are_curves_with_paired_differences_and_a_gate(tmp_path, cli):
    students = [checkpoint(1000, 10), checkpoint(2000, 30), checkpoint(3000, 29)]
    text = PLAN.split("[[benchmark]]")[1]
    names = json.dumps([student["id"] for student in students])
    written(tmp_path, f"models = {names}\n[[benchmark]]{text}", students, n=40)
    suite, _ = ran(tmp_path, cli)
    first, second, third = curves(suite)
    assert [first.step, second.step, third.step] == [1000, 2000, 3000]
    assert first.difference is None
    assert second.difference == pytest.approx(0.5)
    assert second.difference_lo > 0.3
    assert third.since == third.best == "step-2000"
    assert third.difference == pytest.approx(-1 / 40)
    assert curve_gate([first, second, third], 0.2).passed
    assert not curve_gate([first, second, third], 0.02).passed
    code, _, _ = cli("suite", "report", suite.folder, "--to", "report", "--gate", "0.2")
    assert code == 0
    assert "Checkpoints of pretraining" in (tmp_path / "report/index.html").read_text()
    code, _, errors = cli("suite", "report", suite.folder, "--gate", "0.02")
    assert code == 1
    assert "step-3000 on exam against step-2000: 90 % lower bound" in errors


def test_a_gate_without_checkpoints_is_refused(tmp_path, cli):
    written(tmp_path)
    suite, _ = ran(tmp_path, cli)
    code, _, errors = cli("suite", "report", suite.folder, "--gate", "0.02")
    assert code == 3
    assert "give entries of the models file a 'step'" in errors


def test_two_teams_suites_join(tmp_path, cli, monkeypatch):
    suites = []
    for team, student in (("one", STUDENTS[0]), ("two", STUDENTS[1])):
        folder = tmp_path / team
        folder.mkdir()
        text = PLAN.replace('["good", "poor"]', json.dumps([student["id"]]))
        written(folder, text, [student])
        monkeypatch.chdir(folder)
        from medassay.cli.main import call

        assert call(["run", "suite.toml", "--trust-code", "--quiet"]) == 0
        suites.append(open_suite(next((folder / "suites").iterdir())))
    monkeypatch.chdir(tmp_path)
    code, _, errors = cli("suite", "join", *(s.folder for s in suites), "--workspace", "both")
    assert code == 0, errors
    [folder] = (tmp_path / "both/suites").iterdir()
    joined = open_suite(folder)
    values = {(r.benchmark, r.model): r.value for r in results_of(joined)}
    assert values["exam", "good"] == 1
    assert values["exam", "poor"] == 0.25
    assert values["words", "good"] == pytest.approx(0.28)
    assert cli("verify", folder)[0] == 0
    assert cli("suite", "report", folder)[0] == 0
    with pytest.raises(InputError, match="both hold good"):
        other = replace(suites[0])
        join_suites([other, joined], tmp_path / "third")


def test_a_join_that_is_interrupted_leaves_no_half_run(tmp_path, cli, monkeypatch):
    for team in ("a", "b"):
        (tmp_path / team).mkdir()
        monkeypatch.chdir(tmp_path / team)
        text = PLAN.replace('name = "exam"', 'name = "exam_a"') if team == "a" else PLAN
        written(tmp_path / team, text)
        ran(tmp_path / team, cli)
    suites = [open_suite(next((tmp_path / team / "suites").iterdir())) for team in ("a", "b")]
    copy = shutil.copytree

    def broken(source, target):
        copy(source, target)
        (target / "trials.jsonl").unlink()
        raise OSError("no space left")

    monkeypatch.setattr("shutil.copytree", broken)
    with pytest.raises(OSError, match="no space left"):
        join_suites(suites, tmp_path / "joined")
    assert not [*(tmp_path / "joined/runs").glob("[0-9a-z]*")]
    monkeypatch.setattr("shutil.copytree", copy)
    joined = join_suites(suites, tmp_path / "joined")
    assert all(
        medassay.verify(joined.run(run).path).ok for p in joined.parts for run in p.runs.values()
    )


def foreign(record, part):
    return {
        "another folder": lambda: part["runs"].update(answers="../../elsewhere"),
        "an absolute name": lambda: part["runs"].update(answers="/etc/hostname"),
        "a run that is a number": lambda: part["runs"].update(answers=7),
        "an unknown benchmark": lambda: part.update(benchmark="nowhere"),
        "a benchmark of numbers": lambda: record["plan"].update(benchmark=[3]),
        "parts that are none": lambda: record.update(parts={"a": 1}),
        "no plan": lambda: record.update(plan=None),
    }


@pytest.mark.parametrize("how", foreign({}, {}))
def test_a_hostile_record_of_a_suite_is_an_error_with_its_place(tmp_path, cli, how):
    written(tmp_path)
    suite, _ = ran(tmp_path, cli)
    record = json.loads((suite.folder / "suite.json").read_text())
    foreign(record, record["parts"][0])[how]()
    (suite.folder / "suite.json").write_text(json.dumps(record))
    for command in (("verify",), ("suite", "report"), ("compare", suite.folder)):
        code, _, errors = cli(*command, suite.folder)
        assert code == 6, (command, errors)
        assert "suite.json" in errors
        assert "Traceback" not in errors


TWO_CODES = """
models = ["good"]
[[benchmark]]
name = "first"
bank = "words"
task = {scorer = "my.py:score"}
[[benchmark]]
name = "second"
bank = "words"
task = {scorer = "other.py:score"}
"""


def test_in_a_terminal_all_code_of_a_suite_is_asked_about_before_any_runs(tmp_path):
    written(tmp_path, TWO_CODES)
    marker = tmp_path / "executed"
    for name in ("my.py", "other.py"):
        code = f"open({str(marker)!r}, 'a').write('x')\n{SCORE}"
        (tmp_path / name).write_text(code)
    command = [sys.executable, "-m", "medassay", "run", "suite.toml"]
    for answers, agreed in (("y\nn\n", False), ("y\ny\n", True)):
        keyboard, terminal = pty.openpty()
        os.write(keyboard, answers.encode())
        done = subprocess.run(
            command, cwd=tmp_path, stdin=terminal, capture_output=True, text=True, check=False
        )
        os.close(keyboard)
        os.close(terminal)
        assert (done.returncode == 0) is agreed, done.stderr
        assert "my.py:score@" in done.stderr
        assert "other.py:score@" in done.stderr
        assert done.stderr.count("Execute this code?") == 2
        assert marker.exists() is agreed
