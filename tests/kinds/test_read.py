"""`medassay.read`: one reply read as a run reads it."""

import json

import pytest
from tests import makers

import medassay
from medassay.errors import InputError
from medassay.kinds.catalog import PARSERS
from medassay.kinds.read import PARSER_OF


def item(form="choice", **more):
    return makers.item(id="q", domain="d", question="?", form=form, **more)


def test_a_letter_with_the_rule_that_found_it():
    answer = medassay.read(item(options=("salt", "water"), expected="A"), "The answer is B.")
    assert (answer.value, answer.outcome, answer.reason, answer.codes) == (
        "B",
        "answered",
        "S2",
        (),
    )


def test_letters_as_they_were_shown():
    assert medassay.read(item(), "The answer is C.", letters="ABC").value == "C"
    assert medassay.read(item(), "The answer is C.", letters="AB").value is None


def test_the_published_rules_on_request():
    question = item(options=("salt", "water", "sugar", "rice", "tea"), expected="A")
    assert medassay.read(question, "A patient has C", extraction="paper").reason == "R2"


def test_why_a_reply_ended_decides_where_it_must():
    cut = medassay.read(item("diagnoses"), "1. Gout\n2. Lup", finish="length")
    assert (cut.outcome, [e["name"] for e in json.loads(cut.value)]) == ("truncated", ["Gout"])
    assert medassay.read(item("open"), "no", finish="refusal").reason == "provider"


@pytest.mark.parametrize("form", ["key", "given", "withheld"])
def test_what_has_no_reply_is_refused_by_name(form):
    with pytest.raises(InputError, match=f"item 'q': form '{form}' has no reply"):
        medassay.read(item(form), "x")


def test_an_unknown_end_is_refused():
    with pytest.raises(InputError, match="finish 'cut'; expected one of stop, length"):
        medassay.read(item("open"), "x", finish="cut")


def test_every_form_that_is_asked_has_a_parser():
    assert set(PARSER_OF.values()) <= set(PARSERS)
