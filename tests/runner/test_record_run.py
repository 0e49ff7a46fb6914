"""Health records end to end: asked with and without thinking, scored, judged by graphs, sealed,
verified.
"""

import json
import shutil

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.core.canonical import canonical
from medassay.errors import InputError
from medassay.publishing.tombstone import forget
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.runner.rescore import rescore
from medassay.storage.run import Run, seal_run

N = 12
BOTH = ["health_record", "health_record_direct"]
THINKS, DIRECT = (f"zero_shot:{name}" for name in BOTH)


def items(**more):
    return makers.record_items(N, **more)


def thinker(name="thinker", **more):
    return makers.record_student(N, name, **more)


def babbler():
    return makers.fake("babbler", reply="Der Patient soll wiederkommen.")


def judge():
    return {**makers.fake("judge", graph=0.9), "family": "acme"}


def workspace(folder, *models, bank=None, judges=(), **plan):
    makers.write_bank(folder / "bank", bank or items(), name="records", domains=["records"])
    makers.write_models(folder, *models, *judges)
    seats = {"judges": [j["id"] for j in judges]} if judges else {}
    names = [m["id"] for m in models]
    wanted = {"task": "record", "models": names, "templates": BOTH, **seats, **plan}
    return makers.write_plan(folder, **wanted)


def rows(run):
    found = medassay.leaderboard(run).domains["overall"]
    return {(r["model"], r["setting"]): r for r in found}


def lines(run, name):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    return pipeline.run(workspace(folder, thinker(), babbler()), secrets={})


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    plan = workspace(folder, thinker(), babbler(), judges=[judge()], task="record_graph")
    return pipeline.run(plan, secrets={})


def test_likeness_and_medication_stand_beside_each_other(run):
    right, wrong = (rows(run)["thinker", setting] for setting in (THINKS, DIRECT))
    assert right["score"] == right["record"]["similarity"]["score"] == 1.0
    assert right["record"]["medication"]["score"] == 1.0
    # Six leaves of eleven stand where they should, but a stopped drug is taken on: half is wrong.
    assert wrong["score"] == pytest.approx(wrong["record"]["similarity"]["score"])
    assert 0.5 < wrong["score"] < 1.0
    assert wrong["record"]["medication"]["score"] == 0.5
    assert wrong["record"]["counted"]["stopped_as_current"] == N
    assert wrong["record"]["sections"]["diagnosis"]["score"] == 1.0
    assert wrong["record"]["sections"]["medications"]["score"] < 1.0


def test_a_reply_without_json_is_unparsed_and_the_worst(run):
    row = rows(run)["babbler", THINKS]
    assert row["outcomes"]["unparsed"] == N
    assert row["score"] == row["record"]["similarity"]["score"] == 0.0
    assert row["record"]["read"]["score"] == row["record"]["medication"]["score"] == 0.0
    assert all(found["score"] == 0 for found in row["record"]["sections"].values())


def test_thinking_is_compared_on_the_same_reports(run):
    pairs = run.statistics.document["records"]["thinking"]["solo"]
    assert [(p["model"], p["thinking"], p["direct"]) for p in pairs] == [
        ("babbler", THINKS, DIRECT),
        ("thinker", THINKS, DIRECT),
    ]
    nothing, gain = (pair["differences"] for pair in pairs)
    assert nothing["similarity"]["different"] is False
    assert gain["medication"] | {"p": 0} == {
        "thinking": 1.0,
        "direct": 0.5,
        "difference": 0.5,
        "lo": 0.5,
        "hi": 0.5,
        "p": 0,
        "different": True,
        "n": N,
    }
    assert gain["diagnosis"]["difference"] == 0.0
    assert gain["characters"]["difference"] > 30


def test_every_score_says_what_its_reference_is(tmp_path):
    silver = makers.silver_origin("strong", "Acme")
    bank = items(origin=silver)[:6] + items()[6:]
    plan = workspace(tmp_path, thinker(family="acme"), bank=bank)
    made = pipeline.run(plan, secrets={})
    told = [s["parts"]["reference"]["standing"] for s in lines(made, "scores.jsonl")]
    assert (told.count("silver"), told.count("gold")) == (12, 12)
    row = rows(made)["thinker", THINKS]
    assert row["record"]["references"] == {
        "gold": 6,
        "silver": 6,
        "converted": 0,
        "of_own_family": 6,
    }
    assert {"silver_references", "reference_of_same_vendor"} <= set(row["flags"])


def test_a_model_that_wrote_its_own_references_is_marked_without_a_family(tmp_path):
    bank = items(origin=makers.silver_origin("thinker", "unknown"))
    plan = workspace(tmp_path, thinker(), babbler(), bank=bank)
    found = rows(pipeline.run(plan, secrets={}))
    assert found["thinker", THINKS]["record"]["references"]["of_own_family"] == N
    assert found["babbler", THINKS]["record"]["references"]["of_own_family"] == 0


def test_gold_alone_bears_no_mark(run):
    for row in rows(run).values():
        assert not {"silver_references", "reference_of_same_vendor"} & set(row["flags"])


def test_the_prompt_demands_the_form_of_its_condition(run):
    trials = lines(run, "trials.jsonl")
    assert {t["template"].partition("@")[0] for t in trials} == set(BOTH)
    assert {t["setting"] for t in trials} == {THINKS, DIRECT}


def test_runs_of_records_verify(run, judged):
    assert medassay.verify(run.path).ok
    assert medassay.verify(judged.path).ok


def test_graphs_judge_replies_without_json_too(judged):
    found = rows(judged)
    told = found["babbler", DIRECT]["record"]
    assert found["babbler", DIRECT]["outcomes"]["answered"] == N
    assert told["similarity"]["score"] == 0.0
    assert set(told["graphs"]) == {"medical_extraction_quality", "record_correctness"}
    quality = told["graphs"]["medical_extraction_quality"]
    assert set(quality["branches"]) == {
        "format_task",
        "accuracy_task",
        "completeness_task",
        "terminology_task",
    }
    assert quality["score"]["score"] == pytest.approx(found["babbler", DIRECT]["score"])


def test_the_whole_trace_is_kept(judged):
    verdict = lines(judged, "verdicts.jsonl")[0]
    quality, correctness = verdict["body"]["graphs"]
    assert (quality["graph"], correctness["graph"]) == (
        "medical_extraction_quality",
        "record_correctness",
    )
    assert quality["score"] == verdict["score"]
    steps = quality["trace"]
    assert {s["type"] for s in steps} == {"task", "binary", "choice", "verdict"}
    assert all(s["replies"] for s in steps if s["type"] != "verdict")
    assert len(verdict["replies"]) == len(verdict["seconds"]) == 10


def test_a_graph_of_ones_own_judges(tmp_path):
    graph = {
        "name": "own",
        "version": 1,
        "roots": ["ask"],
        "nodes": {
            "ask": {
                "type": "binary",
                "criteria": "Is it right?",
                "inputs": ["actual_output", "expected_output"],
                "true": "yes",
                "false": "no",
            },
            "yes": {"type": "verdict", "score": 0.9},
            "no": {"type": "verdict", "score": 0.2},
        },
    }
    (tmp_path / "own.json").write_text(json.dumps(graph))
    plan = workspace(
        tmp_path, thinker(), judges=[judge()], task="record_graph", graphs=["own.json"]
    )
    made = pipeline.run(plan, secrets={})
    assert rows(made)["thinker", THINKS]["score"] == pytest.approx(0.9)
    assert medassay.verify(made.path).ok
    again = judge_run(
        made.path,
        JudgingOptions(judges=["judge"], models_file=tmp_path / "models.json"),
        secrets={},
    )
    assert [g["name"] for g in again.manifest_document["graphs"]] == ["own"]
    assert medassay.verify(again.path).ok


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"graphs": ["nowhere"]}, "graph 'nowhere' is unknown"),
        (
            {"graphs": ["open_answer_safety", "open_answer_safety"]},
            "'graphs' names something twice",
        ),
        ({"graphs": ["no.yaml"]}, "no.yaml: cannot be read"),
    ],
)
def test_a_wrong_graph_is_refused_before_any_call(tmp_path, more, says):
    plan = workspace(tmp_path, thinker(), judges=[judge()], task="record_graph", **more)
    with pytest.raises(InputError, match=says):
        pipeline.run(plan, secrets={})


def test_a_task_without_graphs_refuses_them(tmp_path):
    with pytest.raises(InputError, match="task 'record' is not judged by graphs"):
        pipeline.run(workspace(tmp_path, thinker(), graphs=["record_correctness"]), secrets={})


def test_open_answers_are_judged_by_a_graph_of_theirs(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.open_items(12))
    makers.write_models(tmp_path, makers.fake(reply="Rule 1 binds courts."), judge())
    plan = makers.write_plan(tmp_path, task="open_graph", judges=["judge"])
    made = pipeline.run(plan, secrets={})
    told = lines(made, "verdicts.jsonl")[0]["body"]["graphs"]
    assert [one["graph"] for one in told] == ["open_answer_safety"]
    assert medassay.verify(made.path).ok


def test_reports_without_references_are_read_and_not_scored(tmp_path):
    bank = [{k: v for k, v in i.items() if k != "origin"} | {"record": None} for i in items()]
    made = pipeline.run(workspace(tmp_path, thinker(), babbler(), bank=bank), secrets={})
    row = rows(made)["thinker", THINKS]
    assert row["score"] is None
    assert row["outcomes"]["answered"] == N
    assert row["record"]["read"]["score"] == 1.0
    silent = rows(made)["babbler", THINKS]
    assert silent["outcomes"]["unparsed"] == N
    assert silent["record"]["read"]["score"] == 0.0
    assert silent["record"]["similarity"] is None
    medassay.publish(made, tmp_path / "site")
    assert medassay.verify(tmp_path / "site").ok
    assert medassay.verify(made.path).ok


def test_records_read_by_rule_are_not_judged_by_graphs_afterwards(run):
    """What was unparsed there is an answer here; the plan is asked again, from stored replies."""
    models = run.path.parents[1] / "models.json"
    makers.write_models(models.parent, thinker(), babbler(), judge())
    with pytest.raises(InputError, match="reads answers otherwise"):
        judge_run(
            run.path,
            JudgingOptions(judges=["judge"], models_file=models, task="record_graph"),
            secrets={},
        )


@pytest.mark.parametrize("name", ["run", "judged"])
def test_scored_again_nothing_changes(name, request):
    source = request.getfixturevalue(name)
    again = rescore(source.path)
    assert (again.path / "scores.jsonl").read_bytes() == (source.path / "scores.jsonl").read_bytes()
    assert medassay.verify(again.path).ok


def forged(run, folder, name, change):
    """Copy a run, change every record of one of its files, and seal it again as a forger would."""
    copy = folder / run.path.name
    shutil.copytree(run.path, copy)
    for file in copy.iterdir():
        file.chmod(0o644)
    made = [change(json.loads(line)) for line in (copy / name).read_text().splitlines()]
    (copy / name).write_bytes(b"".join(canonical(record) + b"\n" for record in made))
    for sums in ("seal.json", "MANIFEST.sha256"):
        (copy / sums).unlink()
    seal_run(Run(copy), sealed_at="2026-01-01T00:00:00Z")
    return medassay.verify(copy)


@pytest.mark.parametrize(
    "change",
    [
        {"stopped_as_current": 0},
        {"correct": 2},
        {"similarity": 1.0},
        {"sections": {}},
        {"characters": 1},
        {"reference": {"standing": "gold", "maker": "others"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_forged_part_of_a_record_is_found_by_recomputation(run, tmp_path, change):
    def spoil(score):
        return {**score, "parts": {**score["parts"], **change}}

    assert "scores.jsonl line" in forged(run, tmp_path, "scores.jsonl", spoil).first_mismatch


def graph_scores(verdict, value):
    for told in verdict["body"]["graphs"]:
        told["score"] = value
    return {**verdict, "score": value}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("verdicts.jsonl", lambda v: graph_scores(v, 1.0)),
        ("verdicts.jsonl", lambda v: {**v, "replies": [*v["replies"], "{}"]}),
        ("verdicts.jsonl", lambda v: {**v, "rubric": "graph@0123456789ab"}),
        (
            "manifest.json",
            lambda m: {**m, "graphs": [{**g, "id": "medical@0"} for g in m["graphs"]]},
        ),
        (
            "manifest.json",
            lambda m: {
                **m,
                "graphs": [{**g, "text": g["text"].replace("0.1", "0.9")} for g in m["graphs"]],
            },
        ),
        ("manifest.json", lambda m: {**m, "rubrics": dict.fromkeys(m["rubrics"], "graph@0")}),
    ],
    ids=["score", "further reply", "rubric", "graph's id", "graph's text", "rubrics"],
)
def test_forged_judgements_are_found(judged, tmp_path, name, change):
    report = forged(judged, tmp_path, name, change)
    assert not report.ok
    assert report.first_mismatch


def with_synthetic():
    bank = items()
    for item in bank[:4]:
        item["kind"] = "synthetic"
        item["question"] = (
            f"{item['question']} Geheim ist der ganze lange Bericht von Fall {item['id']}."
        )
    return bank


@pytest.mark.parametrize("task", ["record", "record_graph"])
def test_a_board_with_withheld_records_verifies_and_tells_nothing(tmp_path, task):
    judges = [judge()] if task == "record_graph" else []
    bank = with_synthetic()
    for item in bank:
        item["origin"] = makers.silver_origin("strong", "acme")
    plan = workspace(tmp_path, thinker(family="acme"), bank=bank, judges=judges, task=task)
    made = pipeline.run(plan, secrets={})
    page = medassay.publish(made, tmp_path / "site")
    assert medassay.verify(tmp_path / "site").ok
    published = b"".join(p.read_bytes() for p in page.parent.rglob("*") if p.is_file())
    for secret in (b"aus0", b"Aus0", b"Diagnose 0", b"Geheim"):
        assert secret not in published
    assert b"Aus7" in published
    counts = json.loads((page.parent / "data/run/statistics.json").read_text())
    told = counts["domains"]["overall"][0]["record"]["references"]
    assert (told["silver"], told["of_own_family"]) == (N, N)


@pytest.mark.parametrize("task", ["record", "record_graph"])
def test_a_run_with_a_deleted_report_verifies_and_is_published(tmp_path, task):
    judges = [judge()] if task == "record_graph" else []
    plan = workspace(tmp_path, thinker(), judges=judges, task=task)
    made = pipeline.run(plan, secrets={})
    forget("r-03", tmp_path, reason="asked for", at="2026-11-21T00:00:00Z")
    assert medassay.verify(made.path).ok
    # The manifest holds the replies of the scripted model; no other file may tell of the report.
    files = [p for p in made.path.rglob("*") if p.is_file() and p.name != "manifest.json"]
    left = b"".join(path.read_bytes() for path in files)
    assert b"Aus3" not in left
    assert b"Aus3" not in left
    medassay.publish(made, tmp_path / "site")
    assert medassay.verify(tmp_path / "site").ok


@pytest.mark.parametrize("task", ["record", "record_graph"])
@pytest.mark.parametrize("name", ["r-01", "r-07"])  # synthetic, public
def test_deleted_and_withheld_reports_in_one_run_are_published_and_verify(tmp_path, task, name):
    judges = [judge()] if task == "record_graph" else []
    plan = workspace(tmp_path, thinker(), bank=with_synthetic(), judges=judges, task=task)
    made = pipeline.run(plan, secrets={})
    forget(name, tmp_path, reason="asked for", at="2026-11-21T00:00:00Z")
    assert medassay.verify(made.path).ok
    page = medassay.publish(made, tmp_path / "site")
    assert medassay.verify(tmp_path / "site").ok
    published = b"".join(p.read_bytes() for p in page.parent.rglob("*") if p.is_file())
    assert f'Aus{int(name[2:])}\\"'.encode() not in published


def test_who_wrote_a_gold_record_stands_in_no_score(tmp_path):
    bank = items(origin={"standing": "gold", "maker": "Dr. Example"})
    made = pipeline.run(workspace(tmp_path, thinker(), bank=bank), secrets={})
    assert b"Dr. Example" not in (made.path / "scores.jsonl").read_bytes()
    assert b"Dr. Example" in (made.path / "items.jsonl").read_bytes()
