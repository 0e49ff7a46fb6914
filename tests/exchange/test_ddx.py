import csv
import json

import pytest
from tests.exchange.ddx_tables import COLUMNS, GOOD, labels

import medassay
from medassay.bank.catalog import BANKS
from medassay.bank.disease_names import load_disease_names
from medassay.cli.main import call
from medassay.core.records.plan import DdxRules
from medassay.errors import InputError
from medassay.exchange.ddx import import_ddx
from medassay.kinds.diagnoses.names import NameMatcher
from medassay.kinds.results import leaderboard


def lines(run, name):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def kernel29(data):
    return data / "kernel29_pumch_adm"


def test_labels_give_the_authors_scores_to_their_four_decimals(kernel29, tmp_path):
    """All 74 judged cases, and both aggregates; no model is asked for anything."""
    rules = DdxRules(semantic_max="published")
    run = import_ddx(kernel29 / "judged" / "judge_labels.csv", rules=rules, runs=tmp_path)
    with (kernel29 / "judged" / "expected_individual_scores.csv").open(newline="") as file:
        wanted = {f"patient-{row['patient_id']}": row for row in csv.DictReader(file)}
    scores = lines(run, "scores.jsonl")
    assert len(scores) == len(wanted) == 74
    for score in scores:
        row = wanted[score["item"]]
        assert round(score["score"], 4) == pytest.approx(float(row["semantic_score"]), abs=1e-9)
        severity = score["parts"]["severity"]
        assert round(severity, 4) == pytest.approx(float(row["severity_score"]), abs=1e-9)
        semantic = 2 * score["score"] / 10.33 - 1
        assert semantic == pytest.approx(float(row["semantic_score_rescaled"]), abs=1e-4)
    [row] = leaderboard(run).domains["overall"]
    assert round(row["semantic"]["hard"]["score"], 4) == -0.3974
    assert round(row["severity"]["hard"]["score"], 4) == -0.2433
    assert (row["n"], row["unjudged"], row["prompt"]) == (74, 1, "dxgpt_prompt")
    [by_16] = leaderboard(run, ddx=DdxRules()).domains["overall"]
    assert round(by_16["semantic"]["hard"]["score"], 4) == -0.5332
    assert medassay.verify(run.path).ok


def test_names_agree_with_the_judges_exact_synonym(kernel29, data, tmp_path):
    """Without one false positive; the judge adds forms and umbrella terms that names keep apart."""
    mapping = data / "rarebench" / "mapping" / "disease_mapping.json"
    path = kernel29 / "judged" / "judge_labels.csv"
    run = import_ddx(path, rules=DdxRules(names=(str(mapping),)), runs=tmp_path)
    found = run.manifest_document["source"]["names_against_labels"]
    counts = {k: found[k] for k in ("both", "names_only", "judge_only", "neither")}
    assert counts == {"both": 35, "names_only": 0, "judge_only": 8, "neither": 319}
    assert {(d["golden"], d["name"].lower()) for d in found["disagreements"]} == {
        ("Neonatal Marfan syndrome", "marfan syndrome"),
        ("Amyotrophic lateral sclerosis type 4", "amyotrophic lateral sclerosis (als)"),
        ("Chronic visceral acid sphingomyelinase deficiency", "niemann-pick disease type c"),
    }
    assert str(mapping.parent) not in json.dumps(run.manifest_document)


def test_raw_replies_of_ten_models_become_one_run(kernel29, data, tmp_path):
    mapping = data / "rarebench" / "mapping" / "disease_mapping.json"
    run = import_ddx(kernel29, rules=DdxRules(names=(str(mapping),)), runs=tmp_path)
    found = {row["model"]: row for row in leaderboard(run).domains["overall"]}
    assert len(found) == 10
    assert run.manifest_document["source"]["cases_without_golden_diagnosis"] == 3
    assert all(row["outcomes"]["unparsed"] == 0 for row in found.values())
    assert found.pop("llama3_70b")["outcomes"]["failed"] == 20  # the file says ERROR
    assert all(row["outcomes"]["answered"] == 72 for row in found.values())
    assert found["c3opus"]["top1"]["score"] == pytest.approx(25 / 72)
    # Beside the replies of two models lie ranks that somebody else gave.
    assert run.manifest_document["source"]["names_against_ranks"] == {
        "c3opus": {"same": 53, "names_lower": 18, "names_higher": 1},
        "llama3_70b": {"same": 37, "names_lower": 15, "names_higher": 0},
    }
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize(
    ("golden", "hits"),
    [
        ("one", {"c3opus": 35, "gpt4turbo1106": 38, "geminipro": 29}),
        ("any", {"c3opus": 45, "gpt4turbo1106": 47, "geminipro": 37}),
    ],
)
def test_lists_score_alike_by_import_and_by_bank_whichever_names_are_golden(
    kernel29, data, tmp_path, golden, hits
):
    mapping = data / "rarebench" / "mapping" / "disease_mapping.json"
    rules = DdxRules(names=(str(mapping),))
    run = import_ddx(kernel29, rules=rules, golden=golden, runs=tmp_path)
    found = {row["model"]: row for row in leaderboard(run).domains["overall"]}
    assert {name: round(72 * found[name]["top5"]["score"]) for name in hits} == hits
    assert run.manifest_document["source"]["golden"] == golden
    assert run.manifest_document["source"]["cases_with_several_diagnoses"] == 20
    said = f"(golden = {golden})"
    assert said in run.manifest_document["banks"][0]["limits"]
    bank = BANKS["rarebench_pumch_adm"].load(data / "rarebench", golden=golden)
    assert said in bank.limits
    synonyms = load_disease_names(mapping).synonyms(item.target.diagnoses[0] for item in bank.items)
    matching = NameMatcher(synonyms)
    names = {f"row-{int(item.id[-3:]):04}": item.target.diagnoses for item in bank.items}
    by_bank = dict.fromkeys(hits, 0)
    for trial in lines(run, "trials.jsonl"):
        if trial["model"] in hits:
            listed = json.loads(trial["value"])[:5]
            by_bank[trial["model"]] += any(
                matching.rule(one["name"], names[trial["item"]]) for one in listed
            )
    assert by_bank == hits


def test_which_names_are_golden_is_said_and_another_word_refused(kernel29, tmp_path, capsys):
    file = str(kernel29 / "diagnoses_PUMCH_ADM_c3opus.csv")
    assert call(["import", "ddx", file, "--to", str(tmp_path / "run")]) == 0
    assert (
        "In 20 cases several diseases are recorded; the first is the golden diagnosis"
        in " ".join(capsys.readouterr().out.split())
    )
    assert call(["import", "ddx", file, "--golden", "all", "--to", str(tmp_path / "r")]) == 2
    assert "--golden: 'all'; expected one or any" in capsys.readouterr().err
    assert call(["bank", "import", "medqa", file, "--golden", "any"]) == 2
    assert "--golden is for rarebench_hms, " in capsys.readouterr().err


def test_a_null_label_is_unjudged_and_may_be_left_out(tmp_path):
    rows = [*GOOD, "1,m,p,Gout,moderate,3,Lupus,NULL,"]
    run = import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    [score] = lines(run, "scores.jsonl")
    assert score["parts"]["unjudged"] == 2
    assert score["parts"]["severity"] == pytest.approx((16 + 0.8 * 9) / 2.4)
    run = import_ddx(
        labels(tmp_path, *rows), rules=DdxRules(unjudged="exclude_rank"), runs=tmp_path / "runs"
    )
    [score] = lines(run, "scores.jsonl")
    assert score["parts"]["severity"] == pytest.approx((16 + 0.8 * 9) / 1.8)


def test_an_unknown_golden_severity_leaves_the_case_out_of_that_aggregate_only(tmp_path):
    rows = [*GOOD, "2,m,p,Lupus,NULL,1,Lupus,rare,Exact Synonym"]
    run = import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    [row] = leaderboard(run).domains["overall"]
    assert row["semantic"]["hard"]["n"] == 2
    assert row["severity"]["hard"]["n"] == 1
    assert medassay.verify(run.path).ok


def test_lists_of_several_models_and_prompts_are_rows(tmp_path):
    rows = [
        f"{i},{m},{p},Gout,moderate,1,{'Gout' if m == 'a' else 'Flu'},moderate,"
        f"{'Exact Synonym' if m == 'a' else 'Not Related'}"
        for i in range(12)
        for m in "ab"
        for p in ("plain", "steps")
    ]
    run = import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    found = {(r["model"], r["prompt"]) for r in leaderboard(run).domains["overall"]}
    assert found == {(m, p) for m in "ab" for p in ("plain", "steps")}
    assert len(run.statistics.document["ddx"]["pairs"]["solo"]["semantic"]) == 6


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["1,m,p,Gout,moderate,1,Podagra,awful,Exact Synonym"], "row 2: severity 'awful'"),
        (["1,m,p,Gout,moderate,1,Podagra,mild,Cousin"], "row 2: relationship 'Cousin'"),
        (["1,m,p,Gout,moderate,0,Podagra,mild,Not Related"], "'rank' is '0'"),
        (["1,m,p,Gout,moderate,1,,mild,Exact Synonym"], "'Exact Synonym' stands beside no diag"),
        (["1,m,p,Gout,moderate,one,Podagra,mild,Not Related"], "'rank' is 'one'"),
        ([GOOD[0], GOOD[0]], "row 3: a second row for rank 1"),
        ([GOOD[0], "", GOOD[0]], "row 4: a second row for rank 1"),  # an empty row counts
        (
            [GOOD[0], "1,m,p,Lupus,moderate,2,Flu,mild,Not Related"],
            "row 3: case '1' has another",
        ),
        (["1,m,p,,moderate,1,Podagra,mild,Not Related"], "'golden_diagnosis' is empty"),
        (["1,,p,Gout,moderate,1,Podagra,mild,Not Related"], "'model_name' is empty"),
        (["1,m"], "cells for 9 columns"),
        ([], "no rows"),
    ],
)
def test_a_wrong_table_is_refused_with_its_row_and_leaves_nothing(tmp_path, rows, says):
    with pytest.raises(InputError, match=says):
        import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize(("column", "what"), [("m", "models"), ("p", "settings")])
def test_two_models_or_prompts_that_look_the_same_are_refused(tmp_path, column, what):
    rows = [
        row.replace(f",{column},", f",{name},") for name in ("\u00e9", "e\u0301") for row in GOOD
    ]
    with pytest.raises(InputError, match=f"two {what} are called"):
        import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("*"))


def test_ranks_beside_replies_are_one_for_each(tmp_path):
    replies, ranks = tmp_path / "diagnoses_B_m.csv", tmp_path / "scores_B_m.csv"
    replies.write_text("GT,Diagnosis 1\n['Gout'],+1. Gout\n['Flu'],+1. Flu\n")
    ranks.write_text("Score\nP1\n")
    with pytest.raises(
        InputError, match=r"scores_B_m.csv: 1 ranks beside 2 replies in diagnoses_B"
    ):
        import_ddx(replies, runs=tmp_path / "runs")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("GT,Diagnosis 1\nGout,x\n", "expected a list of names"),
        ("GT,Diagnosis 1\n\"['Gout'\",x\n", "expected a list of names"),
        ("GT,Diagnosis 1\n[1],x\n", "expected a list of names"),
        ("GT,Diagnosis 1\n[],x\n", "no row with a golden diagnosis"),
        ("GT,Diagnosis 1\n\n\n['Gout'],x\ny,z\n", "row 5: "),  # as a spreadsheet counts
        ("a,b\n1,2\n", "fit no known layout"),
    ],
)
def test_wrong_raw_files_are_refused(tmp_path, text, says):
    path = tmp_path / "diagnoses_X_m.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        import_ddx(path, runs=tmp_path / "runs")


def test_a_list_that_was_cut_off_scores_nothing_and_its_page_shows_what_was_read(tmp_path):
    path = tmp_path / "diagnoses_X_m.csv"
    reply = '{"diagnoses": [{"rank": 1, "name": "Gout"}, {"rank": 2, "name": "Septic arth'
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["GT", "Diagnosis 1"], ["['Gout']", reply]])
    run = import_ddx(path, runs=tmp_path / "runs")
    [trial], [score] = lines(run, "trials.jsonl"), lines(run, "scores.jsonl")
    assert (trial["outcome"], json.loads(trial["value"])) == (
        "truncated",
        [{"name": "Gout", "rank": 1}],
    )
    assert (score["score"], score["because"]) == (0, "truncated")
    medassay.publish(run.path, tmp_path / "site", publication="one")
    [page] = (tmp_path / "site").glob("p/one/case/*/row-0000/index.html")
    said = page.read_text(encoding="utf-8")
    assert "No diagnosis: truncated" in said
    assert "it listed: <bdi>Gout</bdi>." in said
    assert "Septic" not in said


def test_files_that_speak_of_other_cases_are_not_joined(tmp_path):
    for model, golden in (("a", "Gout"), ("b", "Lupus")):
        (tmp_path / f"diagnoses_X_{model}.csv").write_text(
            f"GT,Diagnosis 1\n['{golden}'],+1. Gout: x\n"
        )
    with pytest.raises(InputError, match=r"diagnoses_X_b.csv row 2: GT differs"):
        import_ddx(tmp_path, runs=tmp_path / "runs")


def test_an_empty_folder_says_what_was_expected(tmp_path):
    with pytest.raises(InputError, match="holds neither"):
        import_ddx(tmp_path, runs=tmp_path / "runs")


def test_the_command_says_what_was_left_out(cli, tmp_path):
    (tmp_path / "diagnoses_X_m.csv").write_text(
        "GT,Diagnosis 1\n['Gout'],+1. Gout: x\n[],+1. Gout: x\n['Flu'],ERROR\n"
    )
    code, out, _ = cli("import", "ddx", "diagnoses_X_m.csv")
    assert code == 0
    assert "left out: 1 cases" in out
    code, out, _ = cli("--json", "import", "ddx", "diagnoses_X_m.csv", "--rules", "k=4,x0=0.1")
    [row] = json.loads(out)["domains"]["overall"]
    assert row["semantic"]["free"]["k"] == 4
    code, _, err = cli("import", "ddx", "diagnoses_X_m.csv", "--rules", "k=4")
    assert (code, "go together" in err) == (2, True)
    code, _, err = cli("import", "ddx", "diagnoses_X_m.csv", "--rules", "color=4")
    assert (code, "expected name=value" in err) == (2, True)
    code, _, err = cli("import", "ddx", "absent.csv")
    assert (code, "no such file" in err) == (3, True)


def test_a_bench_called_overall_is_refused(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(f"bench_name,{COLUMNS}\noverall,{GOOD[0]}\n")
    with pytest.raises(InputError, match="row 2: 'bench_name' is 'overall'"):
        import_ddx(path, runs=tmp_path / "runs")


def test_blank_names_are_dropped_and_a_list_may_be_empty(tmp_path):
    rows = [*GOOD, "1,m,p,Gout,moderate,3, ,,", "2,m,p,Gout,moderate,,,,"]
    run = import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    first, second = lines(run, "scores.jsonl")
    assert first["parts"]["n"] == 2
    assert (second["score"], second["parts"]["n"]) == (0, 0)
    assert medassay.verify(run.path).ok


def test_labels_that_are_all_missing_are_no_verdict(tmp_path):
    rows = [*GOOD, "2,m,p,Gout,moderate,1,Flu,mild,NULL"]
    run = import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    assert [s["score"] for s in lines(run, "scores.jsonl")] == [pytest.approx(16 / 1.8), None]
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("verdicts.jsonl", ('"name":"Podagra"', '"name":"Gicht"')),
        ("verdicts.jsonl", ('"golden":"Gout"', '"golden":"Flu"')),
        ("items.jsonl", ('"severity":"moderate"', '"severity":"mild"')),
    ],
)
def test_a_given_verdict_must_be_on_its_answer_and_item(tmp_path, name, change):
    from medassay.storage.run import seal_run

    run = import_ddx(labels(tmp_path, *GOOD), runs=tmp_path / "runs")
    path = run.path / name
    path.chmod(0o644)
    path.write_text(path.read_text().replace(*change, 1))
    for sealed in ("seal.json", "MANIFEST.sha256"):
        (run.path / sealed).unlink()
    seal_run(run, sealed_at="2026-11-21T00:00:00Z")
    report = medassay.verify(run.path)
    assert not report.ok
    assert "not of this answer" in report.first_mismatch


def test_names_are_cleaned_as_those_of_replies_are(tmp_path):
    rows = ["1,m,p,Gout,moderate,1,**Gout**:,moderate,Exact Synonym"]
    run = import_ddx(labels(tmp_path, *rows), runs=tmp_path / "runs")
    [verdict] = lines(run, "verdicts.jsonl")
    assert verdict["body"]["diagnoses"][0]["name"] == "Gout"
    with pytest.raises(InputError, match="holds control characters"):
        import_ddx(labels(tmp_path, GOOD[0].replace(",m,", ",m\x1b,")), runs=tmp_path / "runs")
    with pytest.raises(InputError, match="at most 300"):
        import_ddx(labels(tmp_path, GOOD[0].replace(",m,", f",{'m' * 400},")), runs=tmp_path / "r")
