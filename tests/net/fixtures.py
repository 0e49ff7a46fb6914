"""How each fixture of the net was made.

`python -m tests.net.make` makes those that have no pack yet; a pack is never made again.
"""

import json
import shutil

import medassay
from medassay.cli.main import call
from medassay.core.canonical import canonical
from medassay.exchange.catalog import IMPORTS
from medassay.exchange.ddx import import_ddx
from medassay.exchange.healthbench import import_healthbench
from medassay.publishing.tombstone import forget
from medassay.runner.merge import join_runs
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.runner.rescore import rescore
from tests import makers
from tests.context.services import Services
from tests.exchange.harness_logs import ONE
from tests.exchange.healthbench_rows import GIVEN
from tests.publishing.private_items import make_run, private_item
from tests.runner.judged_plans import rubric_items
from tests.runner.judged_plans import workspace as judged_plan
from tests.synthesis.shops import write_shop

TODAY = "2026-11-24T00:00:00Z"


def _runs(folder, *runs):
    """Keep sealed runs, and nothing else of where they were made."""
    for run in runs:
        shutil.move(run.path, folder / run.path.name)


def _run(folder, work, plan):
    _runs(folder, medassay.run(plan, secrets={}))


def closed(folder, work):
    """Two models, a baseline and options in another order, three times each."""
    items = makers.many_items(12) + makers.law_items()
    makers.write_bank(work / "bank", items)
    makers.write_models(
        work,
        makers.fake("one", letters="hash"),
        makers.fake("two", reply="A or B"),
        {"id": "random", "provider": "baseline", "model": "random"},
    )
    models = ["one", "two", "random"]
    _run(
        folder,
        work,
        makers.write_plan(work, models=models, shuffle_options=True, repeats=3),
    )


def few_shot(folder, work):
    """Worked examples from the dev split, and both readings of letters."""
    items = makers.many_items(14)
    for item in items[:4]:
        item["split"] = "dev"
    makers.write_bank(work / "bank", items)
    makers.write_models(work, makers.fake("one", letters="hash"))
    plan = makers.write_plan(
        work,
        models=["one"],
        settings=["zero_shot", "few_shot"],
        few_shot_k=3,
        extraction="paper",
    )
    _run(folder, work, plan)


def clustered(folder, work):
    """Vignettes of several items, and two domains pooled."""
    items = [
        {**item, "cluster": f"{domain}-{n // 3}", "id": f"{domain}-{item['id']}"}
        for domain in ("alpha", "beta")
        for n, item in enumerate(makers.many_items(24, domain))
    ]
    makers.write_bank(work / "bank", items, domains=("alpha", "beta"))
    makers.write_models(work, *(makers.fake(name, letters="hash") for name in ("one", "two")))
    _run(folder, work, makers.write_plan(work, models=["one", "two"]))


def _open(folder, work, task, judges, items=None, **more):
    tested = [makers.fake("student", reply="Rule 1 binds courts. <think>x</think> It does.")]
    _run(
        folder,
        work,
        judged_plan(work, items or makers.open_items(8), tested, judges, task=task, **more),
    )


def facts(folder, work):
    """Open answers, a panel of three, one verdict missing a fact."""
    _open(folder, work, "open", makers.judges())


def leaderboard(folder, work):
    """Make a run of closed and open items with one score."""
    items = [*makers.open_items(4), *makers.law_items()]
    _open(folder, work, "leaderboard", makers.judges(), items)


def criteria(folder, work):
    """Criteria of positive and negative points."""
    met = [{"id": f"c{n}", "met": n % 2 == 1} for n in (1, 2, 3, 4)]
    judge = {**makers.fake("grader", reply=json.dumps({"criteria": met})), "family": "x"}
    _open(folder, work, "rubric", [judge], rubric_items(8))


def g_eval(folder, work):
    """Grades one by one, against a reference."""
    judge = {**makers.fake("grader", reply="question_id,score\nq,7"), "family": "x"}
    _open(folder, work, "g_eval_single", [judge])


def g_eval_batches(folder, work):
    """Grades three at a time, of items with a reasoning path.

    A sample of them singly, a second time.
    """
    judge = {
        **makers.fake("grader", reply="question_id,score\nq,6\nq1,7\nq2,8\nq3,7"),
        "family": "x",
    }
    items = [
        {**one, "path": f"rule {n} -> courts -> binds"}
        for n, one in enumerate(makers.open_items(30))
    ]
    _open(folder, work, "g_eval", [judge], items)


def prometheus(folder, work):
    judge = {**makers.fake("grader", reply="Feedback: fair. [RESULT] 4"), "family": "x"}
    _open(folder, work, "prometheus", [judge])


def open_graph(folder, work):
    """Judge open answers by a graph."""
    judge = {**makers.fake("judge", graph=0.9), "family": "other"}
    _open(folder, work, "open_graph", [judge])


def diagnoses(folder, work):
    """Ranked diagnoses, labelled by a judge, and by names alone."""
    n = 10
    makers.write_bank(work / "bank", makers.ddx_items(n), name="c", domains=("medicine",))
    near = {f"case-{i:03}": makers.listed(f"Malady {i}", f"Kin {i}", "Flu") for i in range(n)}
    far = {f"case-{i:03}": makers.listed("Flu", f"Kin {i}") for i in range(n - 1)}
    makers.write_models(
        work,
        makers.fake("near", replies=near),
        makers.fake("far", replies=far, reply="I cannot say."),
        makers.ddx_judge(n),
    )
    for task, judges in (("ddx", ["judge"]), ("ddx_names", [])):
        more = {"judges": judges} if judges else {}
        _run(folder, work, makers.write_plan(work, task=task, models=["near", "far"], **more))


def records(folder, work):
    """Health records with and without thinking first, by rule and by graphs."""
    items = makers.record_items(6, origin=makers.silver_origin("m", "acme"))
    makers.write_bank(work / "bank", items, domains=["records"])
    judge = {**makers.fake("judge", graph=0.9), "family": "other"}
    makers.write_models(work, makers.record_student(6, family="acme"), judge)
    for task, judges in (("record", []), ("record_graph", ["judge"])):
        plan = makers.write_plan(
            work,
            task=task,
            templates=["health_record", "health_record_direct"],
            **({"judges": judges} if judges else {}),
        )
        _run(folder, work, plan)


def _tiny(weights, name="tiny"):
    return {"id": name, "provider": "transformers", "path": weights, "device": "cpu"}


def likelihoods(folder, work, weights):
    """Options, references and statements by the likelihood of a tiny random model."""
    from tests.runner.likelihood_plans import BOTH, RELAXED, open_items

    makers.write_bank(work / "bank", makers.law_items())
    makers.write_models(work, _tiny(weights))
    plan = makers.write_plan(work, models=["tiny"], scoring="likelihood", templates=BOTH)
    _run(folder, work, plan)
    opened = work / "opened"
    opened.mkdir()
    makers.write_bank(opened / "bank", open_items())
    makers.write_models(opened, _tiny(weights))
    for more in (
        {"task": "perplexity"},
        {"task": "perplexity_cond"},
        {"task": "open", "relaxed_perplexity": RELAXED},
    ):
        _run(folder, opened, makers.write_plan(opened, models=["tiny"], **more))


def texts(folder, work):
    """Answers compared with references by the metrics that need no model."""
    items = [
        {
            "id": f"t{i:02}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Question {i}?",
            "reference": f"Pain in the chest, case {i}.",
            "source": "written for a test",
        }
        for i in range(12)
    ]
    makers.write_bank(work / "bank", items)
    replies = {f"t{i:02}": f"Pain in the chest, case {i}." for i in range(9)} | {"t00": " "}
    makers.write_models(
        work, makers.fake("good", replies=replies), makers.fake("poor", reply="No idea at all.")
    )
    none = ["bertscore=none", "moverscore=none", "bleurt=none"]
    _run(
        folder, work, makers.write_plan(work, task="medtext", models=["good", "poor"], metrics=none)
    )


def tools(folder, work):
    """Solo and with tools, retrieved texts and toplines."""
    services = Services()
    makers.write_bank(work / "bank", makers.many_items(12))
    makers.write_index(work)
    search = [[{"name": "web_search", "arguments": {"query": "{item}"}}]]
    model = makers.fake("one", letters="hash", tools=search)
    makers.write_models(work, {**model, "capabilities": ["chat", "tools"]})
    plan = makers.write_plan(
        work,
        models=["one"],
        settings=["zero_shot", "rag"],
        modes=["solo", "tools"],
        retrieval={"index": "index"},
        tools=services.rules(),
    )
    _run(folder, work, plan)
    services.stop()


def imports(folder, work):
    """Import a table of predictions, logs of three harnesses, labels and raw lists of diagnoses."""
    rows = ["item,model,domain,prediction,key,setting"]
    rows += [f"q{n},{m},law,{'AB'[n % 2]},A,zero_shot" for n in range(12) for m in ("one", "two")]
    (work / "t.csv").write_text("\n".join(rows) + "\n")
    columns = {name: name for name in rows[0].split(",")}
    _runs(folder, medassay.import_predictions(work / "t.csv", columns, runs=work))
    for name in ("inspect", "lm-eval", "helm"):
        _runs(
            folder,
            IMPORTS[name].load(
                ONE[name], models=["m1"] if name == "lm-eval" else [], to=work / name
            ),
        )
    head = "patient_id,model_name,prompt_name,golden_diagnosis,golden_diagnosis_severity,rank,differential_diagnosis,differential_diagnosis_severity_name,differential_diagnosis_semantic_relationship_name"
    given = [
        "1,m,p,Gout,moderate,1,Podagra,moderate,Exact Synonym",
        "1,m,p,Gout,moderate,2,Flu,mild,Not Related",
        "2,m,p,Flu,mild,1,Flu,mild,Exact Synonym",
    ]
    (work / "labels.csv").write_text("\n".join([head, *given]) + "\n")
    _runs(folder, import_ddx(work / "labels.csv", to=work / "labels"))
    raw = [
        "GT,Diagnosis 1",
        "\"['Gout', 'Flu']\",\"1. Podagra 2. Gout\"",
        '"[\'Flu\']","1. Flu\n2. Cold"',
    ]
    (work / "diagnoses_SET_model.csv").write_text("\n".join(raw) + "\n")
    _runs(folder, import_ddx(work / "diagnoses_SET_model.csv", to=work / "raw"))


def healthbench(folder, work):
    """Import answers that come with a judge's verdict on each criterion."""
    lines = [json.dumps({**GIVEN, "prompt_id": name}) for name in "abc"]
    (work / "r.jsonl").write_text("\n".join(lines) + "\n")
    _runs(folder, import_healthbench([work / "r.jsonl"], models=["m"], runs=work / "runs"))


def derived(folder, work):
    """Score a run again with another penalty, judge it by other judges, join two runs of one
    methodology.
    """
    plan = judged_plan(
        work,
        makers.open_items(8),
        [makers.fake("m", reply="Rule 1 binds courts.")],
        makers.judges(),
        task="open",
    )
    run = medassay.run(plan, secrets={})
    again = rescore(run, contradiction_penalty=0.5)
    judge = {**makers.fake("grader", reply="Feedback: fair. [RESULT] 4"), "family": "x"}
    makers.write_models(work, judge)
    options = JudgingOptions(
        judges=("grader",), models_file=work / "models.json", task="prometheus"
    )
    judged = judge_run(run, options, secrets={})
    joint = work / "joint"
    joint.mkdir()
    makers.write_bank(joint / "bank", makers.many_items(12))
    makers.write_models(joint, *(makers.fake(name, letters="hash") for name in ("one", "two")))
    members = [
        medassay.run(makers.write_plan(joint, models=[name]), secrets={}) for name in ("one", "two")
    ]
    _runs(folder, run, again, judged, join_runs(members, joint / "joined"))


def deleted(folder, work):
    """Forget an item behind the seal."""
    plan = judged_plan(
        work,
        makers.open_items(8),
        [makers.fake("m", reply="It binds.")],
        makers.judges(),
        task="open",
    )
    run = medassay.run(plan, secrets={})
    forget("open-003", work, reason="request of a patient", at=TODAY)
    _runs(folder, run)


def signed_site(folder, work):
    """Two publications of a site, signed; the second withholds private items.

    The first is superseded.
    """
    key = work / "key.pem"
    assert call(["keys", "new", str(key)]) == 0
    site = folder / "site"
    (work / "open").mkdir()
    first = make_run(work / "open")
    (work / "withheld").mkdir()
    second = make_run(
        work / "withheld", *[private_item(f"law-s{n}", f"A private case {n}.") for n in range(11)]
    )
    for run, name in ((first, "first"), (second, "second")):
        publish = ["publish", str(run.path), "--to", str(site), "--id", name, "--key", str(key)]
        assert call([*publish, "--yes"]) == 0
    said = ["--reason", "a newer one stands beside it", "--key", str(key)]
    assert call(["status", str(site), "first", "superseded", *said]) == 0


def suite(folder, work):
    """Run a suite of a closed and an open benchmark, graded by a judge."""
    from medassay.suite.plan import SuitePlan
    from medassay.suite.run import SuiteContext, run_suite
    from tests.suite import suite_data as suites

    (work / "data").mkdir()
    data = suites.small_sets(work / "data")
    none = ("bertscore=none", "moverscore=none", "bleurt=none")
    plan = SuitePlan(
        suite=("careqa_open", "medqa"), models=("good", "poor"), judge="judge", metrics=none
    )
    run_suite(plan, suites.MODELS, SuiteContext(data=data, workspace=work / "w", secrets={}))
    (folder / "workspace").mkdir()
    for name in ("runs", "suites", "banks"):
        shutil.move(work / "w" / name, folder / "workspace" / name)


def workshop(folder, work):
    """Items made, decided and released: the chained journal, and the bank."""
    import datetime as dt

    from medassay.synthesis.decide import decide
    from medassay.synthesis.project import open_workshop
    from medassay.synthesis.release import release_items
    from medassay.synthesis.synthesize import synthesize

    shop = folder / "shop"
    synthesize(write_shop(work), shop, secrets={}, workspace=work)
    with open_workshop(shop) as found:
        decide(found, "accept", ["all"], who="Owner")
        lock = work / "banks.lock"
        release_items(found, reason="first", lock=lock, today=dt.date(2026, 11, 24))


def review(folder, work):
    """Close a study: its reviews are under a hash."""
    from medassay.bank.folder import load_bank
    from medassay.exchange.review_workshop import bank_entries
    from medassay.review.store import frozen
    from medassay.review.store.database import open_database
    from tests.exchange.reviewed_banks import GOOD, review_all, study_of

    bank = load_bank(makers.write_bank(work / "law", makers.law_items()), lock=None)
    database = open_database(str(work / "review.sqlite"))
    with database.write() as db:
        study, found = study_of(db, bank_entries(bank), "item")
        for name in ("ada", "ben", "cleo"):
            review_all(db, study, found[name], lambda work: GOOD)
        frozen.close(db, study, who="tests")
        document = frozen.export_document(db, study, who="tests")
    database.close()
    (folder / "study.json").write_bytes(canonical(document) + b"\n")


FIXTURES = {
    one.__name__: one
    for one in (
        *(closed, few_shot, clustered, facts, leaderboard, criteria, g_eval, prometheus),
        *(open_graph, diagnoses, records, likelihoods, texts, tools, imports, deleted),
        *(signed_site, suite, workshop, review, g_eval_batches, healthbench, derived),
    )
}
