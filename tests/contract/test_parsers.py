"""Whatever enters PARSERS inherits this."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.core.records.completion import Completion
from medassay.core.records.prompt import Prompt
from medassay.kinds.catalog import PARSERS
from medassay.kinds.read_answer import read_answer

ITEM = makers.item(
    id="q",
    domain="d",
    question="?",
    form="choice",
    options=("eins", "zwei", "drei"),
    expected="B",
)
PROMPT = Prompt(
    item_id="q", messages=(), encoded=b"", template="t", letters="ABC", options=ITEM.options
)
each = pytest.mark.parametrize("name", PARSERS)


def read(name, text, finish="stop", prompt=PROMPT):
    return read_answer(ITEM, prompt, Completion(text=text, finish=finish), PARSERS[name])


@each
@given(text=st.text())
def test_never_raises_and_gives_exactly_one_outcome(name, text):
    answer = read(name, text)
    assert answer.outcome in ("answered", "unparsed", "truncated")
    assert (answer.value is not None) == (answer.outcome == "answered")
    assert answer.reason


@each
def test_a_refusal_of_the_provider_is_refused(name):
    assert read(name, "A 1", finish="refusal").outcome == "refused"


@each
def test_blank_is_unparsed_and_a_cut_thought_is_truncated(name):
    assert read(name, " \n").outcome == "unparsed"
    assert read(name, "", finish="length").outcome == "truncated"
    assert read(name, "<think>maybe A, 5", finish="length").outcome == "truncated"


def test_an_answer_given_before_the_cut_counts():
    assert read("choice", "B. zwei, because", finish="length").value == "B"


def test_the_shown_order_is_undone():
    shown = Prompt(
        item_id="q",
        messages=(),
        encoded=b"",
        template="t",
        letters="ABC",
        options=("drei", "eins", "zwei"),
        order=(2, 0, 1),
    )
    assert read("choice", "A", prompt=shown).value == "C"
    assert read("choice", "zwei", prompt=shown).value == "B"
