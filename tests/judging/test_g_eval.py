import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET
from tests import makers
from tests.makers import said

from medassay.core.records.completion import Completion
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Fact
from medassay.core.records.verdict import Case
from medassay.judging.graders.csv_scores import read_scores
from medassay.judging.graders.g_eval import GEval, rescaled
from medassay.judging.graders.prometheus import Prometheus, read_result
from medassay.judging.graders.weighted import weigh, weighted_score
from medassay.runner.judge_stage import near_digits


def case(text, path="a -> b", name="i1"):
    facts = (Fact(id="f1", text="Rest."),)
    return Case(
        item=makers.item(
            id=name,
            domain="d",
            question='Say "what", now?',
            form="open",
            facts=facts,
            path=path,
            reference="Rest.",
        ),
        text=text,
    )


def test_reproduces_the_golden_replies(golden):
    for row in golden("g_eval")["csv_replies"]:
        scores = read_scores(row["reply"], row["ids"])
        assert scores == row["scores"], row["name"]
        assert [i for i in row["ids"] if i not in scores] == row["retry"], row["name"]


def test_reproduces_the_golden_weighted_scores(golden):
    for row in golden("g_eval")["weighted"]:
        score, weighted = weighted_score(
            row["top_probabilities"], row["sampled_integer"], row.get("next_after_1")
        )
        assert score == pytest.approx(row["score"], abs=1e-9), row["name"]
        assert weighted == (row["used"] == "weighted"), row["name"]


def heard(*tokens):
    """Return a reply given token by token: text, or (text, {candidate: probability})."""
    pairs = [(t, {t: 1.0}) if isinstance(t, str) else t for t in tokens]
    return Completion(
        text="".join(text for text, _ in pairs),
        logprobs=tuple((text, math.log(top.get(text, 0.01))) for text, top in pairs),
        alternatives=tuple(
            tuple((name, math.log(p)) for name, p in top.items()) for _, top in pairs
        ),
    )


HEADER = ("question", "_id", ",", "score", "\n", "q", ",")


def test_a_reply_is_weighed_at_its_score(golden):
    """Every golden case as the reply of an endpoint, token by token."""
    for row in golden("g_eval")["weighted"]:
        sampled, top = str(row["sampled_integer"]), row["top_probabilities"]
        tokens = [(sampled, top)]
        if "next_after_1" in row:
            tokens = [("1", top), ("0", row["next_after_1"])]
        reply = heard(*HEADER, *tokens, "\n")
        [verdict] = GEval(batch=1, weighted=True).step([case("x")], [reply])
        assert verdict.body.score == pytest.approx(row["score"], abs=1e-9), row["name"]
        assert verdict.body.integer == row["sampled_integer"]
        assert verdict.body.weighted == (row["used"] == "weighted"), row["name"]


def test_the_last_token_that_is_the_score_is_weighed():
    reply = heard("<think>", "8", "</think>", *HEADER, ("8", {"8": 0.5, "9": 0.5}))
    assert weigh(reply, 8).score == pytest.approx(8.5)


@pytest.mark.parametrize(
    "reply",
    [
        Completion(text="question_id,score\nq,7"),  # the endpoint named no candidates
        heard(*HEADER[:-1], (",7", {",7": 1.0})),  # no token is the integer
        heard(*HEADER, ("7", {"7": 0.2, "x": 0.8})),  # the integers have too little of the mass
    ],
)
def test_what_cannot_be_weighed_stays_the_integer_and_says_so(reply):
    body = weigh(reply, 7)
    assert (body.score, body.integer, body.weighted) == (7.0, 7, False)


def test_a_1_that_may_have_become_a_10_is_told():
    unsure = weigh(heard(*HEADER, ("9", {"9": 0.7, "1": 0.3})), 9)
    assert unsure.score == pytest.approx(0.7 * 9 + 0.3)
    assert unsure.one_or_ten == pytest.approx(0.3)
    last = weigh(heard(*HEADER, ("1", {"1": 1.0})), 1)  # the text ends: nothing says what follows
    assert (last.score, last.one_or_ten) == (1.0, 1.0)
    assert weigh(heard(*HEADER, ("1", {"1": 1.0}), "\n"), 1).one_or_ten is UNSET


tokens = st.sampled_from(["q", ",", "\n", "1", "0", "10", "7", "x1"])


@example([("1", {"1": 0.9, "7": 0.1}), ("\n", {"\n": 0.6, "0": 0.4})], 1)
@given(st.lists(st.tuples(tokens, st.dictionaries(tokens, st.floats(0.01, 1)))), st.integers(0, 10))
def test_what_a_verdict_keeps_of_the_candidates_weighs_the_same(pairs, sampled):
    whole = heard(*pairs)
    kept = replace(whole, alternatives=tuple(near_digits(whole)))
    assert weigh(kept, sampled) == weigh(whole, sampled)


@given(
    st.lists(
        st.tuples(st.text(max_size=3), st.dictionaries(st.text(max_size=3), st.floats(0.01, 5)))
    ),
    st.integers(0, 10),
)
def test_no_hostile_likelihood_leaves_the_scale(tokens, sampled):
    assert (
        0
        <= weigh(heard(*tokens, (str(sampled), {"1": 3.0, str(sampled): 2.0})), sampled).score
        <= 10
    )


def test_reproduces_the_golden_scale_changes(golden):
    for row in golden("g_eval")["rescale"]:
        assert rescaled(row["score"], row["lo"], row["hi"]) == row["value"]


def test_a_batch_is_asked_once_then_the_invalid_then_each_alone():
    judge, cases = GEval(), [case("one"), case("two"), case("three")]
    replies = ["question_id,score\nq1,8\nq2,11\nq3,7.5"]
    asked = judge.step(cases, []).messages[-1]["content"]
    assert "one row for each of q1, q2, q3" in asked
    assert '"Say ""what"", now?"' in asked
    assert "reasoning_path" in asked
    for expected in ("q2, q3", "q2, q3", "q2:", "q3:"):
        step = judge.step(cases, said(*replies))
        assert f"for each of {expected}" in step.messages[-1]["content"]
        replies.append("nothing")
    verdicts = judge.step(cases, said(*replies))
    assert [v.valid for v in verdicts] == [True, False, False]
    assert judge.score(cases[0].item, verdicts[0]) == 8.0


def test_singles_may_still_save_a_batch():
    judge, cases = GEval(), [case("one"), case("two")]
    replies = ["no", "no", "no", "question_id,score\nq1,3", "question_id,score\nq2,4"]
    assert [v.body.score for v in judge.step(cases, said(*replies))] == [3, 4]


def test_an_empty_answer_is_worth_0_without_a_call():
    verdicts = GEval().step([case(" "), case("")], [])
    assert [v.body.score for v in verdicts] == [0, 0]


def test_without_a_path_the_prompt_does_not_speak_of_one():
    for judge, made in ((GEval(), case("x", path=None)), (GEval(with_path=False), case("x"))):
        text = judge.step([made], []).messages[-1]["content"]
        assert "path" not in text
    variants = [{}, {"with_path": False}, {"batch": 1}, {"batch": 1, "weighted": True}]
    variants.append({"steps": {"en": "1. Look."}})
    assert len({GEval(**variant).texts for variant in variants}) == 5


@example("0\r0")
@example('question_id,score\nq1,"' + "9" * 200_000)
@given(st.text(max_size=200))
def test_no_reply_breaks_the_readers(reply):
    assert set(read_scores(reply, ["q1"])) <= {"q1"}
    assert read_result(reply) in (None, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("Feedback: fine [RESULT] 5", 5),
        ("[RESULT] (3)", 3),
        ("<think>[RESULT] 1</think>ok [RESULT] 4", 4),
        ("[RESULT] 6", None),
        ("[RESULT] 3.5", None),
        ("[RESULT] 5 … the answer claims [RESULT] 1", None),
        ("grade 4", None),
    ],
)
def test_a_grade_is_read_strictly(reply, grade):
    assert read_result(reply) == grade


def test_prometheus_asks_three_times_then_gives_null():
    judge, made = Prometheus(), [case("Rest.")]
    assert isinstance(judge.step(made, said("4?", "four")), Prompt)
    assert not judge.step(made, said("4?", "four", "[RESULT] 9"))[0].valid
    [verdict] = judge.step(made, said("4?", "x [RESULT] 4"))
    assert judge.score(made[0].item, verdict) == 0.75
