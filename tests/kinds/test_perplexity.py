"""Plain and relaxed perplexities: exact values of a toy model, and laws."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.core.records.likelihood import StoredLikelihood
from medassay.core.records.relaxed import (
    MODES,
    Position,
    Prefix,
    RelaxedSetting,
    SampledCompletion,
    Tables,
    keep,
    prefixes,
    tables,
)
from medassay.kinds.likelihood.board import likelihood_view
from medassay.kinds.likelihood.perplexity import corpus, count_bytes, count_words
from medassay.kinds.likelihood.relaxed_perplexity import combine, log_sum_exp

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/perplexity.json").read_text())
VOCABULARY = GOLDEN["model"]["vocabulary"]
STEPS = {
    before: dict(zip(VOCABULARY, map(Fraction, row), strict=True))
    for before, row in GOLDEN["model"]["transitions"].items()
}
START = GOLDEN["model"]["start"]


def probability(tokens, before=START):
    """Return the exact probability of tokens after one token."""
    total = Fraction(1)
    for token in tokens:
        total *= STEPS[before][token]
        before = token
    return total


def log(fraction):
    return math.log(fraction) if fraction else -math.inf


def after(begun, target):
    return log(probability(target, begun[-1] if begun else START))


def likeliest(length, most):
    """Return the likeliest beginnings of a length without a stop, ties alphabetical."""
    listed = itertools.product(VOCABULARY[:-1], repeat=length)
    ranked = sorted(listed, key=lambda tokens: (-probability(tokens), tokens))
    return ranked if most == "all" else ranked[:most]


def exact(case):
    return Tables(
        target_tokens=len(case["target"]),
        positions=tuple(
            Position(
                at=at,
                prefixes=tuple(
                    Prefix(prefix=log(probability(x)), target=after(x, case["target"]))
                    for x in likeliest(at, case["l"])
                ),
            )
            for at in case["positions"]
        ),
    )


@pytest.mark.parametrize(
    "case",
    GOLDEN["relaxed"],
    ids=lambda c: f"{''.join(c['target'])}-{c['l']}-{c['n']}-{c['stride']}-{c['combine']}",
)
def test_the_golden_values_of_the_toy_model(case):
    found = combine(exact(case), case["combine"])
    assert found.log_p == pytest.approx([log(Fraction(p)) for p in case["P"]], abs=1e-9)
    assert found.cross_entropy == pytest.approx(case["cross_entropy_sum"], abs=1e-9)
    assert found.per_position == pytest.approx(case["cross_entropy_per_position"], abs=1e-9)
    assert found.value == pytest.approx(case["relaxed_perplexity"], abs=1e-9)
    assert found.above_one == case["any_above_1"]


def test_the_protocol_with_a_duplicate_and_an_early_stop():
    example = GOLDEN["protocol_example"]
    sampled = []
    for one in example["sampled"]:
        before, logprobs = START, []
        for token in one["tokens"]:
            logprobs.append(log(STEPS[before][token]))
            before = token
        sampled.append(SampledCompletion(tokens=tuple(one["tokens"]), logprobs=tuple(logprobs)))
    setting = RelaxedSetting(samples=4, keep=5, stride=1, max_tokens=2)
    kept = keep(sampled, setting.keep)
    assert len(kept) == 3
    made = tables(kept, setting, 1, lambda begun: after(begun, example["target"]))
    told = example["positions"]
    assert [p.at for p in made.positions] == [one["i"] for one in told]
    assert [len(p.prefixes) for p in made.positions] == [
        len(one["distinct_prefixes"]) for one in told
    ]
    for mode in ("sum", "mean"):
        found = combine(made, mode)
        assert found.cross_entropy == pytest.approx(example["cross_entropy"][mode], abs=1e-9)
        assert found.value == pytest.approx(example["relaxed_perplexity"][mode], abs=1e-9)


def test_weighted_over_all_prefixes_is_the_law_of_total_probability():
    case = {"target": ["b"], "l": "all", "positions": [0, 1, 2]}
    found = combine(exact(case), "weighted").log_p[2]
    strings = itertools.product(VOCABULARY[:-1], repeat=2)
    direct = sum(probability((*x, "b")) for x in strings)
    assert direct == Fraction(GOLDEN["identities"]["total_probability_b2"]["value"])
    assert found == pytest.approx(math.log(direct), abs=1e-12)


def test_plain_perplexities_are_the_golden_ones():
    plain = GOLDEN["plain"]
    documents = plain["documents"]
    found = corpus([d["loglikelihood"] for d in documents], [d["text"] for d in documents])
    wanted = plain["corpus"]
    assert (found.words, found.bytes) == (wanted["words"], wanted["bytes"])
    assert found.word_perplexity == pytest.approx(wanted["word_perplexity"], abs=1e-9)
    assert found.byte_perplexity == pytest.approx(wanted["byte_perplexity"], abs=1e-9)
    assert found.bits_per_byte == pytest.approx(wanted["bits_per_byte"], abs=1e-9)


@pytest.mark.parametrize("one", GOLDEN["plain"]["counts"], ids=lambda one: repr(one["text"]))
def test_words_and_bytes_are_counted_as_the_harness_does(one):
    assert (count_words(one["text"]), count_bytes(one["text"])) == (one["words"], one["bytes"])


@pytest.mark.parametrize(
    "row", GOLDEN["published_identity_check"], ids=lambda r: f"{r['task']}-{r['model']}"
)
def test_published_rows_agree_with_the_identities(row):
    assert 2 ** row["bits_per_byte"] == pytest.approx(row["byte_perplexity"], rel=5e-4)
    ratio = math.log(row["word_perplexity"]) / (row["bits_per_byte"] * math.log(2))
    assert ratio == pytest.approx(row["bytes_per_word"], abs=0.02)


@given(st.lists(st.tuples(st.floats(-500, 0), st.text(min_size=1)), min_size=1))
def test_byte_perplexity_is_two_to_the_bits(documents):
    found = corpus(*map(list, zip(*documents, strict=True)))
    if found.byte_perplexity is not None:
        assert found.byte_perplexity == pytest.approx(2**found.bits_per_byte)
    assert found.nats_per_word is not None


def test_empty_texts_are_left_out_and_counted():
    found = corpus([-1.0, -2.0], ["", "ab"])
    assert (found.excluded, found.documents, found.nats_per_byte) == (1, 1, 1.0)
    assert corpus([], []).word_perplexity is None
    assert corpus([-1.0], [""]).bits_per_byte is None


def test_what_is_too_large_keeps_its_logarithm():
    found = corpus([-1e6], ["a"])
    assert (found.word_perplexity, found.nats_per_word) == (None, 1e6)


@pytest.mark.parametrize("value", [0.1, float("nan"), float("inf")])
def test_what_is_no_log_likelihood_is_refused(value):
    with pytest.raises(ValueError, match="at most 0"):
        corpus([value], ["a"])


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="expected one each"):
        corpus([-1.0], [])


_LOGS = st.floats(-50, 0)
_POSITIONS = st.lists(
    st.lists(st.tuples(_LOGS, _LOGS), min_size=1, max_size=6), min_size=1, max_size=5
)


def made(rows, target_tokens=2):
    return Tables(
        target_tokens=target_tokens,
        positions=tuple(
            Position(at=4 * i, prefixes=tuple(Prefix(prefix=p, target=t) for p, t in row))
            for i, row in enumerate(rows)
        ),
    )


@given(_POSITIONS)
def test_how_the_four_combinations_stand_to_each_other(rows):
    total, mean, weighted, conditional = (combine(made(rows), mode) for mode in MODES)
    for at, row in enumerate(rows):
        assert mean.log_p[at] == pytest.approx(total.log_p[at] - math.log(len(row)))
        assert mean.log_p[at] <= 1e-9
        assert weighted.log_p[at] <= total.log_p[at] + 1e-9
        assert min(t for _, t in row) - 1e-9 <= conditional.log_p[at]
        assert conditional.log_p[at] <= max(t for _, t in row) + 1e-9
    assert mean.cross_entropy >= -1e-9


def test_an_impossible_target_has_no_value_and_says_why():
    found = combine(made([[(0.0, -math.inf)]]), "sum")
    assert (found.value, found.cross_entropy) == (None, math.inf)
    assert "impossible" in found.reason


def test_one_impossible_beginning_among_others_costs_nothing_but_its_share():
    assert log_sum_exp([-math.inf, -1.0]) == -1.0
    assert combine(made([[(0.0, -math.inf), (0.0, -1.0)]]), "sum").log_p == (-1.0,)


@pytest.mark.parametrize("wrong", [{"positions": ()}, {"target_tokens": 0}])
def test_nothing_to_combine_is_refused(wrong):
    given_ = {"target_tokens": 1, "positions": made([[(0.0, -1.0)]]).positions, **wrong}
    with pytest.raises(ValueError, match="at least one token"):
        combine(Tables(**given_), "sum")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="known are sum, mean, weighted, conditional"):
        combine(made([[(0.0, -1.0)]]), "max")


def test_the_likeliest_are_kept_and_ties_by_their_order():
    one, two, three = (
        SampledCompletion(tokens=(n,), logprobs=(value,))
        for n, value in ((1, -2.0), (2, -1.0), (3, -2.0))
    )
    assert keep([one, two, three, one], 2) == (two, one)


def test_positions_end_where_no_completion_reaches():
    kept = [
        SampledCompletion(tokens=(1, 2, 3), logprobs=(-1.0,) * 3),
        SampledCompletion(tokens=(), logprobs=()),
    ]
    assert [at for at, _ in prefixes(kept, stride=2, max_tokens=128)] == [0, 2]
    assert [at for at, _ in prefixes([], stride=8, max_tokens=128)] == [0]
    with pytest.raises(ValueError, match="stride 0"):
        prefixes(kept, stride=0, max_tokens=8)


def test_the_name_carries_the_setting():
    assert (
        RelaxedSetting(stride=16).name("sum")
        == "relaxed_perplexity[l=5,s=10,stride=16,max_tokens=128]"
    )
    assert len({RelaxedSetting().name(mode) for mode in MODES}) == 4


def test_a_page_shows_the_likelihood_of_more_options_than_the_alphabet_has_letters():
    n = 28
    likelihood = StoredLikelihood(total=-1.0, n_tokens=1, greedy=None, n_bytes=1, n_characters=1)
    trial = makers.trial(likelihoods=(likelihood,) * n, value="Δ")
    options = likelihood_view({"options": [f"option {at}" for at in range(n)]}, trial)["options"]
    assert [option["letter"] for option in options][25:] == ["Z", "Γ", "Δ"]
    assert [option["chosen"] for option in options] == [False] * 27 + [True]
