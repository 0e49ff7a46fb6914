"""Small things that were said or done otherwise than they are: one test each."""

import json

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.cli.rules import read_rules
from medassay.core.records.decision_graph import read_decision_graph
from medassay.errors import InputError, UsageError
from medassay.exchange.ddx import import_ddx
from medassay.publishing.tombstone import forget
from medassay.review.store.database import open_database

LABELS = (
    "patient_id,model_name,prompt_name,golden_diagnosis,golden_diagnosis_severity,rank,differential_diagnosis,"
    "differential_diagnosis_severity_name,differential_diagnosis_semantic_relationship_name\n"
)


def test_a_preset_beside_its_own_numbers_is_refused():
    for text in ("k=3,x0=0,preset=easy", "preset=easy,k=3"):
        with pytest.raises(UsageError, match="preset=easy beside k"):
            read_rules(text)
    assert read_rules("preset=easy").preset == "easy"


def labels(folder, name, model, patients=12):
    folder.mkdir(exist_ok=True)
    rows = (
        f"{n},{model},zero_shot,Gout,moderate,1,Gout,moderate,Exact Synonym\n"
        for n in range(patients)
    )
    (folder / f"{name}.csv").write_text(LABELS + "".join(rows))


def test_every_table_of_labels_in_a_folder_is_read(tmp_path):
    labels(tmp_path / "two", "judge_labels_a", "a")
    labels(tmp_path / "two", "judge_labels_b", "b")
    run = import_ddx(tmp_path / "two", to=tmp_path / "run")
    assert sorted(run.manifest_document["models"]) == ["a", "b"]
    labels(tmp_path / "two", "judge_labels_again", "a")
    with pytest.raises(InputError, match=r"judge_labels_a\.csv has a list of model 'a'"):
        import_ddx(tmp_path / "two", to=tmp_path / "other")


def test_labels_beside_raw_replies_are_refused_by_name(tmp_path):
    labels(tmp_path / "mixed", "judge_labels", "a")
    raw = tmp_path / "mixed" / "diagnoses_PUMCH_ADM_b.csv"
    raw.write_text("GT,Diagnosis 1\nGout,+1. Gout\n")
    with pytest.raises(InputError, match=r"judge_labels\.csv\) beside raw replies \(diagnoses_"):
        import_ddx(tmp_path / "mixed", to=tmp_path / "run")


def test_a_model_with_a_capital_letter_is_split_from_its_bench(tmp_path):
    for model in ("Llama3_8b", "c3opus", "Qwen_72B"):
        name = f"diagnoses_PUMCH_ADM_{model}.csv"
        (tmp_path / name).write_text("GT,Diagnosis 1\n" + "['Gout'],+1. Gout\n" * 12)
    run = import_ddx(tmp_path, to=tmp_path / "run")
    assert sorted(run.manifest_document["models"]) == ["Llama3_8b", "Qwen_72B", "c3opus"]
    assert list(run.manifest_document["domains"]) == ["pumch_adm"]


def test_a_graph_of_one_box_is_refused():
    with pytest.raises(InputError, match="nothing follows its root 'fever'"):
        read_decision_graph({"node": "fever"})
    with pytest.raises(InputError, match="no edges"):
        read_decision_graph({"edges": {"fever": []}, "root": "fever"})


def test_a_board_of_too_few_items_says_how_many_are_needed(tmp_path, mock_server, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(6))
    makers.write_models(tmp_path, makers.endpoint(mock_server()))
    run = pipeline.run(makers.write_plan(tmp_path), secrets={})
    words = cli("report", run.path)[1].replace("│", " ").split()
    assert "not ranked: fewer than 10" in " ".join(words)
    page = medassay.publish(run, tmp_path / "site").read_text()
    assert "Not ranked: fewer than 10 items or clusters, of which 10 are needed" in page


def test_the_usual_address_of_an_sqlite_file_is_one(tmp_path):
    path = tmp_path / "r.sqlite"
    open_database(f"sqlite:///{path}").close()
    assert path.is_file()
    open_database(str(path), make=False).close()


def test_one_domain_is_printed_once(tmp_path, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = pipeline.run(makers.write_plan(tmp_path), secrets={})
    code, out, _ = cli("report", run.path, "--domain", "all")
    assert code == 0
    assert out.count("accuracy, %, 95 % interval") == 1


def test_one_publication_is_no_publications(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = pipeline.run(makers.write_plan(tmp_path), secrets={})
    medassay.publish(run, tmp_path / "site")
    details = {one["name"]: one["detail"] for one in medassay.verify(tmp_path / "site").checks}
    assert details["trend"] == "1 publication, 0 changes of series"


def test_a_deleted_item_is_shown_as_deleted_and_its_cut_stays_counted(tmp_path, mock_server, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(20))
    url = mock_server("--cut", 20)
    makers.write_models(tmp_path, makers.endpoint(url, max_tokens=8))
    run = pipeline.run(makers.write_plan(tmp_path, max_cut_off=1.0), secrets={})
    forget("q00003", tmp_path, reason="request of a patient", at="2026-11-21T00:00:00Z")
    assert medassay.verify(run.path).ok
    code, out, errors = cli("show", "q00003", "--run", run.path)
    assert code == 0, errors
    assert "the reply was deleted" in out
    code, out, _ = cli("show", "q00003", "--run", run.path, "--json")
    assert json.loads(out)["trials"][0]["trial"]["tombstone"]


def test_a_domain_of_a_single_condition_leaves_intervals_ranks_and_a_reason(tmp_path, cli):
    """A domain of four items in one cluster: R1 ranks the mean of domains, and says which domain is
    small.
    """
    rows = ["item,model,domain,prediction,key,cluster"]
    for domain, n, cluster in (("a", 40, ""), ("b", 40, ""), ("c", 4, "one")):
        for i in range(n):
            for model, right in (("x", 9), ("y", 5)):
                letter = "A" if (7 * i) % 10 < right else "B"
                rows.append(
                    f"{domain}{i:02},{model},{domain},{letter},A,{cluster or f'{domain}{i}'}"
                )
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    columns = {name: name for name in rows[0].split(",")}
    run = medassay.import_predictions(tmp_path / "t.csv", columns, runs=tmp_path)
    for row in run.statistics.document["domains"]["overall"]:
        assert row["lo"] < row["score"] < row["hi"]
        assert row["rank"] is not None
        assert "small_domain" in row["flags"]
    told = " ".join(cli("report", run.path)[1].replace("│", " ").split())
    assert "c: 4 items in 1 cluster, 33.3 % of the mean" in told
    page = medassay.publish(run, tmp_path / "site").read_text()
    assert "c: 4 items in 1 cluster, 33.3 % of the mean" in page
    assert "no interval" not in page
