import json
import subprocess
import sys
import time
from collections import Counter

import pytest
from tests import makers
from tests.runner.judged_plans import lines, rubric_items, workspace

import medassay
from medassay import pipeline
from medassay.errors import IncompleteError, InputError
from medassay.judging.graders.steps import EvaluationSteps, prompt_hashes
from medassay.kinds.catalog import task_of_run
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.runner.rescore import rescore
from medassay.storage.run import seal_run
from medassay.summary.breakdown import breakdown


def row(run, model="m"):
    [found] = [r for r in medassay.leaderboard(run).domains["overall"] if r["model"] == model]
    return found


def panel(url, **more):
    """Three judges at one mock endpoint; the third is called `bad` there."""
    return [
        {**makers.endpoint(url, f"judge-{f}", family=f, concurrency=8, **more), "model": name}
        for f, name in (("alpha", "one"), ("beta", "two"), ("gamma", "bad"))
    ]


def test_open_answers_get_three_verdicts_each_and_the_mean_of_three(tmp_path):
    items = makers.open_items(6)
    told = {i["id"]: " ".join(f["text"] for f in i["facts"][:2]) for i in items}
    told["open-005"] = "  "
    plan = workspace(tmp_path, items, [makers.fake(replies=told)], makers.judges())
    run = medassay.run(plan, secrets={})
    verdicts = lines(run, "verdicts.jsonl")
    assert len(verdicts) == 15
    assert {v["judge"] for v in verdicts} == {"judge-alpha", "judge-beta", "judge-gamma"}
    assert all(v["replies"] and v["rubric"] == "facts/1" for v in verdicts)
    scores = lines(run, "scores.jsonl")
    assert [s["score"] for s in scores] == pytest.approx([2 / 3] * 5 + [0])
    assert scores[0]["judges"] == dict.fromkeys(sorted({v["judge"] for v in verdicts}), 2 / 3)
    assert scores[5]["because"] == "unparsed"  # a blank answer is not judged: it is worth nothing
    found = row(run)
    assert (found["agreement"], found["unanimous"], found["judge_failures"]) == (1, 1, 0)
    assert found["hallucination_rate"]["score"] == 0
    assert "not_ranked:fake" in found["flags"]
    assert medassay.verify(run.path).ok


def test_closed_and_open_items_share_one_score(tmp_path):
    items = [*makers.open_items(4), *makers.law_items()]
    told = {i["id"]: i["facts"][0]["text"] for i in items if "facts" in i}
    told |= {i["id"]: i["expected"] for i in items if "options" in i}
    plan = workspace(
        tmp_path, items, [makers.fake(replies=told)], makers.judges(), task="leaderboard"
    )
    run = medassay.run(plan, secrets={})
    assert len(lines(run, "verdicts.jsonl")) == 12
    assert row(run)["score"] == pytest.approx((10 + 4 / 3) / 14)
    assert row(run)["metric"] == "top100"
    assert medassay.verify(run.path).ok


def test_a_failing_judge_leaves_null_and_bounds_never_a_mean_of_two(tmp_path, mock_server):
    url = mock_server("--bad-verdicts", 0.2)
    plan = workspace(
        tmp_path, makers.open_items(60), [makers.endpoint(url, family="tested")], panel(url)
    )
    with pytest.raises(IncompleteError, match="judge 'judge-gamma': "):
        medassay.run(plan, secrets={})
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    verdicts = lines(run, "verdicts.jsonl")
    invalid = {v["item"] for v in verdicts if v["outcome"] == "invalid"}
    assert 3 <= len(invalid) <= 25
    assert {v["judge"] for v in verdicts if v["outcome"] == "invalid"} == {"judge-gamma"}
    assert all(len(v["replies"]) == 3 for v in verdicts if v["outcome"] == "invalid")
    for score in lines(run, "scores.jsonl"):
        assert (score["score"] is None) == (score["item"] in invalid)
        if score["score"] is None:
            assert score["because"] == "judge failed: judge-gamma"
        else:
            assert score["score"] == pytest.approx(sum(score["judges"].values()) / 3)
    found = row(run)
    assert found["judge_failures"] == len(invalid)
    assert found["score_worst"] < found["score"] < found["score_best"]
    assert "degraded" in found["flags"]
    assert found["coverage"] == pytest.approx(1 - len(invalid) / 60)
    assert medassay.verify(run.path).ok


def test_a_judge_that_cannot_be_reached_leaves_the_run_resumable(tmp_path, mock_server):
    url = mock_server()
    judges = panel(url)
    judges[2] |= {"url": "http://127.0.0.1:9/v1", "concurrency": 1}
    plan = workspace(
        tmp_path, makers.open_items(2), [makers.endpoint(url, family="tested")], judges
    )
    with pytest.raises(IncompleteError, match="2 verdicts are missing"):
        medassay.run(plan, secrets={})
    [folder] = (tmp_path / "runs").iterdir()
    assert not (folder / "seal.json").exists()
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    assert run.path == folder
    said = [(v["judge"], v["outcome"]) for v in lines(run, "verdicts.jsonl")]
    alone = [("judge-alpha", "valid"), ("judge-beta", "valid"), ("judge-gamma", "failed")]
    assert said == alone * 2
    assert [s["score"] for s in lines(run, "scores.jsonl")] == [None, None]
    assert row(run)["score"] is None
    assert medassay.verify(folder).ok


def start(plan):
    return subprocess.Popen(
        [sys.executable, "-m", "medassay", "run", str(plan), "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_a_kill_while_judging_repeats_no_paid_verdict(tmp_path, mock_server):
    log = tmp_path / "asked"
    url = mock_server("--delay-ms", 150, "--log", log)
    judges = [{**j, "concurrency": 2} for j in panel(url)]
    plan = workspace(
        tmp_path, makers.open_items(80), [makers.endpoint(url, family="tested")], judges
    )

    def journalled():
        journal = (tmp_path / "runs").glob("*/verdicts/*.jsonl")
        return sum(path.read_bytes().count(b"\n") for path in journal)

    kept = 0
    for more in (5, 30, 40):
        process = start(plan)
        until = time.monotonic() + 30
        while journalled() < kept + more and time.monotonic() < until:
            time.sleep(0.02)
        process.kill()
        process.communicate()
        now = journalled()
        assert now >= kept + more
        kept = now
    process = start(plan)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    # A verdict's prompt goes to three judges; at a kill those under way (2 a judge) are lost.
    asked = Counter(log.read_text().split())
    assert sum(count - 3 for count in asked.values() if count > 3) <= 3 * 6
    [folder] = (tmp_path / "runs").iterdir()
    assert medassay.verify(folder).ok


def test_the_order_of_answers_does_not_follow_the_models(tmp_path):
    tested = [makers.fake("m1", reply="Rule binds courts."), makers.fake("m2", reply="No.")]
    run = medassay.run(
        workspace(tmp_path, makers.open_items(12), tested, makers.judges()), secrets={}
    )
    from medassay.bank.run_items import RunItems
    from medassay.judging.assignment import JudgeAssignment
    from medassay.judging.queue import Answers, queues
    from medassay.kinds.catalog import TASKS
    from medassay.kinds.graders import graders_of

    items = RunItems(run.path, run.manifest_document["domains"])
    rubrics = graders_of(TASKS["open"], run.manifest)
    answers = Answers(run, items, TASKS["open"])
    orders = []
    for seed in (1, 1, 2):
        assignment = JudgeAssignment(graders=rubrics, seats={"m1": (), "m2": ()}, seed=seed)
        [queue] = queues(answers, assignment)
        orders.append([n for [n] in queue.batches])
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(24)) != orders[0]


REFUSALS = [
    (lambda j: j[:2], {}, "exactly 3"),
    (lambda j: [j[0], {**j[1], "family": "Alpha"}, j[2]], {}, "of one family"),
    (lambda j: [{**j[0], "family": "unknown"}, *j[1:]], {}, "names no family"),
    (lambda j: [{**j[0], "id": "m"}, *j[1:]], {}, "would grade itself"),
    (lambda j: [], {}, "no silent default"),
    (lambda j: j, {"substitute": "judge-beta"}, "fourth family"),
    (lambda j: j, {"task": "closed"}, "has no judges"),
    (lambda j: j, {"task": "essay"}, "known are"),
]


@pytest.mark.parametrize(("change", "plan", "says"), REFUSALS, ids=lambda v: str(v)[:24])
def test_a_panel_that_is_none_is_refused_before_any_call(tmp_path, change, plan, says):
    judges = change(makers.judges())
    items = [*makers.open_items(2), *makers.law_items()]
    tested = {"id": "m", "provider": "fake", "family": "alpha", "script": {}}
    makers.write_bank(tmp_path / "bank", items)
    known = {m["id"]: m for m in (*judges, tested)}
    makers.write_models(tmp_path, *known.values())
    wanted = {"task": "open", "judges": [j["id"] for j in judges], **plan}
    with pytest.raises(InputError, match=says):
        medassay.run(makers.write_plan(tmp_path, **wanted), secrets={})
    assert not (tmp_path / "runs").exists()


def test_a_substitute_sits_for_the_judge_of_the_models_own_family(tmp_path):
    tested = [
        {**makers.fake("m1", reply="Rule binds courts."), "family": "alpha"},
        {**makers.fake("m2", reply="Rule binds courts."), "family": "other"},
    ]
    four = [*makers.judges(), {**makers.fake("judge-delta", judge=0.5), "family": "delta"}]
    plan = workspace(tmp_path, makers.open_items(3), tested, four)
    text = plan.read_text().replace(', "judge-delta"]', ']\nsubstitute = "judge-delta"')
    plan.write_text(text)
    run = medassay.run(plan, secrets={})
    seats = {
        m: {v["judge"] for v in lines(run, "verdicts.jsonl") if v["model"] == m}
        for m in ("m1", "m2")
    }
    assert seats["m1"] == {"judge-beta", "judge-delta", "judge-gamma"}
    assert seats["m2"] == {"judge-alpha", "judge-beta", "judge-gamma"}
    assert medassay.verify(run.path).ok


def test_a_private_bank_is_refused_for_external_judges(tmp_path):
    judges = [{**j, "provider": "openai_compatible", "url": "http://h/v1"} for j in makers.judges()]
    makers.write_bank(tmp_path / "bank", makers.open_items(2), may_leave=False)
    makers.write_models(tmp_path, makers.fake(), *judges)
    plan = makers.write_plan(tmp_path, task="open", judges=[j["id"] for j in judges])
    with pytest.raises(InputError, match="may not leave"):
        medassay.run(plan, secrets={})


def test_stored_answers_are_judged_again_without_asking_the_models(tmp_path, mock_server):
    log = tmp_path / "asked"
    url = mock_server("--log", log)
    plan = workspace(
        tmp_path, makers.open_items(5), [makers.endpoint(url, family="tested")], makers.judges()
    )
    first = medassay.run(plan, secrets={})
    bytes_before = {p.name: p.read_bytes() for p in first.path.iterdir() if p.is_file()}
    other = tmp_path / "other.json"
    graders = [
        {**makers.fake("grader", reply="Feedback: fine. [RESULT] 4"), "family": "x"},
        {**makers.fake("scorer", reply="question_id,score\nq1,7\nq2,3\nq3,9"), "family": "x"},
        *[{**j, "script": {"judge": 0.0}} for j in makers.judges()],
    ]
    other.write_text(json.dumps({"schema_version": 1, "models": graders}))
    asked = log.read_text()

    def again(task, *judges):
        options = JudgingOptions(judges=judges, models_file=other, task=task)
        # A scripted judge says the same of any batch, also where that has fewer answers.
        return judge_run(first, options, secrets={}, accept_failures=True)

    graded = again("prometheus", "grader")
    assert row(graded)["score"] == 0.75
    scored = again("g_eval_no_path", "scorer")
    assert sorted(s["score"] for s in lines(scored, "scores.jsonl")) == [3, 3, 7, 7, 9]
    assert row(scored)["scale"] == [0, 10]
    batches = [v["batch"] for v in lines(scored, "verdicts.jsonl")]
    assert sorted(map(len, batches)) == [2, 2, 3, 3, 3]
    lenient = again("", "judge-alpha", "judge-beta", "judge-gamma")
    assert row(lenient)["score"] == 1 > row(first)["score"]
    for made in (graded, scored, lenient):
        assert medassay.verify(made.path).ok
        assert made.manifest_document["judged_from"] == {
            "run": first.id,
            "root": first.seal.root,
        }
        assert made.manifest_document["methodology"] != first.manifest_document["methodology"]
    assert log.read_text() == asked
    assert {p.name: p.read_bytes() for p in first.path.iterdir()} == bytes_before
    page = medassay.publish(scored, tmp_path / "site")
    assert "g_eval_no_path, 0 to 10" in page.read_text()
    method = (page.parent / "methodology/index.html").read_text()
    assert "One judge grades each answer" in method
    assert "For every target fact" not in method
    assert medassay.verify(tmp_path / "site").ok


def test_a_changed_verdict_is_found_even_when_every_hash_was_made_anew(tmp_path):
    items = makers.open_items(4)
    told = {i["id"]: i["facts"][0]["text"] for i in items}
    plan = workspace(tmp_path, items, [makers.fake(replies=told)], makers.judges())
    run = medassay.run(plan, secrets={})
    path = run.path / "verdicts.jsonl"
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"verdict":"missing"', '"verdict":"entail"', 1))
    for name in ("seal.json", "MANIFEST.sha256"):
        (run.path / name).unlink()
    seal_run(medassay.Run(run.path), sealed_at="2026-11-20T00:00:00Z")
    report = medassay.verify(run.path)
    assert not report.ok
    assert "body is not what was said" in report.first_mismatch


def test_stored_verdicts_are_scored_again_with_another_penalty(tmp_path, mock_server):
    url = mock_server()
    plan = workspace(
        tmp_path, makers.open_items(20), [makers.endpoint(url, family="tested")], panel(url)
    )
    first = medassay.run(plan, secrets={})
    same, mild = rescore(first), rescore(first, contradiction_penalty=0)
    scores = [[s["score"] for s in lines(run, "scores.jsonl")] for run in (first, same, mild)]
    assert scores[0] == scores[1]
    assert all(a <= b for a, b in zip(scores[0], scores[2], strict=True))
    assert scores[0] != scores[2]
    replies = [[v["replies"] for v in lines(run, "verdicts.jsonl")] for run in (first, mild)]
    assert replies[0] == replies[1]
    assert mild.manifest_document["methodology"] != same.manifest_document["methodology"]
    assert all(medassay.verify(run.path).ok for run in (first, same, mild))
    closed = medassay.run(closed_plan(tmp_path / "closed"), secrets={})
    assert medassay.verify(rescore(closed).path).ok
    with pytest.raises(InputError, match="expected 0 to 1"):
        rescore(first, contradiction_penalty=2)
    made = sorted((tmp_path / "closed" / "runs").iterdir())
    with pytest.raises(InputError, match="form choice, which task 'open' cannot score"):
        options = JudgingOptions(
            judges=[j["id"] for j in makers.judges()],
            models_file=tmp_path / "closed" / "models.json",
            task="open",
        )
        judge_run(closed, options, secrets={})
    assert sorted((tmp_path / "closed" / "runs").iterdir()) == made  # nothing half-made


def test_a_single_judge_may_not_grade_itself_either(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.open_items(2))
    makers.write_models(tmp_path, makers.fake())
    for task in ("g_eval", "prometheus"):
        plan = makers.write_plan(tmp_path, task=task, judges=["m"])
        with pytest.raises(InputError, match="would grade itself"):
            medassay.run(plan, secrets={})


def test_a_substitute_keeps_a_tested_judge_from_grading_itself(tmp_path):
    own, *others = makers.judges()
    four = [own, *others, {**makers.fake("judge-delta", judge=0.5), "family": "delta"}]
    makers.write_bank(tmp_path / "bank", makers.open_items(2))
    makers.write_models(tmp_path, *four)
    wanted = {"task": "open", "models": [own["id"]], "judges": [j["id"] for j in four[:3]]}
    plan = makers.write_plan(tmp_path, **wanted, substitute="judge-delta")
    said = lines(medassay.run(plan, secrets={}), "verdicts.jsonl")
    assert own["id"] not in {v["judge"] for v in said}


def test_a_failing_batch_is_as_many_failures_as_it_has_answers(tmp_path):
    failing = {
        **makers.fake("grader", fail_items=[f"open-{n:03}" for n in range(4)]),
        "family": "x",
    }
    tested = [makers.fake(reply="Rule binds courts.")]
    plan = workspace(tmp_path, makers.open_items(4), tested, [failing], task="g_eval")
    with pytest.raises(IncompleteError, match="4 verdicts are missing: 4 failed"):
        medassay.run(plan, secrets={})
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    assert [s["score"] for s in lines(run, "scores.jsonl")] == [None] * 4
    assert medassay.verify(run.path).ok


def closed_plan(folder):
    makers.write_bank(folder / "bank", makers.law_items())
    makers.write_models(folder, makers.fake(reply="A"), *makers.judges())
    return makers.write_plan(folder)


def test_weighted_scores_go_from_the_endpoint_into_the_sealed_run(tmp_path, mock_server):
    url = mock_server()
    judge = makers.endpoint(url, "scorer", family="x", logprobs=True)
    tested = [makers.fake(reply="It binds courts.")]
    items = makers.open_items(6)
    plan = workspace(tmp_path, items, tested, [judge], task="g_eval_weighted")
    run = medassay.run(plan, secrets={})
    verdicts = lines(run, "verdicts.jsonl")
    assert len(verdicts) == 6
    for verdict in verdicts:
        body = verdict["body"]
        assert verdict["score"] == pytest.approx(body["integer"] + 0.25)
        assert body["weighted"] is True
        assert verdict["alternatives"][0][-1][1][0] == str(body["integer"] + 1)
    assert row(run)["metric"] == "g_eval_weighted"
    assert row(run)["unweighted_scores"] == 0
    assert not (run.path / "audit.jsonl").exists()  # nothing was judged in batches
    assert medassay.verify(run.path).ok
    path = run.path / "verdicts.jsonl"
    path.chmod(0o644)
    path.write_text(path.read_text().replace("-1.386", "-1.387", 1))
    for name in ("MANIFEST.sha256", "seal.json"):
        (run.path / name).unlink()
    seal_run(run, sealed_at="2026-11-21T00:00:00Z")
    found = medassay.verify(run.path)
    assert "is not what was said" in found.first_mismatch


def test_weights_are_refused_where_a_judge_gives_no_probabilities(tmp_path):
    judges = [{**makers.fake("scorer"), "family": "x"}]
    plan = workspace(
        tmp_path, makers.open_items(2), [makers.fake()], judges, task="g_eval_weighted"
    )
    with pytest.raises(InputError, match="gives none"):
        medassay.run(plan, secrets={})
    assert not (tmp_path / "runs").exists()


def test_a_sample_of_batches_is_judged_again_singly(tmp_path, mock_server):
    log = tmp_path / "asked"
    judge = makers.endpoint(mock_server("--log", log), "scorer", family="x")
    items = makers.open_items(45)
    plan = workspace(tmp_path, items, [makers.fake(reply="It binds.")], [judge], task="g_eval")
    run = medassay.run(plan, secrets={})
    assert len(log.read_text().split()) == 15 + 3  # batches of three; 5 % of 45, one by one
    again = lines(run, "audit.jsonl")
    assert len(again) == 3
    assert all("batch" not in verdict for verdict in again)
    in_batch = {v["item"]: v["score"] for v in lines(run, "verdicts.jsonl")}
    assert [v["score"] - in_batch[v["item"]] for v in again] == [1, 1, 1]
    assert {s["item"]: s["score"] for s in lines(run, "scores.jsonl")} == in_batch
    difference = run.statistics.document["fields"]["solo"]["overall"]["panel"]["batch_difference"]
    assert (difference["score"], difference["n"]) == (1, 3)
    assert medassay.verify(run.path).ok
    page = medassay.publish(run, tmp_path / "site").parent / "methodology/index.html"
    assert "1.00 points" in page.read_text()
    path = run.path / "audit.jsonl"
    path.chmod(0o644)
    whole = path.read_bytes().splitlines(keepends=True)
    for kept, says in ((whole[1:], "not the sample"), (whole[:-1], "not the whole sample")):
        path.chmod(0o644)
        path.write_bytes(b"".join(kept))
        for name in ("MANIFEST.sha256", "seal.json"):
            (run.path / name).unlink()
        seal_run(run, sealed_at="2026-11-21T00:00:00Z")
        assert f"{says} that the seed draws" in medassay.verify(run.path).first_mismatch


def steps_file(*, with_path=True, reviewed_by="a physician", prompts=None, language="en"):
    texts = {language: "1. Read.\n2. Compare.\n3. Score."}
    made = EvaluationSteps(
        judge="writer",
        with_path=with_path,
        prompts=prompts or prompt_hashes(texts, with_path=with_path),
        reviewed_by=reviewed_by,
        texts=texts,
    )
    return made.to_toml()


def test_reviewed_steps_of_a_plan_are_what_the_judge_is_told(tmp_path):
    judges = [{**makers.fake("scorer", reply="question_id,score\nq,4"), "family": "x"}]
    plan = workspace(
        tmp_path,
        makers.open_items(2),
        [makers.fake(reply="It binds.")],
        judges,
        task="g_eval_single",
        steps="steps.toml",
    )
    with pytest.raises(InputError, match="no such file of steps"):
        medassay.run(plan, secrets={})
    file = tmp_path / "steps.toml"
    for changed, says in (
        (steps_file(reviewed_by=" "), "'reviewed_by' is empty"),
        (steps_file(with_path=False), "needs steps written with a reasoning path"),
        (steps_file(prompts={"en": "0"}), "written for other criteria"),
        (steps_file().replace('en = """', 'fr = """'), "expected text for one of"),
        (steps_file().replace("with_path", "path"), "required field `with_path`"),
    ):
        file.write_text(changed)
        with pytest.raises(InputError, match=says):
            medassay.run(plan, secrets={})
    file.write_text(steps_file())
    run = medassay.run(plan, secrets={})
    assert run.manifest_document["steps"]["reviewed_by"] == "a physician"
    default = plan.read_text().replace('steps = "steps.toml"', "")
    plan.write_text(default)
    other = medassay.run(plan, secrets={})
    assert run.manifest_document["methodology"] != other.manifest_document["methodology"]
    assert run.manifest_document["methodology"] != other.manifest_document["methodology"]
    for made in (run, other):
        assert medassay.verify(made.path).ok


def test_criteria_are_judged_scored_and_broken_down_by_tag(tmp_path):
    said = {"criteria": [{"id": "c1", "met": True}, {"id": "c2", "met": False}]}
    said["criteria"].append({"id": "c3", "met": True, "why": "it promises"})
    said["criteria"].append({"id": "c4", "met": False})
    judges = [{**makers.fake("grader", reply=json.dumps(said)), "family": "x"}]
    plan = workspace(tmp_path, rubric_items(12), [makers.fake(reply="Win!")], judges, task="rubric")
    run = medassay.run(plan, secrets={})
    assert {s["score"] for s in lines(run, "scores.jsonl")} == {0.1}
    found = row(run)
    assert (found["metric"], found["scale"]) == ("rubric_points", [0, 1])
    assert found["tags"]["axis:a"]["score"] == pytest.approx(0.6)
    assert found["tags"]["axis:b"]["score"] == 0  # −5 / 4, a mean below 0
    assert medassay.verify(run.path).ok
    assert medassay.publish(run, tmp_path / "site").exists()  # one criterion has no tag
    again = rescore(run)
    assert medassay.verify(again.path).ok
    assert row(again)["score"] == pytest.approx(0.1)


def test_two_ranked_models_share_the_scale_of_a_graded_task(tmp_path, mock_server):
    """The best answer per question and every breakdown are on the scale of the task."""
    url = mock_server()
    tested = [makers.endpoint(url, name, family=name) for name in ("m1", "m2")]
    judge = makers.endpoint(url, "scorer", family="x")
    plan = workspace(tmp_path, makers.open_items(12), tested, [judge], task="g_eval_single")
    run = medassay.run(plan, secrets={})
    oracle = run.statistics.document["fields"]["solo"]["overall"]["oracle"]
    assert 1 < oracle["score"] <= 10
    assert [
        list(g.scale)
        for g in breakdown(run, ["category"], task_of_run(run.manifest).scale)["category"]
    ] == [[0, 10]] * 2
    assert medassay.verify(run.path).ok
    page = medassay.publish(run, tmp_path / "site").parent / "leads/index.html"
    assert f"Best answer per question: {oracle['score']:.2f}" in page.read_text()
    for win in oracle["wins"]:
        assert 0 <= win["share_lo"] <= win["wins"] / 12 <= win["share_hi"] <= 1
        ends = f"[{100 * win['share_lo']:.1f}, {100 * win['share_hi']:.1f}]"
        assert f"{100 * win['wins'] / 12:.1f} % {ends}" in page.read_text()


def test_judging_again_says_what_it_costs_before_it_asks(tmp_path, mock_server, cli):
    log = tmp_path / "asked"
    items = makers.open_items(45)
    tested = [makers.fake(replies={i["id"]: i["facts"][0]["text"] for i in items[:40]})]
    first = medassay.run(workspace(tmp_path, items, tested, makers.judges()), secrets={})
    price = {"price": {"input": 1.0, "output": 4.0}}
    scorer = makers.endpoint(mock_server("--log", log), "scorer", family="x", **price)
    makers.write_models(tmp_path, scorer)
    asked = ("judge", first.path, "--panel", "scorer", "--task", "g_eval")
    code, shown, _ = cli("--json", *asked, "--plan")
    told = json.loads(shown)
    # 40 answers in batches of three, and 5 % of them once more
    assert (code, told["answers"], told["calls"], told["stored"]) == (0, 40, 14 + 2, 0)
    assert told["money"] > 0
    code, _, errors = cli(*asked)
    assert code == 2
    assert "--yes is needed" in errors
    assert not log.exists() or not log.read_text()
    assert cli(*asked, "--yes")[0] == 0
    assert len(log.read_text().split()) == 16
    code, shown, _ = cli("--json", *asked, "--plan")
    assert json.loads(shown)["stored"] == 16
    assert json.loads(shown)["money"] == 0


def test_a_changed_reader_scores_anew_or_says_that_it_would_ask_again(tmp_path, monkeypatch):
    judges = [{**makers.fake("grader", reply="[RESULT] 4"), "family": "x"}]
    plan = workspace(
        tmp_path, makers.open_items(3), [makers.fake(reply="Yes.")], judges, task="prometheus"
    )
    run = medassay.run(plan, secrets={})
    assert {s["score"] for s in lines(run, "scores.jsonl")} == {0.75}
    monkeypatch.setattr("medassay.judging.graders.prometheus.read_result", lambda reply: 2)
    assert "is not what was said" in medassay.verify(run.path).first_mismatch
    again = rescore(run)
    assert {s["score"] for s in lines(again, "scores.jsonl")} == {0.25}
    assert medassay.verify(again.path).ok
    monkeypatch.setattr("medassay.judging.graders.prometheus.read_result", lambda reply: None)
    with pytest.raises(InputError, match="would ask again"):
        rescore(run)


def test_journals_left_by_a_kill_behind_the_seal_are_no_part_of_a_run(tmp_path):
    judges = [{**makers.fake("grader", reply="[RESULT] 4"), "family": "x"}]
    plan = workspace(
        tmp_path, makers.open_items(2), [makers.fake(reply="Yes.")], judges, task="prometheus"
    )
    run = medassay.run(plan, secrets={})
    for name in ("journal", "verdicts", "audit"):
        (run.path / name).mkdir()
        (run.path / name / "00000.jsonl").write_text("left\n")
    assert medassay.verify(run.path).ok
    planted = run.path / "audit.jsonl"
    planted.write_bytes((run.path / "verdicts.jsonl").read_bytes())
    for name in ("MANIFEST.sha256", "seal.json"):
        (run.path / name).unlink()
    seal_run(run, sealed_at="2026-11-21T00:00:00Z")
    assert "the manifest knows of none" in medassay.verify(run.path).first_mismatch


def test_a_missing_verdict_on_criteria_is_bounded_by_the_worst_they_allow(tmp_path):
    good = {"criteria": [{"id": f"c{n}", "met": n < 3} for n in (1, 2, 3, 4)]}
    told = {f"r{n}": json.dumps(good) for n in range(11)}  # nothing usable on the twelfth
    judges = [{**makers.fake("grader", replies=told), "family": "x"}]
    plan = workspace(
        tmp_path, rubric_items(12), [makers.fake(reply="Rest.")], judges, task="rubric"
    )
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    found = row(run)
    assert found["judge_failures"] == 1
    assert found["score_best"] == pytest.approx(1)
    assert found["score_worst"] == pytest.approx((11 - 6 / 10) / 12)
    assert medassay.verify(run.path).ok
