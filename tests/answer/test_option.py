import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import growth

from medassay.answer import extract_option

LETTERS = "ABCDE"


def test_reproduces_every_golden_string(golden):
    for case in golden("option_extraction")["strings"]:
        found = extract_option(case["text"])
        assert found == (case["expect"], case["rule"]), case["text"]
        assert extract_option(case["text"], mode="paper") == (
            case["paper_mode"],
            case["paper_rule"],
        )


def test_reproduces_the_golden_cases_with_parameters(golden):
    for case in golden("option_extraction")["with_parameters"]:
        letters, options = case.get("letters", LETTERS), case.get("options")
        assert extract_option(case["text"], letters, options=options)[0] == case["expect"]


def test_paper_mode_differs_from_the_intended_letter_47_times(golden):
    cases = golden("option_extraction")["strings"]
    assert sum(case["paper_mode"] != case["expect"] for case in cases) == 47


@given(st.text() | st.none() | st.integers())
def test_never_raises_and_never_invents_a_letter(answer):
    for mode in ("standard", "paper"):
        letter, rule = extract_option(answer, "ABCD", mode)
        assert letter is None or letter in "ABCD"
        assert letter is None or rule


@given(
    st.sampled_from(LETTERS),
    st.sampled_from(
        [
            "{}",
            "({})",
            "**{}**",
            "Answer: {}",
            "\\boxed{{{}}}",
            "{}.",
            "<think>A or B?</think>{}",
        ]
    ),
)
def test_a_plain_letter_is_always_found(letter, form):
    assert extract_option(form.format(letter))[0] == letter


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"))
def test_two_different_letters_are_ambiguous(one, other):
    letter, rule = extract_option(f"The answer is {one} or {other}", "ABCD")
    assert letter is None
    assert rule.endswith("ambiguous")


@pytest.mark.parametrize(
    "word", ["definitely", "optional", "both", "Because", "DIAGNOSIS", "Aspirin"]
)
def test_words_never_yield_a_letter(word):
    assert extract_option(word)[0] is None


@pytest.mark.parametrize(
    "piece",
    [
        "answer ",
        "answer is ",
        "option correcta ",
        "( ",
        "\\text{",
        "*a",
        "- ",
        "the answer is not ",
        "A, ",
        "_x",
        "choose  the option ",
        " \n",
    ],
)
def test_time_grows_with_the_length_not_its_square(piece):
    assert growth(extract_option, piece, 2_000) < 32
