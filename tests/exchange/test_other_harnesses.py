"""Logs of Inspect, lm-evaluation-harness and HELM, kept as those tools wrote them (make_logs.py)."""

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.conftest import ROOT, absent

import medassay
from medassay.errors import InputError
from medassay.exchange.catalog import IMPORTS
from medassay.exchange.place import open_places

LOGS = Path(__file__).parent / "logs"
INSPECT, LM_EVAL, HELM = LOGS / "inspect", LOGS / "lm-eval", LOGS / "helm"
ONE = {
    "inspect": INSPECT / "electrolytes-m1.eval",
    "lm-eval": next((LM_EVAL / "m1").iterdir()),
    "helm": HELM,
}


def load(name, path, tmp_path, **options):
    return IMPORTS[name].load(path, to=tmp_path / f"run-{name}", **options)


@pytest.mark.parametrize("name", list(IMPORTS))
def test_every_import_knows_its_own_logs_and_no_others(name):
    for other, path in ONE.items():
        assert IMPORTS[name].recognises(path) is (other == name)
    for path in (ROOT / "README.md", ROOT, LOGS / "none"):
        assert not IMPORTS[name].recognises(path)


@pytest.mark.parametrize("name", list(IMPORTS))
def test_an_imported_log_is_a_sealed_run_that_verifies_and_is_published(name, tmp_path):
    run = load(name, ONE[name], tmp_path)
    assert medassay.verify(run.path).ok
    page = medassay.publish(run, tmp_path / "site")
    assert "Imported from" in page.read_text()
    assert run.manifest["source"]["version"] in (
        "unknown",
        *(LOGS / name / "VERSION").read_text().split(),
    )
    with pytest.raises(InputError, match="exists"):
        load(name, ONE[name], tmp_path)


def test_inspects_own_accuracy_is_found_again(tmp_path):
    log = json.loads((INSPECT / "doses-m1.json").read_text())
    for score in log["results"]["scores"]:
        to = tmp_path / score["name"]
        to.mkdir()
        run = load("inspect", INSPECT / "doses-m1.json", to, scorer=score["name"])
        [row] = run.statistics["domains"]["overall"]
        assert row["model"] == "mockllm/m1"
        assert row["n"] == 4  # two epochs of each item are repeats
        assert row["score"] == pytest.approx(score["metrics"]["accuracy"]["value"])
    trial = json.loads((run.path / "trials.jsonl").read_text().splitlines()[0])
    assert trial["text"].startswith("ANSWER: ")
    assert trial["repeat"] == 0
    item = json.loads((run.path / "items.jsonl").read_text().splitlines()[0])
    assert (item["question"], item["reference"]) == ("Dose 0?", "A")


def test_a_scorer_of_several_values_gives_the_one_that_is_named(tmp_path):
    log = json.loads((INSPECT / "doses-m1.json").read_text())
    for sample in log["samples"]:
        sample["scores"] = {"both": {"value": {"right": "C", "brief": 0.25}}}
    log["results"]["scores"] = [{"name": n, "scorer": "both"} for n in ("right", "brief")]
    (tmp_path / "log.json").write_text(json.dumps(log))
    for name, mean in (("right", 1.0), ("brief", 0.25)):
        to = tmp_path / name
        to.mkdir()
        run = load("inspect", tmp_path / "log.json", to, scorer=name)
        assert run.statistics["domains"]["overall"][0]["score"] == mean
    for sample in log["samples"]:
        sample["scores"] = {}
    (tmp_path / "log.json").write_text(json.dumps(log))
    with pytest.raises(InputError, match="none of 8 samples has score 'right'"):
        load("inspect", tmp_path / "log.json", tmp_path)


def test_an_eval_archive_gives_what_its_header_says(tmp_path):
    from backports.zstd import zipfile as archives

    with archives.ZipFile(ONE["inspect"]) as archive:
        header = json.loads(archive.read("header.json"))
    [score] = header["results"]["scores"]
    run = load("inspect", ONE["inspect"], tmp_path)
    [row] = run.statistics["domains"]["overall"]
    assert row["score"] == pytest.approx(score["metrics"]["accuracy"]["value"])
    question = json.loads((run.path / "items.jsonl").read_text().splitlines()[0])["question"]
    assert question.endswith("A) Sodium\nB) Potassium\nC) Calcium")


def test_lm_evals_own_results_are_found_again(tmp_path):
    results = json.loads(next(ONE["lm-eval"].glob("results_*.json")).read_text())["results"]
    run = load("lm-eval", ONE["lm-eval"], tmp_path, model="scripted")
    for domain, key in (("electrolytes", "acc,none"), ("doses", "exact_match,none")):
        [row] = run.statistics["domains"][domain]
        assert row["model"] == "scripted"
        assert row["score"] == pytest.approx(results[domain][key])
    [file] = ONE["lm-eval"].glob("samples_electrolytes_*")
    other = tmp_path / "norm"
    other.mkdir()
    run = load("lm-eval", file, other, metric="acc_norm")
    [row] = run.statistics["domains"]["electrolytes"]
    assert row["score"] == pytest.approx(results["electrolytes"]["acc_norm,none"])
    texts = {
        json.loads(t)["text"] for t in (run.path / "trials.jsonl").read_text().splitlines()
    }
    assert texts <= {"sodium", "potassium", "calcium"}


def test_helms_own_statistic_is_found_again(tmp_path):
    stats = json.loads((HELM / "per_instance_stats.json").read_text())
    means = [s["mean"] for r in stats for s in r["stats"] if s["name"]["name"] == "exact_match"]
    run = load("helm", HELM, tmp_path)
    [row] = run.statistics["domains"]["simple_mcqa"]
    assert (row["model"], row["n"]) == ("simple/model1", len(means) == 12 and 12)
    assert row["score"] == pytest.approx(sum(means) / len(means))
    item = json.loads((run.path / "items.jsonl").read_text().splitlines()[0])
    assert item["question"].startswith("Is ")
    assert item["reference"] in ("Even", "Odd")


def test_what_is_no_log_is_refused_in_one_line_and_leaves_nothing(tmp_path, cli):
    (tmp_path / "logs").mkdir()
    bad = {}
    for name, content in (("a.eval", b"no zip"), ("b.json", b'{"version":2,"eval":{}}')):
        bad[name] = tmp_path / "logs" / name
        bad[name].write_bytes(content)
    with zipfile.ZipFile(tmp_path / "logs/c.eval", "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    started = json.loads((INSPECT / "doses-m1.json").read_text())
    (tmp_path / "logs/d.json").write_text(json.dumps({**started, "status": "error"}))
    started["samples"][0]["scores"]["match"]["value"] = "maybe"
    (tmp_path / "logs/e.json").write_text(json.dumps(started))
    del started["samples"][0]["epoch"]
    (tmp_path / "logs/f.json").write_text(json.dumps(started))
    whole = ONE["inspect"].read_bytes()
    (tmp_path / "logs/g.eval").write_bytes(whole[: len(whole) // 2])
    at = whole.index(b"samples/q0_epoch_1.json") + 200
    (tmp_path / "logs/h.eval").write_bytes(whole[:at] + b"\0\0\0" + whole[at + 3 :])
    for name, says in (
        ("a.eval", "no log of Inspect"),
        ("b.json", "expected 'eval' with task and model"),
        ("c.eval", "holds no header.json"),
        ("d.json", "only finished evaluations"),
        ("e.json", "score 'maybe'; expected C, P, I, N or a number"),
        ("f.json", "expected id, epoch, output and scores"),
        ("g.eval", "no log of Inspect"),
        ("h.eval", "damaged"),
    ):
        code, _, errors = cli("import", "inspect", tmp_path / "logs" / name, "--to", "run")
        assert (code, errors.count("\n")) == (3, 1), errors
        assert says in errors
    scorer = ("--scorer", "x")
    assert (
        "has match, includes" in cli("import", "inspect", INSPECT / "doses-m1.json", *scorer)[2]
    )
    assert "expected the output of" in cli("import", "lm-eval", tmp_path)[2]
    metric = ("--metric", "f1", "--model", "m")
    assert "it has exact_match" in cli("import", "lm-eval", ONE["lm-eval"], *metric)[2]
    samples = shutil.copy(next(ONE["lm-eval"].glob("samples_doses*")), tmp_path)
    assert "name it with --model" in cli("import", "lm-eval", samples)[2]
    assert "choose with --metric" in cli("import", "helm", HELM, "--metric", "f1")[2]
    assert "run folder of HELM" in cli("import", "helm", tmp_path)[2]
    assert not (tmp_path / "run").exists()
    assert not list((tmp_path / "runs").iterdir())


def test_two_logs_are_compared_as_they_are(cli):
    two = (ONE["inspect"], INSPECT / "electrolytes-m2.eval")
    code, shown, _ = cli("--json", "compare", *two)
    [pair] = json.loads(shown)
    assert (code, pair["a"], pair["b"], pair["n"]) == (0, "mockllm/m1", "mockllm/m2", 12)
    code, shown, _ = cli("--json", "compare", *LM_EVAL.glob("m?/*"), "--by-domain")
    assert {pair["domain"] for pair in json.loads(shown)} == {
        "overall",
        "doses",
        "electrolytes",
    }
    code, _, errors = cli("compare", ONE["inspect"], HELM)
    assert code == 3
    assert "no item in common" in errors
    code, _, errors = cli("compare", ONE["inspect"], LOGS)
    assert code == 3
    assert "a log of helm, inspect, lm-eval" in errors


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inspect", "lm-eval"])
def test_logs_that_the_real_tools_write_today_are_imported(name, tmp_path):
    python = ROOT / ".venv-interop/bin/python"
    if not python.exists():
        absent("other harnesses are not installed: make interop")
    folder = tmp_path / "logs"
    subprocess.run(
        [python, LOGS.parent / "make_logs.py", name, folder], check=True, timeout=120
    )
    places = list(folder.glob("electrolytes-*")) or list(folder.glob("m?/*"))
    with open_places(places) as runs:
        for run in runs:
            assert medassay.verify(run.path).ok
            assert run.manifest["source"]["version"] in (folder / "VERSION").read_text()
