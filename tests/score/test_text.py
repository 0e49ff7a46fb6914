"""Metrics of words: the golden pairs, the reference implementations, and laws."""

import csv
import json
from pathlib import Path

import pytest
import sacrebleu.tokenizers.tokenizer_13a
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from tests.optional import rouge_scorer

from medassay.score.text import (
    BLEU_OF_NONE,
    LEXICAL,
    bleu,
    chrf,
    rouge,
    text_likeness,
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
    scored = rouge(said, wanted)
    found = (scored.rouge1, scored.rouge2, scored.rougeL)
    assert found == pytest.approx((pair["rouge1"], pair["rouge2"], pair["rougeL"]), abs=1e-9)
    assert bleu(said, wanted) == pytest.approx(pair["bleu_reported"], abs=1e-9)
    assert tokens_13a(said) == pair["tokens_13a"]


@given(TEXT, TEXT)
def test_rouge_is_that_of_rouge_score(said, wanted):
    oracle = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"]).score(wanted, said)
    found = rouge(said, wanted)
    for name in oracle:
        assert found[name] == pytest.approx(oracle[name].fmeasure, abs=1e-12), name


@given(TEXT, TEXT)
def test_chrf_is_that_of_sacrebleu(said, wanted):
    oracle = CHRF().sentence_score(said, [wanted]).score / 100
    assert chrf(said, wanted) == pytest.approx(oracle, abs=1e-9)


@pytest.mark.real_data
def test_rouge_is_that_of_rouge_score_on_real_notes(data):
    """The published system of ACI-Bench: .35142, .08573, .12648 by its authors."""
    folder = data / "aci_bench"
    notes = {
        row["encounter_id"]: row["note"] for row in _rows(folder / "clinicalnlp_taskC_test2.csv")
    }
    name = "LED_clinicalnlp_taskC_test2_division_combined"
    found = [
        rouge(row["note"], notes[row["encounter_id"]])
        for row in _rows(folder / "system_outputs" / f"{name}.csv")
    ]
    published = json.loads((folder / f"system_outputs/expected_scores_{name}.json").read_text())
    for metric in ("rouge1", "rouge2", "rougeL"):
        mean = sum(one[metric] for one in found) / len(found)
        assert round(mean, 5) == round(published["ALL"][metric], 5)


def _rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@given(TEXT)
def test_tokens_are_those_of_sacrebleu(text):
    oracle = sacrebleu.tokenizers.tokenizer_13a.Tokenizer13a()
    assert tokens_13a(text) == oracle(text).split()


@given(WORDS, WORDS)
def test_bleu_is_that_of_sacrebleu(said, wanted):
    """Where there is a 4-gram to count: sacrebleu takes fewer orders of shorter texts, `evaluate`
    does not.
    """
    if len(tokens_13a(said)) < 4 or not wanted:
        return
    oracle = BLEU(smooth_method="none", effective_order=False)
    expected = oracle.corpus_score([said], [[wanted]]).score / 100
    assert bleu(said, wanted) == pytest.approx(expected or BLEU_OF_NONE, abs=1e-9)


@pytest.mark.parametrize("name", LEXICAL)
@given(TEXT, TEXT)
def test_every_metric_is_a_share(name, said, wanted):
    assert 0 <= text_likeness(said, wanted)[name] <= 1


@pytest.mark.parametrize("name", LEXICAL)
@given(st.lists(st.sampled_from(["Über", "Apixaban", "5", "mg"]), min_size=4).map(" ".join))
def test_the_same_text_is_wholly_alike(name, text):
    assert text_likeness(text, text)[name] == pytest.approx(1.0)


def test_umlauts_count_with_unicode_tokens_only():
    assert rouge("Übelkeit", "belkeit").rouge1 == 1.0
    assert rouge("Übelkeit", "belkeit", unicode_tokens=True).rouge1 == 0.0
    assert rouge("Ärzte raten", "Ärzte warnen", unicode_tokens=True).rougeL == 0.5


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
