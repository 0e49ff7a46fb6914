"""Groups of commands and their earlier spellings: both do the same."""

import io
import json
import shutil

from tests import makers
from tests.suite.suite_data import write


def suite_folder(cli, tmp_path, *command):
    """Run a suite of one benchmark over two scripted models; return its folder."""
    code, told, error = cli("--json", *command)
    assert code == 0, error
    [folder] = (tmp_path / "suites").iterdir()
    assert json.loads(told)
    return folder


def test_a_suite_is_run_and_reported_by_its_group_and_by_the_earlier_spelling(
    cli, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEDASSAY_DATA", raising=False)
    folder = tmp_path / "data/medtext"
    folder.mkdir(parents=True)
    rows = "".join(f"Case {n}?,Answer {n} at length.\n" for n in range(12))
    (folder / "completed.csv").write_text(f"Prompt,Completion\n{rows}")
    makers.write_models(tmp_path, makers.fake("good", reply="Answer 1."), makers.fake("poor"))
    options = ("--model", "good,poor", "--metric", "bertscore=none,moverscore=none,bleurt=none")
    suite = suite_folder(cli, tmp_path, "suite", "run", "medtext", *options)
    assert suite_folder(cli, tmp_path, "run", "--suite", "medtext", *options) == suite
    new = cli("suite", "report", str(suite), "--as-published")
    assert new == cli("report", str(suite), "--suite", "--as-published")
    assert new[0] == 0
    assert "MedText" in new[1]


def test_a_suite_asks_before_paid_calls(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    write(
        tmp_path / "data/careqa_open/CareQA_en_open.json",
        [{"unique_id": n, "question": f"Which {n}?", "answer": "It."} for n in range(12)],
    )
    paid = {"price": {"input": 1, "output": 1}}
    free = makers.fake("free", reply="It.")
    judge = {**makers.fake("judge", reply="Feedback: good. [RESULT] 5"), **paid}
    makers.write_models(tmp_path, free, {**makers.fake("paid", reply="It."), **paid}, judge)
    options = ("--data", "data", "--metric", "bertscore=none,moverscore=none,bleurt=none")
    suite = ("suite", "run", "careqa_open", *options)
    for named in (("--model", "paid"), ("--model", "free", "--judge", "judge")):
        code, _, error = cli(*suite, *named)
        assert (code, "--yes is needed" in error) == (2, True), error
        assert not list(tmp_path.glob("runs/*"))
        code, _, error = cli(*suite, *named, "--yes")
        assert code == 0, error
        assert cli(*suite, *named)[0] == 0  # all of it is stored
        [entered] = (tmp_path / "suites").glob("*/suite.json")
        before = entered.read_bytes()
        assert cli(*suite, *named, "--fresh")[0] == 2
        assert entered.read_bytes() == before
        shutil.rmtree(tmp_path / "runs")
        shutil.rmtree(tmp_path / "suites")


def test_a_suite_without_models_or_of_an_unknown_name_says_what_is_expected(cli, tmp_path):
    assert cli("suite", "run", "medtext")[0] == 2
    makers.write_models(tmp_path, makers.fake("m"))
    code, _, error = cli("suite", "run", "nowhere", "--model", "m")
    assert (code, "'nowhere'" in error, error.count("\n")) == (3, True, 1)
    code, _, error = cli("suite", "run", "plan.toml", "--model", "m")
    assert (code, "the plan says these" in error) == (2, True)
    code, _, error = cli("suite", "run", "medtext", "--model", "m", "--workspace", "s3://b/x")
    assert (code, "object store" in error, error.count("\n")) == (2, True, 1)
    assert not (tmp_path / "s3:").exists()


def test_suites_are_listed_with_their_benchmarks(cli):
    code, told, _ = cli("--json", "suite", "list")
    assert code == 0
    assert "careqa_open" in json.loads(told)["suites"]["careqa_suite_open"]


def test_the_extraction_study_has_a_command_and_its_earlier_spelling(cli, tmp_path):
    makers.write_bank(tmp_path / "bank", makers.record_items(12), domains=("records",))
    makers.write_models(tmp_path, makers.record_student(12))
    plan = makers.write_plan(tmp_path, task="record")
    assert cli("run", plan)[0] == 0
    [run] = (tmp_path / "runs").iterdir()
    new = cli("--json", "study", "extraction", str(run), "--pass", "medication=0.5")
    assert new[0] == 0, new
    assert new == cli(
        "--json", "report", str(run), "--study", "extraction", "--pass", "medication=0.5"
    )
    assert cli("report", str(run), str(run))[0] == 2
