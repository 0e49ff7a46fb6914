"""The verbs and records for programs and notebooks: typed, with strings or paths, nothing lost."""

import ast
import doctest
import inspect
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests import makers

import medassay
from medassay.core.frame import columns_of
from medassay.core.records.trial import TRIAL_KEY
from medassay.errors import IncompleteError, InputError, IntegrityError

SRC = Path(medassay.__file__).parent


@pytest.fixture(scope="module")
def example():
    return medassay.example_run()


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a run of open answers before three scripted judges."""
    folder = tmp_path_factory.mktemp("judged")
    makers.write_bank(folder / "bank", makers.open_items(6))
    judges = [scripted(f"j{n}", family=f"f{n}", judge=0.3 + 0.1 * n) for n in range(3)]
    plan = {"banks": [str(folder / "bank")], "task": "open", "models": ["m"], "seed": 1}
    plan["judges"] = [judge.id for judge in judges]
    reply = "Rule 1 binds courts. Rule 1 was amended."
    return medassay.run(plan, models=[scripted("m", reply=reply), *judges], workspace=folder)


def scripted(name, family="unknown", **script):
    return medassay.ModelSpec(id=name, provider="fake", family=family, script=script)


def test_type_checkers_see_the_names_that_are_there_at_run_time():
    tree = ast.parse((SRC / "__init__.py").read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    static = {
        alias.asname: f"{statement.module}.{alias.name}"
        for statement in block.body
        for alias in statement.names
    }
    assert static == {n: f"medassay.{w}.{n}" for n, w in medassay._WHERE.items()}


def test_the_public_names_are_few_and_each_has_an_example_that_runs():
    assert len(medassay.__all__) <= 45
    for name in medassay.__all__:
        assert ">>> " in inspect.getdoc(getattr(medassay, name)), name
    assert medassay.__version__ in (SRC.parents[1] / "pyproject.toml").read_text()
    assert "__version__" in dir(medassay)


@pytest.mark.parametrize("name", medassay.__all__)
def test_examples_run_as_they_stand(name):
    """Where somebody pastes them: nothing is imported but what they import."""
    text = inspect.getdoc(getattr(medassay, name))
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    told = []
    with warnings.catch_warnings():  # examples may silence warnings for themselves
        doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert not told, "".join(told)


def test_a_plan_is_a_mapping_a_path_or_a_text_and_models_are_values_or_a_file(tmp_path):
    model = makers.fake("m", reply="A")
    path = makers.workspace(tmp_path / "w", makers.law_items(), model)
    by_path = medassay.run(path)
    assert medassay.run(str(path)) == by_path  # nothing is asked twice
    plan = {"banks": ["bank"], "models": ["m"], "seed": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "w")
        assert medassay.run(plan) == by_path
        assert medassay.run(plan, models=str(tmp_path / "w" / "models.json")) == by_path
        assert medassay.run(plan, models=[scripted("m", reply="A")]) == by_path
        assert medassay.preview(plan, models=[scripted("m", reply="A")]).stored == 10
        assert medassay.preview(plan, models=[scripted("m", reply="A")], fresh=True).stored == 0
    with pytest.raises(
        InputError, match=r"plan: model 'm' is not an enabled entry of models; .* n"
    ):
        medassay.preview({**plan, "banks": ["demo"]}, models=[scripted("n", reply="A")])
    with pytest.raises(InputError, match="plan: unknown key 'bank'"):
        medassay.run({**plan, "bank": "demo"})


def test_strings_are_paths_everywhere(example, tmp_path):
    path = str(example.path)
    assert medassay.open_run(path) == example
    assert medassay.leaderboard(path) == example.leaderboard
    assert medassay.figure(path).rows == medassay.figure(example).rows
    assert medassay.compare(path).pairs == medassay.compare(example).pairs
    assert medassay.verify(path).ok
    assert Path(medassay.publish(path, str(tmp_path / "site"))).is_file()
    assert medassay.export(path, str(tmp_path / "t.jsonl")).is_file()
    anew = medassay.rescore(path, workspace=str(tmp_path / "anew"))
    assert anew.path.parents[1] == tmp_path / "anew"
    assert medassay.show("cardiology-013", path).item.id == "cardiology-013"


def test_the_records_of_a_run_are_its_lines(judged):
    lines = {
        name: (judged.path / f"{name}.jsonl").read_text().splitlines()
        for name in ("trials", "scores", "verdicts", "items")
    }
    records = {name: list(getattr(judged, name)()) for name in lines}
    assert {n: len(r) for n, r in records.items()} == {n: len(r) for n, r in lines.items()}
    assert {n: len(getattr(judged, n)()) for n in lines} == {n: len(r) for n, r in lines.items()}
    for name in ("trials", "scores", "verdicts"):
        documents = map(json.loads, lines[name])
        for record, document in zip(records[name], documents, strict=True):
            assert record.place == tuple(document[k] for k in TRIAL_KEY)
    verdict, document = records["verdicts"][0], json.loads(lines["verdicts"][0])
    assert verdict.replies == document["replies"]
    assert verdict.body == document["body"]
    assert [item.id for item in records["items"]] == [json.loads(i)["id"] for i in lines["items"]]


def test_frames_hold_each_record_and_the_joined_one_each_answer(judged):
    frame = judged.to_pandas()
    assert len(frame) == 6
    scores = {s.item: s.score for s in judged.scores()}
    texts = {t.item: t.text for t in judged.trials()}
    questions = {i.id: i.question for i in judged.items()}
    for row in frame.to_dict("records"):
        assert row["score"] == scores[row["item"]]
        assert row["text"] == texts[row["item"]]
        assert row["question"] == questions[row["item"]]
        assert [row[f"judge:j{n}"] is not None for n in range(3)] == [True] * 3
    assert frame["score"].mean() == pytest.approx(judged.leaderboard.rows()[0].score)
    verdicts = judged.verdicts().to_pandas()
    assert len(verdicts) == 18
    assert set(verdicts["judge"]) == {"j0", "j1", "j2"}
    assert isinstance(verdicts["body"][0], dict)
    for records in (judged.trials(), judged.scores(), judged.verdicts(), judged.items()):
        assert len(records.to_polars()) == len(records.to_pandas()) == len(records)
    assert judged.to_polars()["score"].to_list() == frame["score"].to_list()


def test_a_run_without_judges_has_no_verdicts(example):
    assert list(example.verdicts()) == []
    assert len(example.verdicts().to_pandas()) == 0


def test_an_unfinished_run_shows_what_is_there(tmp_path):
    model = makers.fake("m", reply="A", fail_items=["law-03"])
    plan = makers.workspace(tmp_path, makers.law_items(), model)
    with pytest.raises(IncompleteError):
        medassay.run(plan)
    [folder] = (tmp_path / "runs").iterdir()
    run = medassay.open_run(folder)
    assert "not finished" in repr(run)
    outcomes = {trial.item: trial.outcome for trial in run.trials()}
    assert outcomes.pop("law-03") == "failed"
    assert set(outcomes.values()) == {"answered"}
    assert len(outcomes) == 9
    assert {score.item for score in run.scores()} >= set(outcomes)
    frame = run.to_pandas()
    assert list(frame["item"]) == sorted(frame["item"])
    assert frame.set_index("item")["score"]["law-01"] == 1
    assert frame.set_index("item")["question"]["law-03"] == makers.LAW[3][0]
    assert "unfinished run" in run._repr_html_()
    with pytest.raises(IncompleteError, match="not finished; run its plan again"):
        run.leaderboard  # noqa: B018 -- it raises
    [segment] = (folder / "journal").glob("*.jsonl")
    with segment.open("ab") as file:  # a line that is just being written
        file.write(b'{"score":{"doma')
    assert len(run.trials()) == 10
    with segment.open("ab") as file:
        file.write(b"in\n")
    with pytest.raises(IntegrityError, match=r"at byte \d+: not a journal line"):
        list(run.trials())


def test_of_attempts_the_last_one_that_was_answered_counts(tmp_path):
    makers.workspace(
        tmp_path, makers.law_items(), makers.fake("m", reply="A", fail_items=["law-03"])
    )
    with pytest.raises(IncompleteError):
        medassay.run(tmp_path / "plan.toml")
    with pytest.raises(IncompleteError):  # the failure is journalled once more
        medassay.run(tmp_path / "plan.toml")
    [folder] = (tmp_path / "runs").iterdir()
    before = [(t.item, t.outcome) for t in medassay.open_run(folder).trials()]
    assert len(before) == 10
    line = next(
        line
        for segment in (folder / "journal").glob("*.jsonl")
        for line in segment.read_text().splitlines()
        if '"outcome":"failed"' in line
    )
    done = line.replace('"outcome":"failed"', '"outcome":"answered"')
    (folder / "journal" / "d-0.jsonl").write_text(f"{done}\n{line}\n")
    after = {t.item: t.outcome for t in medassay.open_run(folder).trials()}
    assert after == dict.fromkeys(after, "answered")


def test_what_is_missing_says_how_to_get_it(example, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install 'medassay\[notebook\]'"):
        example.to_pandas()
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(InputError, match="pip install polars"):
        example.trials().to_polars()


def test_html_is_inert_whatever_models_say(tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)> \u202eB\x1b[31m"
    plan = makers.workspace(tmp_path, makers.law_items(), makers.fake("m<b>", reply=evil))
    run = medassay.run(plan)
    shown = medassay.show("law-01", run)
    parts = [run.trials(), run.scores(), run.items(), run.leaderboard, run, shown]
    for part in parts:
        html = part._repr_html_()
        assert "<script" not in html
        assert "<img" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html
        assert "http" not in html.replace("xmlns", "")
    assert "m&lt;b&gt;" in run._repr_html_()
    assert "&lt;script&gt;" in shown._repr_html_()


def test_long_tables_say_how_much_they_leave_out(example):
    html = example.trials()._repr_html_()
    assert html.count("<tr>") == 21
    assert "… 28 more" in html


def test_a_comparison_says_in_python_what_the_command_says(example, cli):
    comparison = medassay.compare(example, margin=0.05, by_domain=True)
    code, text, _ = cli("--json", "compare", example.path, "--margin", "0.05", "--by-domain")
    assert code == 0
    frame = comparison.to_pandas()
    told = json.loads(text)
    assert list(frame["diff"]) == [pair["diff"] for pair in told]
    assert "careful · hasty · 37.5 [" in str(comparison)
    assert "careful better" in comparison._repr_html_()
    assert comparison.gate("noninferior") == (True, comparison.pairs[0])
    with pytest.raises(InputError, match="at least one run"):
        medassay.compare()


def test_exports_take_their_form_from_the_name(example, tmp_path):
    pandas = pytest.importorskip("pandas")
    table = medassay.export(example, tmp_path / "a.csv")
    assert len(pandas.read_csv(table)) == 48
    assert len(pandas.read_json(medassay.export(example, tmp_path / "a.jsonl"), lines=True)) == 48
    assert medassay.export(example, tmp_path / "table", form="csv").read_text() == table.read_text()
    with pytest.raises(InputError, match=r"ends in \.csv, \.jsonl, \.parquet, a folder"):
        medassay.export(example, tmp_path / "a.xls")


def test_judges_can_be_values_and_judge_a_run_again(judged):
    judges = [scripted(f"j{n}", family=f"f{n}", judge=0.99) for n in range(3)]
    strict = medassay.judge(judged, [judge.id for judge in judges], models=judges)
    assert strict.id != judged.id
    assert [t.text for t in strict.trials()] == [t.text for t in judged.trials()]
    assert strict.leaderboard.rows()[0].score <= judged.leaderboard.rows()[0].score
    with pytest.raises(InputError, match="plan: judge 'x' is not an enabled entry of models;"):
        medassay.judge(judged, ["x", "j1", "j2"], models=judges)


def test_a_preview_reads_as_the_command_prints_it(tmp_path, cli):
    plan = makers.workspace(tmp_path, makers.law_items(), makers.fake("m", reply="A"))
    cost = medassay.preview(plan)
    assert cli("run", "--plan", plan)[1].strip() == str(cost)
    assert "in all: 10 calls" in cost._repr_html_()


def test_what_a_user_must_know_is_a_warning_at_the_line_that_asked(tmp_path):
    plan = {"banks": ["demo"], "models": ["m"], "sample": 3, "task": "closed"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        medassay.run(plan, models=[scripted("m", reply="A")], workspace=tmp_path)
    assert [str(w.message).partition(":")[0] for w in caught] == ["bank 'demo'"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("what", "heavy"),
    [
        (
            "pass",
            {"numpy", "pandas", "polars", "scipy", "pydantic", "IPython", "aiohttp", "msgspec"},
        ),
        (
            "from medassay.cli.main import call; call(['--help'])",
            {"numpy", "pandas", "scipy", "pydantic", "aiohttp", "jinja2"},
        ),
    ],
    ids=["import", "--help"],
)
def test_importing_the_package_and_its_help_load_no_heavy_library(what, heavy):
    code = f"import sys, medassay\n{what}\nsys.exit(str({heavy} & set(sys.modules) or '') or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_columns_are_made_in_time_that_grows_with_the_rows():
    rows = ({"a": n} if n % 2 else {"a": n, "b": n} for n in range(200_000))
    columns = columns_of(rows)  # quadratic time would take hours
    assert [len(values) for values in columns.values()] == [200_000] * 2
