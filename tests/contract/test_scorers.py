"""Whatever enters SCORERS inherits this."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.core.records.answer import Answer
from medassay.kinds.catalog import SCORERS, TASKS

BASE = {"id": "q1", "domain": "d", "question": "?"}
HEALTH = {
    "categories": ["Cardiology"],
    "date_and_source": {"date": None, "source": None},
    "diagnosis": [],
    "relevant_metrics": [],
    "medications": {"current": [], "advised": [], "discontinued": []},
    "follow_up": [],
}
ITEMS = {
    "document": makers.item(**BASE, form="document", document={"a": "b"}),
    "record": makers.item(**BASE, form="record", record=HEALTH),
    "unreferenced": makers.item(**BASE, form="report"),
    "choice": makers.item(**BASE, form="choice", options=("a", "b"), expected="A"),
    "key": makers.item(**BASE, form="key", expected="A"),
    "given": makers.item(**BASE, form="given"),
    "range": makers.item(**BASE, form="range", lo=1, hi=2),
    "regex": makers.item(**BASE, form="regex", regex="(?i)asp"),
    "chrf": makers.item(**BASE, form="text", reference="Aspirin."),
    "bits_per_byte": makers.item(**BASE, form="open", reference="Aspirin."),
    "relaxed_perplexity": makers.item(**BASE, form="open", reference="Aspirin."),
}
REPLY = json.dumps({"structured_health_record": HEALTH})
RIGHT = {
    "document": '{"a": "b"}',
    "record": REPLY,
    "choice": "A",
    "key": "a ",
    "given": "1.0",
    "range": "2",
    "regex": "Aspirin",
    "chrf": "Aspirin.",
}
WRONG = {
    "document": '{"a": "x"}',
    "record": "[1]",
    "choice": "B",
    "key": "b",
    "given": "0.0",
    "range": "2.0001",
    "regex": "none",
    "chrf": "xyz",
}
each = pytest.mark.parametrize("name", SCORERS)
each_that_knows = pytest.mark.parametrize(
    "name", [name for name, scorer in SCORERS.items() if scorer.missing_is_worst]
)


def score(name, outcome, value):
    answer = Answer(item_id="q1", outcome=outcome, value=value, reason="")
    [found] = SCORERS[name].score([ITEMS[name]], [answer])
    return found


@each_that_knows
def test_right_scores_the_best_and_wrong_the_worst(name):
    assert score(name, "answered", RIGHT[name]).value == SCORERS[name].scale.hi
    assert score(name, "answered", WRONG[name]).value == SCORERS[name].scale.lo


@each_that_knows
@pytest.mark.parametrize("outcome", ["unparsed", "refused", "truncated"])
def test_missing_answer_scores_the_worst_and_says_why(name, outcome):
    found = score(name, outcome, None)
    assert (found.value, found.because) == (SCORERS[name].scale.worst, outcome)


@each
def test_a_failed_trial_is_null_not_wrong(name):
    assert (score(name, "failed", None).value, score(name, "failed", None).because) == (
        None,
        "failed",
    )


@pytest.mark.parametrize("outcome", ["answered", "unparsed", "refused", "failed"])
def test_without_a_reference_nobody_knows(outcome):
    assert score("unreferenced", outcome, REPLY if outcome == "answered" else None).value is None


@each
def test_its_id_is_its_name_with_its_revision(name):
    assert SCORERS[name].id == f"{name}/{SCORERS[name].revision}"


@each
def test_a_task_uses_it(name):
    assert any(name == scorer for task in TASKS.values() for _, scorer in task.readers.values())


@given(st.text(min_size=1))
def test_text_scorers_stay_on_their_scale_for_any_reply(text):
    for name in ("choice", "key", "regex"):
        assert score(name, "answered", text).value in (0.0, 1.0)


def test_a_pattern_that_takes_too_long_is_null():
    slow = makers.item(**BASE, form="regex", regex="(a|aa)+$")
    answer = Answer(item_id="q1", outcome="answered", value="a" * 60 + "!", reason="")
    [found] = SCORERS["regex"].score([slow], [answer])
    assert found.value in (None, 0.0)
