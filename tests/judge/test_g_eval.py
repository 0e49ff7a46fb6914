import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from medassay.core.item import Fact, Item
from medassay.core.trial import Prompt
from medassay.core.verdict import Case
from medassay.judge.g_eval import GEval, read_scores, rescaled, weighted_score
from medassay.judge.prometheus import Prometheus, read_result


def case(text, path="a -> b", name="i1"):
    facts = (Fact(id="f1", text="Rest."),)
    return Case(
        item=Item(
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
        step = judge.step(cases, replies)
        assert f"for each of {expected}" in step.messages[-1]["content"]
        replies.append("nothing")
    verdicts = judge.step(cases, replies)
    assert [v.valid for v in verdicts] == [True, False, False]
    assert judge.score(cases[0].item, verdicts[0]) == 8.0


def test_singles_may_still_save_a_batch():
    judge, cases = GEval(), [case("one"), case("two")]
    replies = ["no", "no", "no", "question_id,score\nq1,3", "question_id,score\nq2,4"]
    assert [v.body["score"] for v in judge.step(cases, replies)] == [3, 4]


def test_an_empty_answer_is_worth_0_without_a_call():
    verdicts = GEval().step([case(" "), case("")], [])
    assert [v.body["score"] for v in verdicts] == [0, 0]


def test_without_a_path_the_prompt_does_not_speak_of_one():
    for judge, made in ((GEval(), case("x", path=None)), (GEval(with_path=False), case("x"))):
        text = judge.step([made], []).messages[-1]["content"]
        assert "path" not in text
    assert len({GEval().id, GEval(with_path=False).id, GEval(batch=1).id}) == 3


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
    assert isinstance(judge.step(made, ["4?", "four"]), Prompt)
    assert not judge.step(made, ["4?", "four", "[RESULT] 9"])[0].valid
    [verdict] = judge.step(made, ["4?", "x [RESULT] 4"])
    assert judge.score(made[0].item, verdict) == 0.75
