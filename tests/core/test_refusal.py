"""Replies that decline, in five languages, and clinical sentences that only sound like it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.growth import growth

import medassay
from medassay.core.reply.refusal import declines, only_declines

CORPUS = Path(__file__).parents[1] / "corpora" / "refusals.json"


@pytest.mark.parametrize(
    "case",
    json.loads(CORPUS.read_text(encoding="utf-8"))["cases"],
    ids=lambda c: c["text"][:40],
)
def test_a_refusal_is_told_from_what_sounds_like_one(case):
    assert declines(case["text"]) is case["declines"]


@pytest.mark.parametrize(
    "text",
    [
        "I cannot diagnose patients.",
        "I'm sorry, but I can't help with that. Please see your doctor.",
        (
            "Als KI-Sprachmodell kann ich keine Diagnosen stellen. Bitte wenden Sie sich an einen"
            " Arzt."
        ),
        "Lo siento, no puedo proporcionar un diagnóstico. Consulte a un profesional.",
        "Je suis désolé, mais je ne peux pas poser de diagnostic. Consultez un médecin.",
        "抱歉，我无法提供医疗诊断。请咨询医生。",
    ],
)
def test_what_does_nothing_but_decline(text):
    assert only_declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm not a doctor, but this sounds like gout. Rest the joint.",
        "I cannot give a diagnosis, but possible causes are gout and sepsis.",
        "Sepsis cannot be ruled out; give antibiotics.",
        "",
    ],
)
def test_an_answer_beside_a_refusal_is_an_answer(text):
    assert not only_declines(text)


def item(form, **more):
    return makers.item(id="q", domain="d", question="?", form=form, **more)


REFUSAL = "I'm sorry, but I cannot provide medical advice."


@pytest.mark.parametrize(
    "question",
    [
        item("choice", options=("salt", "water"), expected="A"),
        item("range"),
        item("diagnoses"),
        item("record"),
        item("open"),
        item("text", reference="Give salt."),
    ],
    ids=lambda one: one.form,
)
def test_every_reader_says_refused_after_nothing_else_was_found(question):
    answer = medassay.read(question, REFUSAL)
    assert (answer.outcome, answer.reason, answer.value) == ("refused", "said", None)


@pytest.mark.parametrize(
    ("question", "reply", "value"),
    [
        (
            item("choice", options=("salt", "water"), expected="A"),
            f"{REFUSAL} The answer is B.",
            "B",
        ),
        (item("range"), f"{REFUSAL} It is 12.", "12.0"),
        (item("open"), f"{REFUSAL} However, salt helps.", f"{REFUSAL} However, salt helps."),
    ],
    ids=("choice", "number", "open"),
)
def test_a_refusal_never_overrides_an_answer(question, reply, value):
    answer = medassay.read(question, reply)
    assert (answer.outcome, answer.value) == ("answered", value)


def test_where_declining_may_be_right_it_is_judged():
    assert medassay.read(item("rubric"), REFUSAL).outcome == "answered"
    assert medassay.read(item("regex", regex="(?i)cannot"), REFUSAL).outcome == "answered"


@given(st.text(max_size=300))
def test_any_text_declines_or_not(text):
    assert only_declines(text) <= declines(text)


@pytest.mark.parametrize(
    "piece", ["I cannot ", "ich kann nicht ", "我不能", "no puedo ", "as an ", "I am "]
)
def test_hostile_text_costs_no_more_than_its_length(piece):
    assert growth(only_declines, piece, 2_000) < 24
