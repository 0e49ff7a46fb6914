"""Runs over items of several kinds: each asked in the way of its kind, each metric with rankings of
its own, and no mean over two of them.
"""

import json
import pickle

import pytest
from tests import makers
from tests.publishing.private_items import private_item
from tests.runner.mixed_plans import REFERENCE, items, student, text_items, workspace

import medassay
from medassay import pipeline
from medassay.core.records.plan import Plan
from medassay.errors import InputError
from medassay.exchange.compare import compare
from medassay.kinds.catalog import OWN_TASKS, TASKS, task_of_plan
from medassay.kinds.diagnoses.tasks import case_scores
from medassay.publishing.tombstone import forget
from medassay.runner.prepare import prepare
from medassay.runner.preview import preview
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.storage.jsonl import read_jsonl

BOTH = {"accuracy": 24, "chrf": 16}


def rows(run, domain="overall"):
    return medassay.leaderboard(run).domains[domain]


def by_metric(run, domain="overall"):
    return {(row["model"], row["metric"]): row for row in rows(run, domain)}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    plan = workspace(
        folder,
        student("good", family="alpha"),
        student("poor", "Rest.", family="beta"),
        {"id": "random", "provider": "baseline", "model": "random"},
    )
    return medassay.run(plan, secrets={})


@pytest.mark.parametrize(
    ("plan", "digest"),
    [
        (Plan(banks=("bank",), models=("m",)), "b9f706ace0a2"),
        (
            Plan(banks=("demo",), models=("a", "b"), settings=("few_shot",), seed=7, judges=("x",)),
            "b9bc257a9943",
        ),
    ],
)
def test_a_plan_without_a_task_keeps_the_hash_that_it_had(plan, digest):
    assert plan.hash == digest
    assert plan.to_dict()["task"] == "closed"


def test_over_closed_items_a_plan_without_a_task_means_what_it_meant(tmp_path):
    models = [makers.fake("m", letters="hash")]
    unsaid = makers.workspace(tmp_path / "unsaid", makers.many_items(12), *models)
    said = makers.workspace(tmp_path / "said", makers.many_items(12), *models, task="closed")
    one, two = medassay.run(unsaid, secrets={}), medassay.run(said, secrets={})
    assert one.id == two.id
    for name in ("trials.jsonl", "scores.jsonl", "statistics.json"):
        assert (one.path / name).read_bytes() == (two.path / name).read_bytes()
    assert one.manifest.methodology == two.manifest.methodology
    assert "tasks" not in one.manifest_document


@pytest.mark.filterwarnings("ignore:bank 'law'. .* items are not asked")
def test_each_item_is_asked_and_scored_as_in_a_run_of_its_task_alone(mixed, tmp_path):
    assert mixed.manifest.task == "closed+text"
    assert mixed.manifest.tasks == {"choice": "closed", "text": "text"}
    found = by_metric(mixed)
    for task, metric in (("closed", "accuracy"), ("text", "chrf")):
        plan = workspace(tmp_path / task, student("good"), student("poor", "Rest."), task=task)
        alone = medassay.run(plan, secrets={})
        trials = {
            (t["model"], t["item"]): (t["text"], t["value"], t["template"])
            for t in read_jsonl(alone.path / "trials.jsonl")
        }
        own = {
            (t["model"], t["item"]): (t["text"], t["value"], t["template"])
            for t in read_jsonl(mixed.path / "trials.jsonl")
        }
        assert {key: own[key] for key in trials} == trials
        for row in rows(alone):
            other = found[row["model"], metric]
            for name in ("score", "lo", "hi", "n", "outcomes", "coverage", "interval"):
                assert other[name] == row[name]


def test_every_metric_has_rows_of_its_own_and_no_row_is_over_both(mixed):
    for domain in ("overall", "law"):
        assert {(row["metric"], row["n"]) for row in rows(mixed, domain)} == {*BOTH.items()}
    # A baseline chooses options, and has no row where there are none.
    assert {row["metric"] for row in rows(mixed) if row["model"] == "random"} == {"accuracy"}
    of_metric = {s.metric: s for s in mixed.statistics.by_metric}
    assert of_metric.keys() == BOTH.keys()
    for metric, statistics in of_metric.items():
        assert {row.metric for row in statistics.rows("overall")} == {metric}
        assert statistics.relations("overall", "solo").n_items == BOTH[metric]
    assert "text" in of_metric["chrf"].document
    assert "text" not in of_metric["accuracy"].document


def test_the_run_verifies_and_a_changed_score_of_either_metric_is_found(mixed, tmp_path):
    import shutil

    assert medassay.verify(mixed.path).ok
    for item in ("q00003", "t003"):
        copy = tmp_path / item
        shutil.copytree(mixed.path, copy)
        (copy / "scores.jsonl").chmod(0o644)
        lines = (copy / "scores.jsonl").read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if json.loads(line)["item"] == item)
        lines[at] = json.dumps({**json.loads(lines[at]), "score": 0.5})
        (copy / "scores.jsonl").write_text("\n".join(lines) + "\n")
        assert not medassay.verify(copy).ok


def test_the_preview_names_each_task_and_its_items(tmp_path, cli):
    plan = workspace(tmp_path, student())
    tasks = [(t.task, t.metric, t.items) for t in preview(plan).tasks]
    assert tasks == [("closed", "accuracy", {"choice": 24}), ("text", "chrf", {"text": 16})]
    code, out, _ = cli("run", plan, "--plan")
    assert code == 0
    assert "task closed: 24 items (24 choice), scored by accuracy" in out
    assert "task text: 16 items (16 text), scored by chrf" in out


def test_a_reply_is_as_long_as_the_task_of_its_item_says(tmp_path):
    bare = {"id": "m", "provider": "openai_compatible", "url": "http://127.0.0.1:9/v1"}
    entries = [bare, {**bare, "id": "limited", "max_tokens": 300}]
    plan = workspace(tmp_path, *({**entry, "location": "local"} for entry in entries))
    schedule = prepare(medassay.load_plan(plan), tmp_path, tmp_path).schedule
    limits = {}
    for number in range(schedule.n_trials):
        cell, item, _ = schedule.trial(number)
        limits.setdefault((cell.model, item.form), schedule.prompt(cell, item).max_tokens)
    assert limits[("m", "choice")] == TASKS["closed"].reply_tokens
    assert limits[("m", "text")] is None  # that of the entry
    assert schedule.specs["m"].max_tokens == TASKS["text"].reply_tokens
    assert limits[("limited", "choice")] is limits[("limited", "text")] is None


def test_a_worker_asks_what_one_process_asks(tmp_path):
    plan = workspace(tmp_path, student(), bank_items=items(4, 3))
    schedule = prepare(medassay.load_plan(plan), tmp_path, tmp_path).schedule
    sent = pickle.loads(pickle.dumps(schedule))
    sent.read_from([bank.items[position] for bank, position in schedule.items()])
    for number in range(schedule.n_trials):
        cell, item, _ = schedule.trial(number)
        assert sent.prompt(cell, item).encoded == schedule.prompt(cell, item).encoded


def test_examples_are_of_the_kind_of_the_question(tmp_path):
    examples = [
        *({**i, "id": f"dev-{i['id']}", "split": "dev"} for i in makers.many_items(3)),
        *({**i, "id": f"dev-{i['id']}", "split": "dev"} for i in text_items(3)),
    ]
    some = [*items(4, 3), *examples]
    plan = workspace(tmp_path, student(), bank_items=some, settings=["few_shot"], few_shot_k=2)
    schedule = prepare(medassay.load_plan(plan), tmp_path, tmp_path).schedule
    for number in range(schedule.n_trials):
        cell, item, _ = schedule.trial(number)
        prompt = schedule.prompt(cell, item)
        answers = [m["content"] for m in prompt.messages if m["role"] == "assistant"]
        assert len(answers) == 2
        assert all((len(answer) > 20) is (item.form == "text") for answer in answers)
    few = workspace(
        tmp_path / "few", student(), bank_items=[*items(4, 3), *examples[:3]], settings=["few_shot"]
    )
    with pytest.raises(InputError, match="dev split of bank 'law' has 0 usable"):
        prepare(medassay.load_plan(few), tmp_path / "few", tmp_path / "few")


def test_tables_of_tasks_choose_them(tmp_path):
    plan = workspace(
        tmp_path, student(), tasks={"choice": "closed", "reference": "healthbranches_similarity"}
    )
    run = medassay.run(plan, secrets={})
    assert run.manifest.tasks == {"choice": "closed", "text": "healthbranches_similarity"}
    assert run.manifest_document["plan"]["tasks"] == {
        "choice": "closed",
        "reference": "healthbranches_similarity",
    }
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"task": "closed", "tasks": {"choice": "closed"}}, r"'task' and \[tasks\] stand for"),
        ({"tasks": {"choices": "closed"}}, "kind 'choices', which is unknown; known are choice"),
        ({"tasks": {"choice": "clozed"}}, "task 'clozed' is unknown"),
        ({"tasks": {"choice": "text"}}, "task 'text' asks no items of kind 'choice'; those that"),
        ({"tasks": {"record": "record"}}, "of which the banks have no items; they have choice, re"),
        ({"tasks": {"reference": "meqsum"}}, "task 'meqsum' ends replies at a mark"),
        ({"tasks": {"reference": "perplexity"}}, "task 'perplexity' asks for likelihoods"),
        ({"tasks": {"choice": "closed"}, "scoring": "likelihood"}, "'scoring' is for plans of one"),
        ({"templates": ["closed", "closed"]}, "'templates' names something twice"),
        (
            {"tasks": {"choice": "closed"}, "templates": ["closed"]},
            "'templates' is for plans of one task",
        ),
    ],
)
def test_what_cannot_be_asked_together_is_refused_in_one_line(tmp_path, cli, keys, says):
    plan = workspace(tmp_path, student(), **keys)
    code, _, errors = cli("run", plan)
    assert code == 3
    assert errors.count("\n") == 1
    import re

    assert re.search(says, errors)
    assert not (tmp_path / "runs").exists()


def test_beside_templates_a_plan_means_the_closed_task_as_before(tmp_path):
    plan = workspace(tmp_path, student(), templates=["closed"])
    task = prepare(medassay.load_plan(plan), tmp_path, tmp_path).schedule.task
    assert task.name == "closed"


def test_a_table_of_tasks_leaves_out_what_judges_would_score_where_there_are_none():
    plan = Plan(banks=("b",), models=("m",), tasks={"choice": "closed"})
    assert task_of_plan(plan, {"choice", "open"}).name == "closed"
    named = Plan(banks=("b",), models=("m",), tasks={"facts": "open"})
    assert task_of_plan(named, {"choice", "open"}).name == "closed+open"


def test_baselines_alone_are_ranked_where_there_is_something_to_choose(tmp_path):
    random = {"id": "random", "provider": "baseline", "model": "random"}
    run = medassay.run(workspace(tmp_path, random), secrets={})
    assert [(row["metric"], row["n"]) for row in rows(run)] == [("accuracy", 24)]
    assert medassay.verify(run.path).ok


def test_two_panels_in_one_run_are_refused():
    both = {"open", "rubric", "choice"}
    with pytest.raises(InputError, match="open and rubric are both scored by judges"):
        task_of_plan(Plan(banks=("b",), models=("m",), judges=("j",)), both)
    # Nobody named judges: what they would decide on is not asked, as before.
    assert task_of_plan(Plan(banks=("b",), models=("m",)), both).name == "closed"


def test_every_kind_has_a_task_that_asks_its_items():
    for form, name in OWN_TASKS.items():
        if form != "withheld":
            assert form in TASKS[name].readers


def judged_workspace(folder, **plan):
    facts = [{"id": f"f{n}", "verdict": "entail", "evidence": ""} for n in (1, 2, 3)]
    reply = json.dumps({"facts": facts, "extra_false_claims": []})
    judges = [{**judge, "script": {"reply": reply}} for judge in makers.judges()]
    return workspace(
        folder,
        student("good", family="delta"),
        *judges,
        bank_items=[*makers.many_items(12), *makers.open_items(11)],
        **plan,
    )


def test_judged_and_closed_items_stand_side_by_side(tmp_path):
    judges = [judge["id"] for judge in makers.judges()]
    run = medassay.run(judged_workspace(tmp_path, judges=judges), secrets={})
    assert run.manifest.task == "closed+open"
    found = by_metric(run)
    closed, judged = found["good", "accuracy"], found["good", "fact_score"]
    assert (closed["n"], judged["n"], judged["score"]) == (12, 11, 1.0)
    assert "agreement" not in closed
    assert judged["agreement"] == 1.0
    # Its judges are scripted: that says nothing of items which no judge sees.
    assert "scripted" in judged["flags"]
    assert medassay.verify(run.path).ok
    place = medassay.publish(run, tmp_path / "site").parent
    assert medassay.verify(tmp_path / "site").ok
    cell = (place / "cell/good/law/zero-shot-solo/index.html").read_text()
    assert "judge-alpha" in cell


def test_questions_with_options_are_no_cases_of_diagnoses(tmp_path):
    cases = makers.ddx_items(10)
    makers.write_bank(
        tmp_path / "bank", [*makers.many_items(12), *cases], domains=("law", "medicine")
    )
    near = {f"case-{n:03}": makers.listed(f"Malady {n}", f"Kin {n}", "Flu") for n in range(10)}
    makers.write_models(tmp_path, makers.fake("near", replies=near), makers.ddx_judge(10))
    run = medassay.run(makers.write_plan(tmp_path, models=["near"], judges=["judge"]), secrets={})
    assert run.manifest.task == "closed+ddx"
    place = medassay.publish(run, tmp_path / "site").parent
    assert {path.parent.parent.name for path in place.glob("case/*/*/index.html")} == {"medicine"}
    assert len([*place.glob("case/medicine/*/index.html")]) == 10
    [scores] = case_scores(run, "semantic", "solo").values()
    assert len(scores) == 10
    assert "Worst 5 %" in (place / "harm/index.html").read_text()
    assert medassay.verify(tmp_path / "site").ok


def test_without_judges_the_line_says_how_the_others_would_be_asked(tmp_path, cli):
    plan = judged_workspace(tmp_path)
    code, _, errors = cli("run", plan)
    assert code == 0
    assert "11 items are not asked" in errors
    assert "with 'judges' in the plan task open asks them, too" in errors


def test_a_judge_can_be_had_for_the_open_answers_of_a_finished_run(mixed, tmp_path, mock_server):
    makers.write_models(tmp_path, makers.endpoint(mock_server(), "judge", family="x"))
    run = judge_run(
        mixed,
        JudgingOptions(
            judges=["judge"],
            task="g_eval",
            models_file=tmp_path / "models.json",
        ),
        secrets={},
    )
    assert run.manifest.tasks == {"choice": "closed", "text": "g_eval"}
    found = by_metric(run)
    assert {metric for _, metric in found} == {"accuracy", "g_eval"}
    assert found["good", "accuracy"]["score"] == by_metric(mixed)["good", "accuracy"]["score"]
    assert medassay.verify(run.path).ok


def test_pairs_are_compared_metric_by_metric_and_a_gate_asks_which(mixed, cli):
    comparison = compare([mixed], only=["good", "poor"])
    assert {(pair.metric, pair.n) for pair in comparison.pairs} == {*BOTH.items()}
    [pair] = compare([mixed], only=["good", "poor"], metric="chrf").pairs
    assert pair.better == "a"
    gate = ("compare", mixed.path, "--only", "good,poor", "--gate", "noninferior:0.05")
    code, _, errors = cli(*gate)
    assert code == 3
    assert "several metrics (accuracy, chrf); name one with --metric" in errors
    assert cli(*gate, "--metric", "chrf")[0] == 0
    code, _, errors = cli("compare", mixed.path, "--metric", "bleu")
    assert code == 3
    assert "has no 'bleu'; it has accuracy, chrf" in errors


def test_a_gate_asks_which_metric_where_one_is_of_one_domain_alone(tmp_path, cli):
    tax = ({**item, "id": f"tax-{item['id']}"} for item in makers.many_items(12, "tax"))
    bank_items = [*makers.many_items(12), *tax, *text_items(16)]
    makers.write_bank(tmp_path / "bank", bank_items, domains=["law", "tax"])
    makers.write_models(tmp_path, student(), student("poor", reply="No."))
    run = medassay.run(makers.write_plan(tmp_path, models=["good", "poor"]), secrets={})
    gate = ("compare", run.path, "--only", "poor,good", "--gate", "noninferior:0.9")
    code, _, errors = cli(*gate)
    assert (code, "several metrics (accuracy, chrf)" in errors) == (3, True), errors


def test_runs_of_other_models_join_with_all_metrics(mixed, tmp_path):
    plan = workspace(tmp_path, student("late", REFERENCE, family="gamma"))
    late = medassay.run(plan, secrets={})
    place = medassay.publish([mixed, late], tmp_path / "site")
    board = json.loads((place.parent / "data/run/statistics.json").read_text())
    found = {(row["model"], row["metric"]) for row in board["domains"]["overall"]}
    assert {("late", "accuracy"), ("late", "chrf"), ("good", "chrf")} <= found
    assert medassay.verify(tmp_path / "site").ok


def test_a_board_of_domains_of_one_kind_each_has_all_pairs_and_pages(tmp_path):
    random = {"id": "random", "provider": "baseline", "model": "random"}
    models = (student("good"), student("poor", "Rest."), random)
    some = [*makers.many_items(12, "law"), *text_items(11, "lore")]
    makers.write_bank(tmp_path / "bank", some, domains=("law", "lore"))
    makers.write_models(tmp_path, *models)
    plan = makers.write_plan(tmp_path, models=[m["id"] for m in models[:2]], demonstration=True)
    run = medassay.run(plan, secrets={})
    place = medassay.publish(run, tmp_path / "shown").parent
    head, *lines = (place / "data/pairs.csv").read_text().splitlines()
    assert head.split(",")[:4] == ["domain", "mode", "metric", "first"]
    assert {line.split(",")[2] for line in lines} == {"accuracy", "chrf"}
    beside = makers.write_plan(tmp_path, models=[m["id"] for m in models])
    place = medassay.publish(medassay.run(beside, secrets={}), tmp_path / "site").parent
    # A baseline has nothing to say of open questions, and no page of answers to them.
    assert (place / "cell/random/law/zero-shot-solo/index.html").is_file()
    assert not (place / "cell/random/lore").exists()
    assert medassay.verify(tmp_path / "site").ok


def test_what_is_for_one_metric_refuses_several(mixed, cli):
    for command in (("study", "settings", mixed.path, mixed.path),):
        code, _, errors = cli(*command)
        assert code == 3
        assert "asks items of several kinds (tasks closed, text)" in errors


def test_an_export_names_the_metric_of_each_sample(mixed, tmp_path, cli):
    code, _, errors = cli(
        *("export", mixed.path, "--format", "every-eval-ever", "--to", tmp_path / "eee")
    )
    assert code == 0, errors
    results, samples = set(), set()
    for path in (tmp_path / "eee").rglob("*.json*"):
        for line in path.read_text().splitlines() if path.suffix == ".jsonl" else []:
            samples.add(json.loads(line)["evaluation_result_id"])
        if path.suffix == ".json":
            for result in json.loads(path.read_text())["evaluation_results"]:
                results.add(result["evaluation_result_id"])
    assert samples == {"law/accuracy", "law/chrf"}
    assert samples <= results


def test_an_audit_holds_each_metric_of_a_cell_against_its_own(tmp_path):
    plan = workspace(tmp_path, student())
    medassay.run(plan, secrets={})
    fresh = pipeline.run(plan, secrets={}, fresh=True)
    cells = json.loads((fresh.path / "rerun.json").read_text())["cells"]
    assert [(cell["metric"], cell["trials"]) for cell in cells] == [*BOTH.items()]
    assert all(cell["within"] and cell["identical"] == cell["trials"] for cell in cells)


def test_synthetic_items_of_both_kinds_stay_withheld_and_deleted_ones_deleted(tmp_path):
    secret = text_items(14)
    for item in secret[:12]:
        item |= {"kind": "synthetic", "reference": f"Quokkas know it. {item['reference']}"}
        item.pop("source")
    private = [private_item(f"law-s{n}", cluster=f"c{n}") for n in range(12)]
    plan = workspace(tmp_path, student(), bank_items=[*makers.many_items(12), *private, *secret])
    run = medassay.run(plan, secrets={})
    assert {row["metric"] for row in run.statistics.document["by_kind"]["synthetic"]["law"]} == {
        "accuracy"
    }
    site = tmp_path / "site"
    medassay.publish(run, site)
    assert medassay.verify(site).ok
    published = b"".join(p.read_bytes() for p in site.rglob("*") if p.is_file())
    assert b"Quokkas" not in published
    forget("t001", tmp_path, reason="asked for", at="2026-11-26")
    assert medassay.verify(run.path).ok
    medassay.publish(medassay.open_run(run.path), site, publication="later")
    assert medassay.verify(site).ok
