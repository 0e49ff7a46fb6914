"""A record counts when its object closed: fragments, refusals and Python are none, and a cut reply
says so.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

import medassay
from medassay.core.records.health_record import RECORD
from medassay.kinds.record.reply import CUT_OFF, read_record_reply, record_value

BODY = {RECORD: {"categories": ["x"], "diagnosis": ["COPD", "[1]"], "follow_up": []}}
WHOLE = json.dumps(BODY)
ITEM = makers.item(id="r", domain="d", question="Report", form="record")


def outcome(text, finish="stop", extraction="standard"):
    answer = medassay.read(ITEM, text, finish=finish, extraction=extraction)
    return answer.outcome, answer.reason


@pytest.mark.parametrize("cut", range(1, len(WHOLE), 7))
def test_a_reply_that_ended_before_its_object_closed_is_truncated(cut):
    assert outcome(WHOLE[:cut], "length") == ("truncated", CUT_OFF)
    assert outcome("```json\n" + WHOLE[:cut], "length")[0] == "truncated"


def test_a_fence_that_never_closed_is_cut_off_too():
    assert outcome("```json\n" + WHOLE, "length") == ("truncated", CUT_OFF)
    assert outcome("```json\n" + WHOLE + "\n```", "length") == ("answered", "json")


def test_an_object_that_closed_before_a_cut_remark_is_an_answer():
    assert outcome(WHOLE + "\n\nPlease note that the rep", "length") == (
        "answered",
        "json in prose",
    )


def test_a_reply_that_visibly_ends_in_a_text_is_cut_off_whatever_the_endpoint_says():
    assert outcome(WHOLE[:60], "stop") == ("truncated", CUT_OFF)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Das kann ich nicht; siehe [1].", ("refused", "said")),
        ("See [1] and [2].", ("unparsed", "no complete JSON object or array")),
        (str(BODY), ("unparsed", "quotes as of a Python dict, no JSON")),
        (
            WHOLE.replace('"COPD"', "NaN"),
            ("unparsed", "a word that is no JSON (None, True, NaN)"),
        ),
        (WHOLE.replace('["COPD"', '["COPD" // known\n'), ("unparsed", "remarks, no JSON")),
        (WHOLE[:-2] + ",}}", ("unparsed", "a trailing comma, no JSON")),
        ('{"diagnosis": ["COPD"]}', ("unparsed", f"JSON without {RECORD}")),
        ('{"structured_health_record": "none"}', ("unparsed", f"JSON without {RECORD}")),
        ("<think>{", ("truncated", "thought not ended")),
        (WHOLE, ("answered", "json")),
        (f"<think>so</think>\n```json\n{WHOLE}\n```\nDone.", ("answered", "json")),
        (f"Here: {WHOLE}", ("answered", "json in prose")),
    ],
)
def test_each_damaged_form_has_a_documented_outcome(text, said):
    assert outcome(text) == said


def test_the_published_reading_takes_the_longest_fragment():
    cut = WHOLE[:-3]
    assert outcome(cut, "length", "paper")[0] == "answered"
    assert json.loads(medassay.read(ITEM, cut, finish="length", extraction="paper").value) == [
        "COPD",
        "[1]",
    ]


def test_of_several_records_the_longest_counts():
    small = json.dumps({RECORD: {"categories": []}})
    assert read_record_reply(f"{small}\n{WHOLE}").value == BODY
    assert not read_record_reply(f"{small}\n{WHOLE}").alone


def test_the_value_of_what_is_no_answer_is_nothing():
    assert record_value(WHOLE, "truncated") is None
    assert record_value(None, "answered") is None
    assert record_value(f"So: {WHOLE}", "answered") == BODY


@given(st.text(alphabet=st.sampled_from(list('{}[]",:`\nab ')), max_size=200), st.booleans())
def test_any_text_is_read_without_an_error(text, cut):
    read = read_record_reply(text, cut=cut)
    assert read.reason
    assert (read.value is None) or not read.truncated
