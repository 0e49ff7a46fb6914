"""Metrics of words: the golden pairs, the reference implementations, and laws."""

import json
from pathlib import Path

import pytest
import sacrebleu.tokenizers.tokenizer_13a
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from medassay.score.text import (
    BLEU_OF_NONE,
    TEXT_METRICS,
    bleu,
    rouge_l,
    rouge_n,
    token_f1,
    tokens_13a,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/text_metrics.json").read_text())
WORDS = st.lists(
    st.sampled_from(["Apixaban", "5", "mg", "2,5", "1-0-1", "stop", "the", "Ärzte.", "a&b"]),
    max_size=30,
).map(" ".join)
TEXT = st.one_of(WORDS, st.text(max_size=200))


@pytest.mark.parametrize("pair", GOLDEN["pairs"], ids=lambda pair: pair["prediction"][:20])
def test_the_golden_pairs(pair):
    said, wanted = pair["prediction"], pair["reference"]
    found = (rouge_n(said, wanted, 1), rouge_n(said, wanted, 2), rouge_l(said, wanted))
    assert found == pytest.approx((pair["rouge1"], pair["rouge2"], pair["rougeL"]), abs=1e-9)
    assert bleu(said, wanted) == pytest.approx(pair["bleu_reported"], abs=1e-9)
    assert tokens_13a(said) == pair["tokens_13a"]


@given(TEXT, TEXT)
def test_rouge_is_that_of_rouge_score(said, wanted):
    oracle = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(wanted, said)
    for name, found in (
        ("rouge1", rouge_n(said, wanted, 1)),
        ("rouge2", rouge_n(said, wanted, 2)),
        ("rougeL", rouge_l(said, wanted)),
    ):
        assert found == pytest.approx(oracle[name].fmeasure, abs=1e-9), name


@given(TEXT)
def test_tokens_are_those_of_sacrebleu(text):
    oracle = sacrebleu.tokenizers.tokenizer_13a.Tokenizer13a()
    assert tokens_13a(text) == oracle(text).split()


@given(WORDS, WORDS)
def test_bleu_is_that_of_sacrebleu(said, wanted):
    """Where there is a 4-gram to count: sacrebleu takes fewer orders of shorter texts, `evaluate` does not."""
    if len(tokens_13a(said)) < 4 or not wanted:
        return
    oracle = BLEU(smooth_method="none", effective_order=False)
    expected = oracle.corpus_score([said], [[wanted]]).score / 100
    assert bleu(said, wanted) == pytest.approx(expected or BLEU_OF_NONE, abs=1e-9)


@pytest.mark.parametrize("name", TEXT_METRICS)
@given(TEXT, TEXT)
def test_every_metric_is_a_share(name, said, wanted):
    assert 0 <= TEXT_METRICS[name](said, wanted) <= 1


@pytest.mark.parametrize("name", TEXT_METRICS)
@given(st.lists(st.sampled_from(["Über", "Apixaban", "5", "mg"]), min_size=4).map(" ".join))
def test_the_same_text_is_wholly_alike(name, text):
    assert TEXT_METRICS[name](text, text) == pytest.approx(1.0)


def test_umlauts_count_with_unicode_tokens_only():
    assert rouge_n("Übelkeit", "belkeit", 1) == 1.0
    assert rouge_n("Übelkeit", "belkeit", 1, unicode_tokens=True) == 0.0
    assert rouge_l("Ärzte raten", "Ärzte warnen", unicode_tokens=True) == 0.5


def test_a_short_text_that_is_right_gets_nothing_from_plain_bleu():
    assert bleu("Opioid abstinence.", "Opioid abstinence.") == BLEU_OF_NONE
    assert bleu("Opioid abstinence.", "Opioid abstinence.", smoothed=True) == pytest.approx(1.0)


def test_two_texts_without_a_word_are_alike():
    assert (token_f1("", "–"), token_f1("a", "")) == (1.0, 0.0)


def test_smoothing_adds_one_from_the_second_order_on():
    """1/2 words, (0 + 1)/(1 + 1) pairs, (0 + 1)/(0 + 1) beyond; no brevity penalty."""
    assert bleu("stop now", "stop later", smoothed=True) == pytest.approx(0.25**0.25)
    assert bleu("a", "b", smoothed=True) == BLEU_OF_NONE
    assert bleu("a", "a " * 1000, smoothed=True) == BLEU_OF_NONE
