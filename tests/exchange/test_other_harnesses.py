"""Logs of Inspect, lm-evaluation-harness and HELM, kept as those tools wrote them
(make_logs.py).
"""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.conftest import ROOT, absent
from tests.exchange.harness_logs import HELM, INSPECT, LM_EVAL, LOGS, ONE

import medassay
from medassay.errors import InputError
from medassay.exchange.catalog import IMPORTS
from medassay.exchange.open_any import open_places


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
    [bank] = page.parent.glob("bank/*/index.html")
    assert "By language" not in bank.read_text()  # logs say none
    assert all(">withheld<" not in model.read_text() for model in page.parent.glob("model/*/*"))
    assert run.manifest_document["source"]["version"] in (
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
        [row] = run.statistics.document["domains"]["overall"]
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
        assert run.statistics.document["domains"]["overall"][0]["score"] == mean
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
    [row] = run.statistics.document["domains"]["overall"]
    assert row["score"] == pytest.approx(score["metrics"]["accuracy"]["value"])
    question = json.loads((run.path / "items.jsonl").read_text().splitlines()[0])["question"]
    assert question.endswith("A) Sodium\nB) Potassium\nC) Calcium")


def test_lm_evals_own_results_are_found_again(tmp_path):
    results = json.loads(next(ONE["lm-eval"].glob("results_*.json")).read_text())["results"]
    run = load("lm-eval", ONE["lm-eval"], tmp_path, model="scripted")
    for domain, key in (("electrolytes", "acc,none"), ("doses", "exact_match,none")):
        [row] = run.statistics.document["domains"][domain]
        assert row["model"] == "scripted"
        assert row["score"] == pytest.approx(results[domain][key])
    [file] = ONE["lm-eval"].glob("samples_electrolytes_*")
    other = tmp_path / "norm"
    other.mkdir()
    run = load("lm-eval", file, other, metric="acc_norm")
    [row] = run.statistics.document["domains"]["electrolytes"]
    assert row["score"] == pytest.approx(results["electrolytes"]["acc_norm,none"])
    texts = {json.loads(t)["text"] for t in (run.path / "trials.jsonl").read_text().splitlines()}
    assert texts <= {"sodium", "potassium", "calcium"}


def test_helms_own_statistic_is_found_again(tmp_path):
    stats = json.loads((HELM / "per_instance_stats.json").read_text())
    means = [s["mean"] for r in stats for s in r["stats"] if s["name"]["name"] == "exact_match"]
    run = load("helm", HELM, tmp_path)
    [row] = run.statistics.document["domains"]["simple_mcqa"]
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
    assert "has match, includes" in cli("import", "inspect", INSPECT / "doses-m1.json", *scorer)[2]
    assert "samples_<task>_<time>.jsonl" in cli("import", "lm-eval", tmp_path)[2]
    metric = ("--metric", "f1", "--model", "m")
    assert "it has exact_match" in cli("import", "lm-eval", ONE["lm-eval"], *metric)[2]
    samples = shutil.copy(next(ONE["lm-eval"].glob("samples_doses*")), tmp_path)
    assert "name it with --model" in cli("import", "lm-eval", samples)[2]
    assert "choose with --metric" in cli("import", "helm", HELM, "--metric", "f1")[2]
    assert "a run folder with per_instance_stats.json" in cli("import", "helm", tmp_path)[2]
    assert not (tmp_path / "run").exists()
    assert not list((tmp_path / "runs").iterdir())


def test_samples_of_two_models_in_a_folder_are_told_apart_by_nobody(cli, tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    for number, name in enumerate(("modelX", "modelY")):
        time = f"2025-01-0{number + 1}T00-00-00.000000"
        results = {"model_name": name, "lm_eval_version": "0.4.9"}
        (folder / f"results_{time}.json").write_text(json.dumps(results))
        source = next(ONE["lm-eval"].glob("samples_electrolytes_*"))
        shutil.copy(source, folder / f"samples_task_{time}.jsonl")
    code, _, errors = cli("import", "lm-eval", folder, "--to", "run")
    assert (code, "holds samples of several models (modelX, modelY)" in errors) == (3, True), errors
    assert not (tmp_path / "run").exists()


def test_a_metric_of_which_less_is_better_is_not_ranked_as_if_more_were(cli, tmp_path):
    folder = Path(shutil.copytree(ONE["lm-eval"], tmp_path / "logs"))
    [path] = folder.glob("results_*.json")
    results = json.loads(path.read_text())
    results["higher_is_better"] = {"electrolytes": {"acc": False}, "doses": {"exact_match": True}}
    path.write_text(json.dumps(results))
    code, _, errors = cli("import", "lm-eval", folder, "--to", "run", "--model", "m")
    assert (code, "of 'acc' less is better" in errors) == (3, True), errors
    assert not (tmp_path / "run").exists()


def test_runs_of_helm_without_questions_are_of_the_subject_that_they_name(cli, tmp_path):
    for subject, model, mean in (("anatomy", "a", 1.0), ("virology", "b", 0.0)):
        folder = tmp_path / subject
        folder.mkdir()
        spec = {"name": f"mmlu:subject={subject},model={model}", "adapter_spec": {"model": model}}
        (folder / "run_spec.json").write_text(json.dumps(spec))
        stats = [{"name": {"name": "exact_match"}, "mean": mean}]
        rows = [{"instance_id": f"id{n}", "stats": stats} for n in range(12)]
        (folder / "per_instance_stats.json").write_text(json.dumps(rows))
    code, shown, errors = cli("compare", tmp_path / "anatomy", tmp_path / "virology")
    assert (code, "is better" in shown) == (3, False), errors
    assert cli("import", "helm", tmp_path / "anatomy", "--to", "run")[0] == 0
    item = json.loads((tmp_path / "run/items.jsonl").read_text().splitlines()[0])
    assert item["domain"] == "mmlu:subject=anatomy"


@pytest.mark.parametrize("harness", ["helm", "lm-eval"])
def test_a_score_of_hundreds_of_digits_is_refused(cli, tmp_path, harness):
    folder = Path(shutil.copytree(ONE[harness], tmp_path / "logs"))
    name = "per_instance_stats.json" if harness == "helm" else "samples_*.jsonl"
    for path in folder.glob(name):
        key = "mean" if harness == "helm" else "(?:acc|exact_match)"
        path.write_text(re.sub(rf'("{key}": )[0-9.]+', rf"\g<1>{'9' * 400}", path.read_text()))
    code, _, errors = cli("import", harness, folder, "--to", "run")
    assert (code, "hundreds of digits" in errors) == (3, True), errors


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
    subprocess.run([python, LOGS.parent / "make_logs.py", name, folder], check=True, timeout=300)
    places = list(folder.glob("electrolytes-*")) or list(folder.glob("m?/*"))
    with open_places(places) as runs:
        for run in runs:
            assert medassay.verify(run.path).ok
            assert run.manifest_document["source"]["version"] in (folder / "VERSION").read_text()
    if len(places) > 1:  # two logs: one run, one board, one line of the trend
        named = ["m1", "m2"] if name == "lm-eval" else []
        made = IMPORTS[name]
        first = made.load(sorted(places)[0], models=named[:1], to=tmp_path / "first")
        both = made.load(*sorted(places), models=named, to=tmp_path / "both")
        medassay.publish(first, tmp_path / "site", publication="first")
        medassay.publish(both, tmp_path / "site", publication="second")
        trend = json.loads((tmp_path / "site/p/second/data/trend.json").read_text())
        assert trend["markers"] == []
        assert len({point["model"] for point in trend["points"]}) == 2
        assert medassay.verify(tmp_path / "site").ok


def written(folder, name, model, samples, *, status="success"):
    """Write a log of Inspect as one JSON file: samples are id, question, target, grade."""
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "version": 2,
        "status": status,
        "eval": {"task": "doses", "model": model, "packages": {"inspect_ai": "0.3"}},
        "results": {"scores": [{"name": "match"}]},
        "samples": [
            {
                "id": at,
                "epoch": 1,
                "input": question,
                "target": target,
                "output": {"completion": "said"},
                "scores": {"match": {"value": grade}},
            }
            for at, question, target, grade in samples
        ],
    }
    path.write_text(json.dumps(document))
    return path


def sixteen(grades, first=0):
    return [(at, f"Dose {at}?", "A", grades[at % len(grades)]) for at in range(first, first + 16)]


@pytest.mark.parametrize("name", ["inspect", "lm-eval"])
def test_logs_of_several_models_make_one_run_and_one_board(name, tmp_path, cli):
    """Logs that the tools wrote, of two models: given one by one, and as the folder above them."""
    paths = [INSPECT / f"electrolytes-m{n}.eval" for n in (1, 2)]
    if name == "lm-eval":
        paths = [LM_EVAL / "m1", LM_EVAL / "m2"]
    named = ("--model", "m1", "--model", "m2") if name == "lm-eval" else ()  # both are called alike
    code, _, errors = cli("import", name, *paths, *named, "--to", "both")
    assert code == 0, errors
    run = medassay.open_run(tmp_path / "both")
    models = {row["model"] for row in run.statistics.document["domains"]["electrolytes"]}
    assert len(models) == 2
    assert run.statistics.document["fields"]["solo"]["electrolytes"]["n_common"] == 12
    assert [log["sha256"] for log in run.manifest_document["source"]["logs"]]
    assert medassay.verify(run.path).ok
    medassay.publish(run, tmp_path / "site")
    if name == "lm-eval":  # two folders deeper than the one that is named
        code, _, errors = cli("import", name, LM_EVAL, *named, "--to", "folder")
        assert code == 0, errors
        found = medassay.open_run(tmp_path / "folder")
        for file in ("items.jsonl", "trials.jsonl"):
            assert (found.path / file).read_bytes() == (run.path / file).read_bytes()


@pytest.mark.parametrize("name", ["inspect", "lm-eval"])
def test_one_benchmark_imported_twice_is_one_series_and_joins(name, tmp_path):
    paths = [INSPECT / f"electrolytes-m{n}.eval" for n in (1, 2)]
    if name == "lm-eval":
        paths = [LM_EVAL / "m1", LM_EVAL / "m2"]
    runs = [
        IMPORTS[name].load(
            path, to=tmp_path / f"run{n}", models=[f"m{n}"] if name == "lm-eval" else []
        )
        for n, path in enumerate(paths)
    ]
    assert runs[0].manifest_document["domains"] == runs[1].manifest_document["domains"]
    medassay.publish(runs[0], tmp_path / "site", publication="first")
    medassay.publish([runs[0], runs[1]], tmp_path / "site", publication="second")
    trend = json.loads((tmp_path / "site/p/second/data/trend.json").read_text())
    assert trend["markers"] == []
    assert len({point["series"] for point in trend["points"]}) == 1
    assert len(trend["points"]) == 3
    joined = json.loads((tmp_path / "site/p/second/data/run/manifest.json").read_text())
    assert "source" not in joined
    sources = {member["source"]["sha256"] for member in joined["joined"]}
    assert sources == {run.manifest_document["source"]["sha256"] for run in runs}
    assert medassay.verify(tmp_path / "site").ok


def test_items_are_known_by_content_whatever_a_log_calls_them(tmp_path):
    one = written(tmp_path, "one", "a", sixteen("CI"))
    shuffled = [(f"s{at}", q, t, g) for at, q, t, g in reversed(sixteen("CCI"))]
    other = written(tmp_path, "other", "b", shuffled)
    run = IMPORTS["inspect"].load(one, other, to=tmp_path / "run")
    assert run.statistics.document["fields"]["solo"]["overall"]["n_common"] == 16
    trials = [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]
    right = {t["item"] for t in trials if t["model"] == "b" and t["value"] == "1.0"}
    assert right == {f"{at}" for at, *_, grade in sixteen("CCI") if grade == "C"}


def test_another_question_under_the_same_name_is_refused(tmp_path, cli):
    one = written(tmp_path, "one", "a", sixteen("CI"))
    other = written(tmp_path, "other", "b", [(0, "Another?", "A", "C"), *sixteen("C")[1:]])
    code, _, errors = cli("import", "inspect", one, other, "--to", "run")
    assert (code, errors.count("\n")) == (3, 1)
    assert "item '0' of 'doses' asks something else here than in" in errors
    assert "one.json" in errors
    assert not (tmp_path / "run").exists()


def test_unfinished_logs_of_a_folder_are_left_out_by_name(tmp_path, cli):
    written(tmp_path / "logs/deep", "one", "a", sixteen("CI"))
    written(tmp_path / "logs", "broken", "b", sixteen("C"), status="error")
    code, out, errors = cli("import", "inspect", tmp_path / "logs", "--to", "run")
    assert code == 0, errors
    assert "left out: broken.json, its status is 'error'" in out
    assert cli("import", "inspect", tmp_path / "logs/broken.json")[0] == 3
    (tmp_path / "logs/deep/one.json").unlink()
    code, _, errors = cli("import", "inspect", tmp_path / "logs", "--to", "none")
    assert (code, errors.count("\n")) == (3, 1)
    assert "no finished log of Inspect among those given (broken.json" in errors


def test_half_a_log_is_not_imported_as_a_whole_one(tmp_path, cli):
    path = written(tmp_path, "half", "m", sixteen("CI"))
    log = json.loads(path.read_text())
    path.write_text(json.dumps({**log, "results": {**log["results"], "completed_samples": 40}}))
    code, _, errors = cli("import", "inspect", path, "--to", "run")
    assert (code, "holds 16 of the 40 samples that its results are of" in errors) == (3, True)
    path.write_text(json.dumps({**log, "invalidated": True}))
    code, _, errors = cli("import", "inspect", path, "--to", "run")
    assert (code, "samples in it were marked as invalid" in errors) == (3, True), errors
    folder = Path(shutil.copytree(ONE["lm-eval"], tmp_path / "logs"))
    [samples] = folder.glob("samples_doses_*")
    samples.write_bytes(b"".join(samples.read_bytes().splitlines(keepends=True)[:-1]))
    code, _, errors = cli("import", "lm-eval", folder, "--to", "run", "--model", "m")
    assert (code, "samples that its results are of; expected the whole" in errors) == (3, True)
    assert not (tmp_path / "run").exists()


def test_statistics_of_helm_are_of_all_that_was_answered(tmp_path, cli):
    folder = Path(shutil.copytree(HELM, tmp_path / "run-1"))
    stats = json.loads((HELM / "per_instance_stats.json").read_text())
    perturbed = [{**row, "perturbation": {"name": "typos"}} for row in stats[9:]]
    for rows in (stats[:9], stats[:9] + perturbed):
        (folder / "per_instance_stats.json").write_text(json.dumps(rows))
        code, _, errors = cli("import", "helm", folder, "--to", "run")
        missing = stats[9]["instance_id"]
        says = f"nothing of 3 of 12 answers that scenario_state.json has, first '{missing}'"
        assert (code, says in errors) == (3, True), errors
    assert not (tmp_path / "run").exists()


def test_an_option_that_helm_asked_about_by_itself_is_nobodys_answer(tmp_path):
    folder = Path(shutil.copytree(HELM, tmp_path / "run-1"))
    state = json.loads((HELM / "scenario_state.json").read_text())
    state["request_states"] = [
        {**one, "reference_index": at, "result": {"completions": [{"text": f" option {at}"}]}}
        for one in state["request_states"]
        for at in range(2)
    ]
    (folder / "scenario_state.json").write_text(json.dumps(state))
    run = load("helm", folder, tmp_path)
    texts = {json.loads(t)["text"] for t in (run.path / "trials.jsonl").read_text().splitlines()}
    assert texts == {""}


def test_a_log_whose_keys_were_sorted_is_found_in_a_folder(tmp_path):
    log = json.loads((INSPECT / "doses-m1.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps(log, sort_keys=True, indent=1))
    assert (tmp_path / "a.json").read_bytes().find(b'"version"') > 4096
    assert (
        load("inspect", tmp_path, tmp_path).statistics.document["domains"]["overall"][0]["n"] == 4
    )


def test_a_backend_is_not_the_name_of_a_model(tmp_path, cli):
    folder = Path(shutil.copytree(ONE["lm-eval"], tmp_path / "logs"))
    [path] = folder.glob("results_*.json")
    results = {**json.loads(path.read_text()), "model_source": "gguf", "model_name": ""}
    path.write_text(json.dumps(results))
    code, _, errors = cli("import", "lm-eval", folder, "--to", "run")
    assert (code, "name it with --model" in errors) == (3, True), errors


def test_a_second_log_of_a_model_is_refused(tmp_path, cli):
    one = written(tmp_path, "one", "a", sixteen("CI"))
    again = written(tmp_path, "again", "a", sixteen("CI"))
    code, _, errors = cli("import", "inspect", one, again)
    assert (code, errors.count("\n")) == (3, 1)
    assert "of two logs of a model leave one out" in errors
