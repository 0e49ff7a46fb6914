"""The published protocols: what they would ask, and that they run with scripted models."""

import json
from pathlib import Path

import pytest

import medassay
from medassay import pipeline

PLANS = Path(__file__).parents[2] / "plans"


@pytest.mark.parametrize(("name", "trials"), [("leaderboard", 4 * 144), ("g_eval", 2 * 24)])
def test_a_published_protocol_says_what_it_would_ask(name, trials, tmp_path):
    found = pipeline.preview(PLANS / f"{name}.toml", workspace=tmp_path)
    assert found["trials"] == found["calls"] == trials


@pytest.mark.parametrize("name", ["leaderboard", "g_eval"])
def test_a_published_protocol_runs_with_scripted_models(name, tmp_path):
    models = json.loads((PLANS / "models.json").read_text())
    for entry in models["models"]:
        script = {"reply": "Give oxygen and fluids."}
        if entry["id"].startswith("judge-"):
            script = {"judge": 0.5}
            if name == "g_eval":
                script = {"reply": "question_id,score\nq1,4\nq2,5\nq3,6"}
        kept = {k: entry[k] for k in ("id", "family")}
        entry.clear()
        entry.update(kept, provider="fake", script=script)
    (tmp_path / "models.json").write_text(json.dumps(models))
    plan = tmp_path / "plan.toml"
    plan.write_text((PLANS / f"{name}.toml").read_text())
    run = medassay.run(plan, secrets={})
    assert medassay.verify(run.path).ok
    rows = medassay.leaderboard(run).domains["overall"]
    assert all("scripted" in row["flags"] and row["rank"] is None for row in rows)
    if name == "leaderboard":
        shared = {row["model"] for row in rows if "judge_of_same_vendor" in row["flags"]}
        assert shared == {"claude-opus-4-7", "gpt-5", "mistral-large-2"}
    else:
        assert all(4 <= row["score"] <= 6 and row["scale"] == [0, 10] for row in rows)
