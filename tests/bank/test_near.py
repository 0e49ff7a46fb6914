"""Near duplicates: what is reported is measured, what is planted is found."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from tests import makers

from medassay.bank.near_duplicates import LEAST, NearIndex, compared_text, plain

WORDS = [
    "patient",
    "fever",
    "saline",
    "sodium",
    "renal",
    "acute",
    "chronic",
    "drug",
    "dose",
    "heart",
    "lung",
    "liver",
    "pain",
    "onset",
    "days",
    "hours",
    "history",
    "test",
    "first",
]


def sentence(rng, n):
    return " ".join(rng.choice(WORDS) + str(rng.randrange(40)) for _ in range(n))


def test_planted_near_duplicates_are_found_and_only_near_ones_reported():
    rng = random.Random(4)
    texts = [sentence(rng, rng.randrange(12, 40)) for _ in range(1500)]
    planted = set()
    for _ in range(120):
        at = rng.randrange(1500)
        words = texts[at].split()
        for _ in range(max(1, len(words) // 14)):
            words[rng.randrange(len(words))] = "changed"
        texts.append(" ".join(words))
        planted.add((at, len(texts) - 1))
    planted = {
        p for p in planted if Levenshtein.normalized_similarity(texts[p[0]], texts[p[1]]) >= LEAST
    }
    found = list(NearIndex(texts).pairs())
    pairs = {(one.first, one.second) for one in found}
    assert len(planted & pairs) >= 0.98 * len(planted)
    assert len(pairs) == len(found)
    for one in found:
        assert (
            one.similarity
            == Levenshtein.normalized_similarity(texts[one.first], texts[one.second])
            >= LEAST
        )


@given(st.lists(st.sampled_from(WORDS), min_size=3, max_size=30), st.randoms())
def test_the_same_words_in_another_order_and_equal_texts_are_found(words, rng):
    other = list(words)
    rng.shuffle(other)
    texts = [" ".join(words), "something else entirely here", " ".join(other), " ".join(words)]
    pairs = {(one.first, one.second) for one in NearIndex(texts).pairs()}
    assert (0, 3) in pairs
    assert (0, 2) in pairs
    assert not any(1 in pair for pair in pairs)
    hits = NearIndex(texts).near(" ".join(reversed(words)))
    assert 0 in {one.first for one in hits} or 2 in {one.first for one in hits}


def test_one_text_is_looked_up_among_many():
    rng = random.Random(5)
    texts = [sentence(rng, 20) for _ in range(300)]
    index = NearIndex(texts)
    assert (
        index.near(texts[7]) == [pytest.approx(index.near(texts[7])[0])]
        or index.near(texts[7])[0].first == 7
    )
    changed = texts[7].replace(texts[7].split()[3], "other")
    [hit] = index.near(changed)
    assert (hit.first, hit.by) == (7, "levenshtein")
    assert index.near("nothing of the kind") == []
    assert NearIndex([]).near("x") == []
    assert list(NearIndex([]).pairs()) == []


def test_short_questions_are_told_apart_by_their_options():
    def item(question, *options):
        return makers.item(
            id="x", domain="d", question=question, form="choice", options=options, expected="A"
        )

    first, second = (
        item("Which is true?", "a b c", "d e f"),
        item("Which is true?", "g h i", "k l m"),
    )
    assert compared_text(first) != compared_text(second)
    assert compared_text(first) == compared_text(item("Which is true?", "d e f", "a b c"))
    assert plain("Ünïcode,  text!") == "ünïcode text"


def test_command_finds_pairs_across_banks(cli, tmp_path):
    makers.write_bank(tmp_path / "one", makers.law_items())
    other = [
        {**item, "id": f"o{n}", "domain": "tax"} for n, item in enumerate(makers.law_items()[:2])
    ]
    makers.write_bank(tmp_path / "two", other, name="tax", domains=("tax",))
    code, shown, _ = cli("bank", "duplicates", "one", "two", "--across")
    assert (code, len(shown.splitlines())) == (1, 2)
    code, shown, _ = cli("bank", "duplicates", "one")
    assert (code, shown) == (0, "")
