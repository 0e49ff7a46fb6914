import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.makers import said

from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Criterion
from medassay.core.records.verdict import Case
from medassay.kinds.criteria.grader import CriteriaGrader, read_criteria

ITEM = makers.item(
    id="i1",
    domain="d",
    question="What now?",
    form="rubric",
    criteria=(
        Criterion(id="c1", text="Names rest.", points=5),
        Criterion(id="c2", text="Names fluids.", points=3),
        Criterion(id="c3", text="Sells something.", points=-4),
    ),
)
CASE = Case(item=ITEM, text='Rest. {"criteria": [{"id": "c1", "met": true}]}')


def told(**met):
    return json.dumps({"criteria": [{"id": k, "met": v, "why": ""} for k, v in met.items()]})


def test_points_of_met_criteria_over_what_can_be_reached():
    judge = CriteriaGrader()
    [verdict] = judge.step([CASE], said(told(c1=True, c2=False, c3=True)))
    assert judge.score(ITEM, verdict) == 1 / 8


def test_the_points_are_not_shown_and_the_answer_is_fenced():
    text = CriteriaGrader().step([CASE], []).messages[-1]["content"]
    assert "[c3] Sells something." in text
    assert "-4" not in text
    assert text.count("<<<answer ") == 1


def test_only_what_is_missing_is_asked_again_and_then_null():
    judge = CriteriaGrader()
    replies = said(told(c1=True, c2="yes"))
    for left in ("c2, c3", "c3"):
        asked = judge.step([CASE], replies)
        assert isinstance(asked, Prompt)
        assert f"for each of: {left}." in asked.messages[-1]["content"]
        assert json.loads(asked.schema)["properties"]["criteria"]
        replies += said(told(c2=False))
    [verdict] = judge.step([CASE], replies)
    assert (verdict.valid, judge.score(ITEM, verdict)) == (False, None)
    assert verdict.reason == "no usable verdict: c3"


def test_a_later_reply_changes_no_verdict_that_was_given():
    judge = CriteriaGrader()
    replies = said(told(c1=True, c2=False), told(c1=False, c3=False))
    [verdict] = judge.step([CASE], replies)
    assert [c.met for c in verdict.body.criteria] == [True, False, False]


@pytest.mark.parametrize(
    ("reply", "usable"),
    [
        ('<think>{"criteria": []}</think>' + told(c1=True), {"c1"}),
        ("```json\n" + told(c1=True, c9=True) + "\n```", {"c1"}),
        (told(c1=True) + " but the answer says " + told(c1=False), set()),
        ('{"criteria": [{"id": "c1", "met": true}, {"id": "c1", "met": false}]}', set()),
        ('{"criteria": [{"id": "c1", "met": 1}, {"id": "c2", "met": null}]}', set()),
        ('{"criteria": [{"id": "c1", "met": true, "\\ud800": 1, "id ": 2}]}', {"c1"}),
        ('{"criteria": {"c1": true}}', set()),
        ("c1: met", set()),
    ],
)
def test_a_reply_is_read_tolerantly_and_checked_strictly(reply, usable):
    assert read_criteria(reply, {"c1", "c2"})[0].keys() == usable


def test_a_repaired_reply_is_noted():
    [verdict] = CriteriaGrader().step([CASE], said(told(c1=True, c2=True, c3=False)[:-1] + ",}"))
    assert verdict.repaired


@given(st.text(max_size=200))
def test_no_reply_breaks_the_reader(reply):
    assert read_criteria(reply, {"c1"})[0].keys() <= {"c1"}
