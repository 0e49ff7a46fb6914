"""Choices by likelihood, and what stands beside them."""

import math

import pytest
from tests import makers

from medassay.core.records.answer import Answer
from medassay.core.records.likelihood import (
    LogLikelihood,
    StoredLikelihood,
    likeliest,
    likelihoods_of,
)
from medassay.kinds.likelihood.choice_scorer import likeliest_parts
from medassay.kinds.likelihood.perplexity import bits_per_byte, perplexity_parts


def item(expected="B", **more):
    return makers.item(
        id="q",
        domain="d",
        question="?",
        form="choice",
        options=("a", "bb", "ccc"),
        expected=expected,
        source="s",
        **more,
    )


def answer(*pairs, value="A"):
    found = tuple(
        LogLikelihood(total=total, n_tokens=1, greedy=None, n_bytes=size, n_characters=letters)
        for total, size, letters in pairs
    )
    return Answer(
        item_id="q", outcome="answered", value=value, reason="likeliest", likelihoods=found
    )


def test_length_is_allowed_for_by_bytes_and_by_characters():
    # By sums A; by bytes C (−1 a byte), by characters B (−1.5 against −1.6 and −2).
    parts = likeliest_parts(item("C"), answer((-2.0, 1, 1), (-3.0, 2, 2), (-4.8, 5, 3)), "")
    assert (parts["acc_norm"], parts["acc_norm_characters"]) == (1.0, 0.0)
    parts = likeliest_parts(item("B"), answer((-2.0, 1, 1), (-3.0, 2, 2), (-4.8, 5, 3)), "")
    assert (parts["acc_norm"], parts["acc_norm_characters"]) == (0.0, 1.0)
    assert parts["margin"] == 1.0
    assert parts["expected"] == -3.0


@pytest.mark.parametrize(
    ("totals", "tied", "margin"),
    [
        ((-1.0, -1.0, -2.0), 1.0, 0.0),
        ((-1.0, -2.0, -2.0), 0.0, 1.0),
        ((-1.0, -math.inf, -math.inf), 0.0, None),
        ((-math.inf, -math.inf, -math.inf), 1.0, None),
    ],
)
def test_ties_and_impossible_options(totals, tied, margin):
    parts = likeliest_parts(item(), answer(*((t, 1, 1) for t in totals)), "")
    assert (parts["tied"], parts["margin"]) == (tied, margin)
    assert likeliest(totals) == 0  # the first of equals


def test_a_letter_that_was_read_has_no_such_parts():
    assert likeliest_parts(item(), answer(), "A") == {}


def test_the_order_shown_is_undone():
    given = [
        {"total": -float(n), "n_tokens": 1, "greedy": False, "n_bytes": 1, "n_characters": 1}
        for n in range(3)
    ]
    found = likelihoods_of(
        [StoredLikelihood(**one) for one in given], [2, 0, 1]
    )  # shown first: the bank's third
    assert [one.total for one in found] == [-1.0, -2.0, 0.0]


def document(total, text):
    size = len(text.encode())
    one = LogLikelihood(total=total, n_tokens=3, greedy=None, n_bytes=size, n_characters=9)
    made = Answer(item_id="q", outcome="answered", value="3 tokens", reason="", likelihoods=(one,))
    whole = makers.item(
        id="q",
        domain="d",
        question="?",
        form="open",
        reference=text,
        source="s",
    )
    return whole, made


def test_bits_per_byte_of_a_document():
    value, because = bits_per_byte(*document(-8 * math.log(2), "naïve"))
    assert value == pytest.approx(8 / 6)
    assert because == "likelihood"
    assert bits_per_byte(*document(-math.inf, "x")) == (None, "impossible")
    assert bits_per_byte(*document(0.0, "")) == (None, "empty target")


def test_the_parts_of_a_document_are_what_a_corpus_is_summed_from():
    whole, made = document(-7.0, "one two  three")
    parts = perplexity_parts(whole, made, "")
    assert parts == {"nats": 7.0, "words": 3, "bytes": 14, "tokens": 3}
    whole, made = document(-math.inf, "x")
    assert perplexity_parts(whole, made, "")["nats"] is None
