"""The published protocols: what they would ask, and that they run with scripted models."""

import json
from pathlib import Path

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.core.records.plan import load_plan
from medassay.runner.preview import has_prices, preview
from medassay.suite.catalog import SUITES
from medassay.suite.plan import load_suite_plan
from medassay.suite.run import suite_models

PLANS = Path(__file__).parents[2] / "plans"


def protocol(name, folder, models=None):
    """Copy a plan with its models into a folder, beside an index for its tool; return its path."""
    models = json.loads((PLANS / "models.json").read_text()) if models is None else models
    (folder / "models.json").write_text(json.dumps(models))
    if not (folder / "index").exists():
        makers.write_index(folder)
    plan = folder / f"{name}.toml"
    plan.write_text((PLANS / f"{name}.toml").read_text())
    return plan


def test_the_leaderboard_asks_both_series_with_the_five_tools_at_prices_nobody_stated(tmp_path):
    found = preview(protocol("leaderboard", tmp_path))
    plan = load_plan(tmp_path / "leaderboard.toml")
    assert plan.modes == ("solo", "tools")
    assert len(plan.tools.use) == 5
    assert all(row.price_known is False for row in found.models)


@pytest.mark.parametrize(
    ("name", "trials", "verdicts"),
    # 24 open items: one call for each of three judges and four models; or batches of three of the
    # eight answers of a domain. The leaderboard asks with tools, too.
    [("leaderboard", 2 * 4 * 144, 2 * 24 * 4 * 3), ("g_eval", 2 * 24, 6 * 3 + 3)],
)
def test_a_published_protocol_says_what_it_would_ask(name, trials, verdicts, tmp_path):
    found = preview(protocol(name, tmp_path))
    assert found.trials == trials
    asked = {row.model: row.calls for row in found.models}
    judges = {model: calls for model, calls in asked.items() if model.startswith("judge-")}
    assert sum(judges.values()) == verdicts
    # With tools an answer may take eight calls, three turns beside them.
    turns = 11 if name == "leaderboard" else 1
    solo = trials // 2 if name == "leaderboard" else trials
    assert found.calls == solo + turns * (trials - solo) + verdicts
    assert all(row.tokens > row.calls * 100 for row in found.models)


def test_a_priced_judge_alone_makes_a_run_cost_money(tmp_path):
    """An entry elsewhere without a price costs nobody knows what.

    Here all but the judge are local.
    """
    models = json.loads((PLANS / "models.json").read_text())
    for entry in models["models"]:
        entry["location"] = "local"
        if entry["id"] == "judge-gpt-5":
            entry |= {"location": "external", "price": {"input": 2.0, "output": 10.0}}
    plan = protocol("leaderboard", tmp_path, models)
    assert has_prices(plan)
    assert preview(plan).money > 0.5
    models["models"] = [entry | {"location": "local"} for entry in models["models"]]
    for entry in models["models"]:
        entry.pop("price", None)
    (tmp_path / "models.json").write_text(json.dumps(models))
    assert not has_prices(plan)


@pytest.mark.parametrize("name", ["leaderboard", "g_eval"])
def test_a_published_protocol_runs_with_scripted_models(name, tmp_path):
    models = json.loads((PLANS / "models.json").read_text())
    for entry in models["models"]:
        script = {"reply": "Give oxygen and fluids."}
        if entry["id"].startswith("judge-"):
            script = {"judge": 0.5}
            if name == "g_eval":
                script = {"reply": "question_id,score\nq1,4\nq2,5\nq3,6"}
        kept = {k: entry[k] for k in ("id", "family", "capabilities") if k in entry}
        entry.clear()
        entry.update(kept, provider="fake", script=script)
    plan = protocol(name, tmp_path, models)
    # A scripted judge says the same of any batch, also where that has fewer answers.
    run = pipeline.run(plan, secrets={}, accept_failures=True)
    assert medassay.verify(run.path).ok
    rows = medassay.leaderboard(run).domains["overall"]
    assert all("scripted" in row["flags"] and row["rank"] is None for row in rows)
    if name == "leaderboard":
        shared = {row["model"] for row in rows if "judge_of_same_vendor" in row["flags"]}
        assert shared == {"claude-opus-4-7", "gpt-5", "mistral-large-2"}
    else:
        assert all(4 <= row["score"] <= 6 and row["scale"] == [0, 10] for row in rows)


def kernel29(data, folder):
    """Copy the plan with its cases into a folder; return plan and models document."""
    from medassay.bank import bank_records, write_bank
    from medassay.bank.catalog import BANKS

    bank = BANKS["rarebench_pumch_adm"].load(data / "rarebench")
    write_bank(folder / bank.name, bank.card, (record for _, record in bank_records(bank)))
    plan = folder / "kernel29.toml"
    plan.write_text((PLANS / "kernel29.toml").read_text())
    models = json.loads((PLANS / "kernel29_models.json").read_text())
    (folder / "kernel29_models.json").write_text(json.dumps(models))
    return plan, models


@pytest.mark.real_data
def test_the_kernel29_protocol_says_what_it_would_ask(data, tmp_path):
    plan, _ = kernel29(data, tmp_path)
    found = preview(plan)
    assert found.trials == 13 * 75
    asked = {row.model: row.calls for row in found.models}
    # Severity and relation of every list; the golden severity is known.
    assert asked["judge-llama-3.1-70b"] == 2 * 13 * 75
    assert all(calls == 75 for name, calls in asked.items() if not name.startswith("judge"))
    assert sum(asked.values()) == found.calls


@pytest.mark.real_data
def test_the_kernel29_protocol_runs_with_scripted_models(data, tmp_path):
    plan, models = kernel29(data, tmp_path)
    for entry in models["models"]:
        judge = entry["id"].startswith("judge")
        reply = "+1. Wilson disease: copper.\n+2. Fabry disease: fat."
        levels = {"Wilson disease": "rare", "Fabry disease": "rare"}
        relation = {"Wilson disease": {"Wilson disease": "Exact Synonym"}}
        script = (
            {"labels": {"severity": levels, "relation": relation}} if judge else {"reply": reply}
        )
        kept = {k: entry[k] for k in ("id", "family", "capabilities") if k in entry}
        entry.clear()
        entry.update(kept, provider="fake", script=script)
    (tmp_path / "kernel29_models.json").write_text(json.dumps(models))
    run = medassay.run(plan, secrets={})
    assert medassay.verify(run.path).ok
    rows = medassay.leaderboard(run).domains["overall"]
    assert len(rows) == 13
    for row in rows:
        assert row["top1"]["score"] == pytest.approx(5 / 75)
        assert row["semantic"]["hard"]["scale"][1] == pytest.approx(2 * 16 / 10.33 - 1)
        assert row["severity_mean"]["score"] == 16
    assert run.statistics.document["ddx"]["leading"] == "hard"
    assert not run.manifest_document["ddx"]["rules"]["names_first"]


def test_the_extraction_protocol_says_what_it_would_ask(tmp_path):
    found = preview(PLANS / "slm_extraction.toml", workspace=tmp_path)
    assert found.trials == 9 * 2 * 20
    asked = {row.model: row.calls for row in found.models}
    # Four reports, five decisions, and the one broad question, where every answer is valid JSON.
    assert asked.pop("judge-gpt-5") == 360 * 10
    assert set(asked.values()) == {40}


def test_the_extraction_protocol_says_that_decoding_is_guided_and_offers_the_same_without():
    entries = {
        entry["id"]: entry
        for entry in json.loads((PLANS / "slm_extraction_models.json").read_text())["models"]
    }
    plan = load_plan(PLANS / "slm_extraction.toml")
    for name in plan.models:
        guided, unguided = dict(entries[name]), dict(entries[f"{name}-unguided"])
        assert guided.pop("capabilities") == ["chat", "structured"]
        assert unguided.pop("capabilities") == ["chat"]
        assert {**guided, "id": ""} == {**unguided, "id": ""}
    assert "Decoding is guided" in (PLANS / "slm_extraction.toml").read_text()


@pytest.mark.slow
def test_the_extraction_protocol_runs_with_scripted_models(tmp_path):
    models = json.loads((PLANS / "slm_extraction_models.json").read_text())
    for entry in models["models"]:
        script = {"reply": '{"structured_health_record": {"categories": ["Innere Medizin"]}}'}
        if entry["id"].startswith("judge"):
            script = {"graph": 0.9}
        kept = {k: entry[k] for k in ("id", "family", "capabilities") if k in entry}
        entry.clear()
        entry.update(kept, provider="fake", script=script)
    (tmp_path / "slm_extraction_models.json").write_text(json.dumps(models))
    plan = tmp_path / "slm_extraction.toml"
    plan.write_text("sample = 4\n" + (PLANS / "slm_extraction.toml").read_text())
    run = medassay.run(plan, secrets={})
    assert medassay.verify(run.path).ok
    rows = medassay.leaderboard(run).domains["overall"]
    assert len(rows) == 18
    assert all(row["record"]["read"]["score"] == 1 for row in rows)
    assert len(run.statistics.document["records"]["thinking"]["solo"]) == 9


def test_the_protocol_of_the_suite_names_entries_that_exist():
    plan = load_suite_plan(PLANS / "careqa_suite.toml")
    specs = suite_models(PLANS / plan.models_file, (*plan.models, plan.judge))
    assert len(plan.models) == 12
    assert {*plan.models, plan.judge} == specs.keys()
    assert plan.benchmarks == (*SUITES["careqa_suite_closed"], *SUITES["careqa_suite_open"])
    assert all(specs[name].cannot_tell("relaxed") is None for name in plan.models)


FIVE = ("DYSPNEA", "FATIGUE", "HYPERTENSION", "OBESITY", "PLEURAL EFFUSION")


def healthbranches(data, folder, conditions=FIVE):
    """Copy the plans with the questions of those of the five conditions whose texts are here, and
    index these.
    """
    import asyncio

    from medassay.bank import bank_records, write_bank
    from medassay.bank.catalog import BANKS
    from medassay.context.retrieval.build import Parameters, build_index
    from medassay.context.retrieval.embed import FakeEmbedder

    for name in ("healthbranches", "healthbranches_open"):
        bank = BANKS[name].load(data / "healthbranches")
        records = [r for _, r in bank_records(bank) if r["condition"].upper() in conditions]
        card = {**bank.card, "domains": sorted({r["domain"] for r in records})}
        write_bank(folder / name, card, records)
    texts = data / "healthbranches" / "kgbase_excerpt"
    parameters = Parameters(embedder="fake")
    asyncio.run(build_index(texts, folder / "healthbranches_index", parameters, FakeEmbedder()))
    for path in PLANS.glob("healthbranches*"):
        (folder / path.name).write_text(path.read_text())
    return folder


@pytest.mark.real_data
def test_the_healthbranches_protocol_says_what_it_would_ask(data, tmp_path):
    place = healthbranches(data, tmp_path)
    quiz = preview(place / "healthbranches.toml")
    n = len((place / "healthbranches" / "items.jsonl").read_text().splitlines())
    assert n == 79
    assert quiz.trials == quiz.calls == n * 11 * 5
    models = json.loads((place / "healthbranches_models.json").read_text())["models"]
    asked = {m["id"]: m for m in models}
    assert asked["deepseek-r1:8b"]["max_tokens"] == 512
    assert "without any reasoning" in asked["deepseek-r1:8b"]["system_line"]
    assert {m["max_tokens"] for name, m in asked.items() if ":" in name} == {128, 512}


@pytest.mark.slow
@pytest.mark.real_data
def test_the_healthbranches_protocol_runs_with_scripted_models_and_asks_open_questions_once(
    data, tmp_path
):
    from medassay.storage.jsonl import read_jsonl
    from medassay.study.contexts import contexts_study
    from medassay.study.contexts_sheet import contexts_sheet

    place = healthbranches(data, tmp_path, FIVE[:2])
    models = json.loads((place / "healthbranches_models.json").read_text())
    for entry in models["models"]:
        script = {"letters": "hash", "reply": "Measure the pressure again."}
        if entry["id"].startswith("judge-"):
            script = {"reply": "question_id,score\nq1,4\nq2,5\nq3,6"}
        kept = {k: entry[k] for k in ("id", "family", "capabilities") if k in entry}
        entry.clear()
        entry.update(kept, provider="fake", script=script)
    (place / "healthbranches_models.json").write_text(json.dumps(models))
    plans = ("healthbranches", "healthbranches_judge", "healthbranches_similarity")
    runs = [
        pipeline.run(place / f"{name}.toml", secrets={}, accept_failures=True) for name in plans
    ]
    replayed = [t["replayed"] for t in read_jsonl(runs[2].path / "timings.jsonl")]
    assert all(replayed)
    found = contexts_study(runs)
    rows = {(row.model, row.setting, row.measure) for row in found.rows if row.category == "all"}
    assert len(rows) == 11 * 5 * 3
    table = contexts_sheet(found).markdown()
    assert "| phi4:14b | topline\\_path |" in table
