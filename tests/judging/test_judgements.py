import msgspec
import pytest
from tests import makers
from tests.runner.judged_plans import workspace

import medassay
from medassay.bank.run_items import RunItems
from medassay.core.records.verdict import TrialVerdict
from medassay.judging.judgements import Judgements, by_trial
from medassay.storage.jsonl import read_jsonl


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    tested = [
        makers.fake("ours", reply="Rule binds courts."),
        makers.fake("theirs", reply="No."),
    ]
    folder = tmp_path_factory.mktemp("run")
    plan = workspace(folder, makers.open_items(30), tested, makers.judges())
    return medassay.run(plan, secrets={})


def judgements(run, change):
    families = {"ours": "alpha", "theirs": "omega"}
    families |= {f"judge-{f}": f for f in ("alpha", "beta", "gamma")}
    items = RunItems(run.path, run.manifest_document["domains"])
    summary = Judgements(items, families)
    for number, (_, verdicts) in enumerate(by_trial(read_jsonl(run.path / "verdicts.jsonl"))):
        changed = [change(verdict, number) for verdict in verdicts]
        summary.add(msgspec.convert(changed, list[TrialVerdict]))
    return summary


def test_a_judge_that_favours_its_own_family_is_seen(run):
    def favour(verdict, _):
        kind = verdict["judge"] == "judge-alpha" and verdict["model"] == "ours"
        return {**verdict, "score": 0.8 if kind else 0.5}

    panel = judgements(run, favour).panel(["law"], "solo", 1)
    [preference] = panel["self_preference"]  # only alpha has a model of its family here
    assert preference["judge"] == "judge-alpha"
    assert preference["difference"] == pytest.approx(0.3)
    assert (preference["n_own"], preference["n_other"]) == (30, 30)
    assert preference["lo"] == pytest.approx(0.3)


def test_a_fair_panel_has_no_self_preference(run):
    def fair(verdict, number):
        return {**verdict, "score": (number % 7) / 7}

    [preference] = judgements(run, fair).panel(["law"], "solo", 1)["self_preference"]
    assert preference["difference"] == pytest.approx(0)


def test_claims_and_contradictions_become_rates_by_kind(run):
    claim = {"quote": "x", "why": "", "kind": "fabricated_study"}

    def claims(verdict, number):
        # Two of three judges list a claim in every third answer, one in every other.
        listed = verdict["judge"] == "judge-alpha" or number % 3 == 0
        listed = listed and verdict["judge"] != "judge-gamma"
        facts = [{**f, "verdict": "contradict"} for f in verdict["body"]["facts"]]
        body = {"facts": facts, "claims": [claim] * listed}
        return {**verdict, "body": body}

    columns = judgements(run, claims).columns(["law"], "ours", "zero_shot", "solo", 1)
    assert columns.hallucination_rate["score"] == pytest.approx(1 / 3)
    assert columns.hallucination_rate["lo"] < 1 / 3 < columns.hallucination_rate["hi"]
    assert columns.claims_per_answer == pytest.approx((1 + 1 / 3) / 3)
    assert columns.claim_kinds["fabricated_study"] == pytest.approx((1 + 1 / 3) / 3)
    assert columns.contradict_rate == 1
    assert columns.alpha["nominal"] is None  # one category says nothing of agreement
    assert (columns.agreement, columns.unanimous) == (1, 1)


def test_low_agreement_is_labelled(run):
    order = {"judge-alpha": "entail", "judge-beta": "missing", "judge-gamma": "contradict"}

    def disagree(verdict, _):
        facts = [{**f, "verdict": order[verdict["judge"]]} for f in verdict["body"]["facts"]]
        return {**verdict, "body": {**verdict["body"], "facts": facts}}

    columns = judgements(run, disagree).columns(["law"], "ours", "zero_shot", "solo", 1)
    assert (columns.agreement, columns.agreement_low) == (0, True)
    assert columns.alpha["nominal"] < 0
