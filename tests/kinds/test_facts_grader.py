import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.makers import said

from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Fact
from medassay.core.records.verdict import Case, FactVerdict
from medassay.judging.grader_text import hashed_id
from medassay.judging.panel import agreement, hallucinated, panel_score
from medassay.kinds.facts.grader import FactGrader, fact_score

ITEM = makers.item(
    id="q1",
    domain="d",
    question="What now?",
    form="open",
    facts=(
        Fact(id="f1", text="Give oxygen."),
        Fact(id="f2", text="Stop aspirin.", weight=2.0),
    ),
)
CASE = Case(item=ITEM, text="Give oxygen at once. Keep aspirin. See Miller 2031.")
GOOD = {
    "facts": [
        {"id": "f1", "verdict": "entail", "evidence": "Give oxygen at once"},
        {"id": "f2", "verdict": "contradict", "evidence": "Keep aspirin."},
    ],
    "extra_false_claims": [
        {"quote": "See Miller 2031", "why": "no such work", "kind": "invented_source"}
    ],
}


def judged(*replies, case=CASE, judge=None):
    """Return the verdict after these replies; fail if more are asked for."""
    [verdict] = (judge or FactGrader()).step([case], said(*replies))
    return verdict


def changed(**parts):
    return json.dumps({**GOOD, **parts})


def test_reproduces_the_golden_scores(golden):
    for case in golden("rubric")["cells"]:
        found = fact_score(case["verdicts"], case["weights"], case["contradiction_penalty"])
        assert found == pytest.approx(case["score"], abs=1e-9), case["name"]


def test_reproduces_the_golden_panels(golden):
    for panel in golden("rubric")["panels"]:
        verdicts = panel["verdicts_by_judge"]
        if any(v is None for judge in verdicts for v in judge):
            continue  # agreement is of whole panels
        said = agreement(verdicts)
        assert said.pairwise == pytest.approx(panel["pairwise_agreement"], abs=1e-9)
        assert said.unanimous == pytest.approx(panel["unanimous_rate"], abs=1e-9)
        scores = [fact_score(judge) for judge in verdicts]
        assert scores == pytest.approx(panel["judge_scores"], abs=1e-9)
        assert panel_score(scores) == pytest.approx(panel["panel_score"], abs=1e-9)


def test_reproduces_the_golden_hallucination_rate(golden):
    case = golden("rubric")["hallucination"]
    counts = [answer["extra_claims_by_judge"] for answer in case["answers"]]
    assert sum(map(hallucinated, counts)) / len(counts) == case["hallucination_rate"]


@given(
    st.lists(st.sampled_from(["entail", "missing", "contradict"]), min_size=1, max_size=9),
    st.floats(0, 1),
)
def test_a_score_stays_in_its_scale_and_never_falls_by_a_better_verdict(verdicts, lam):
    score = fact_score(verdicts, lam=lam)
    assert 0 <= score <= 1
    assert fact_score(["entail", *verdicts[1:]], lam=lam) >= score
    assert fact_score(["entail"] * len(verdicts), lam=lam) == 1


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_panel_with_a_missing_judge_has_no_score(missing):
    scores = [0.5, 0.7, 0.9]
    scores[missing] = None
    assert panel_score(scores) is None
    assert panel_score(scores, min_judges=2) is not None


WRAPPINGS = [
    "{}",
    "```json\n{}\n```",
    "<think>f1 is {{missing}}</think>Here it is:\n{}\nThat is all.",
    '{{"result": {}}}',
    "Verdict {{draft}}: {}",
]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_good_reply_is_read_however_it_is_wrapped(wrapping):
    verdict = judged(wrapping.format(json.dumps(GOOD)))
    assert verdict.valid
    assert [f.verdict for f in verdict.body.facts] == ["entail", "contradict"]
    assert verdict.body.claims[0].kind == "invented_source"
    assert FactGrader().score(ITEM, verdict) == 0  # 1/3 - 2/3, floored
    assert FactGrader(lam=0.25).score(ITEM, verdict) == pytest.approx(0.5 / 3)
    assert not verdict.repaired


def test_a_broken_object_is_repaired_and_says_so():
    verdict = judged(json.dumps(GOOD)[:-2].replace('"id": "f1"', "id: 'f1'"))
    assert verdict.valid
    assert verdict.repaired


def test_quotes_that_the_answer_does_not_contain_are_dropped_and_counted():
    facts = [{**GOOD["facts"][0], "evidence": "Give heparin"}, GOOD["facts"][1]]
    claims = [{"quote": "Smith 1999", "why": "invented"}, *GOOD["extra_false_claims"]]
    verdict = judged(changed(facts=facts, extra_false_claims=claims))
    assert verdict.unsupported_quotes == 2
    assert verdict.body.facts[0] == FactVerdict(id="f1", verdict="entail", evidence="")
    assert [c.quote for c in verdict.body.claims] == ["See Miller 2031"]


def test_quotes_are_compared_without_regard_to_blanks_and_forms():
    case = Case(item=ITEM, text="Give  5\u00a0ﬁne\nmg of oxygen")
    facts = [
        {"id": "f1", "verdict": "entail", "evidence": "“5 fine mg…”"},
        {"id": "f2", "verdict": "missing", "evidence": ""},
    ]
    assert judged(changed(facts=facts, extra_false_claims=[]), case=case).unsupported_quotes == 0


BAD_FACTS = [
    [GOOD["facts"][0]],  # one is missing
    [GOOD["facts"][0], {"id": "f2", "verdict": "true", "evidence": ""}],  # no such label
    [*GOOD["facts"], {"id": "f2", "verdict": "entail", "evidence": ""}],  # two that differ
    [GOOD["facts"][0], "f2: missing"],
]


@pytest.mark.parametrize("facts", BAD_FACTS)
def test_only_the_invalid_part_is_asked_again(facts):
    asked = FactGrader().step([CASE], said(changed(facts=facts)))
    assert isinstance(asked, Prompt)
    text = asked.messages[-1]["content"]
    assert "[f2]" in text
    assert "[f1]" not in text
    assert "extra_false_claims" not in text
    again = json.dumps({"facts": [{"id": "f2", "verdict": "missing", "evidence": ""}]})
    verdict = judged(changed(facts=facts), again)
    assert [f.verdict for f in verdict.body.facts] == ["entail", "missing"]
    assert len(verdict.body.claims) == 1


def test_claims_that_cannot_be_read_are_asked_again_alone():
    asked = FactGrader().step([CASE], said(changed(extra_false_claims="none")))
    assert "[f1]" not in asked.messages[-1]["content"]
    assert judged(
        changed(extra_false_claims="none"), '{"facts": [], "extra_false_claims": []}'
    ).valid


def test_after_two_retries_a_verdict_is_null_never_a_guess():
    assert isinstance(FactGrader().step([CASE], said("no", "no")), Prompt)
    verdict = judged("no", "still no", "never")
    assert not verdict.valid
    assert "fact f1, fact f2, claims" in verdict.reason
    assert FactGrader().score(ITEM, verdict) is None


@given(st.text(max_size=300))
def test_no_reply_breaks_the_reader(reply):
    step = FactGrader().step([CASE], said(reply))
    assert isinstance(step, Prompt) or step[0].valid


@pytest.mark.parametrize("hostile", ["{" * 100_000, '{"a":' * 50_000, "<think>" * 100_000])
def test_hostile_replies_take_no_time(hostile):
    assert isinstance(FactGrader().step([CASE], said(hostile)), Prompt)


@pytest.mark.parametrize("language", ["de", "es"])
def test_the_judge_speaks_the_language_of_the_item(language):
    item = replace(ITEM, language=language)
    text = FactGrader().step([Case(item=item, text="x")], []).messages[-1]["content"]
    assert {"de": "Zielaussagen", "es": "Hechos de referencia"}[language] in text


def test_an_id_changes_with_the_rule():
    assert hashed_id(FactGrader()) != hashed_id(FactGrader(lam=0.5))
    assert hashed_id(FactGrader()) == hashed_id(FactGrader())
