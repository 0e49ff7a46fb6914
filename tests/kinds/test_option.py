import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import growth

from medassay.kinds.choice.option import extract_option

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


@pytest.mark.parametrize(
    "case",
    json.loads((Path(__file__).parents[1] / "corpora" / "options.json").read_text("utf-8"))[
        "cases"
    ],
    ids=lambda case: case["text"][:40],
)
def test_an_unseen_reply_says_what_a_person_reads(case):
    assert extract_option(case["text"], case.get("letters", LETTERS))[0] == case["expect"]


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("CThe context provided explains", "C"),
        ("E(Note: This choice is based on", "E"),
        ("**e**Explanation: the cornea", "E"),
        ("**a.**The patient's count", "A"),
        ("BTo determine the cause", "B"),
        ("The correct answer is:eExplanation: the", "E"),
        ("d The patient's presentation", "D"),
        ("CThe best choice; option A would harm", "C"),
    ],
)
def test_a_letter_glued_to_what_follows_is_that_letter(text, letter):
    assert extract_option(text)[0] == letter


@pytest.mark.parametrize(
    "text",
    [
        *(
            "CT scan shows",
            "EECG",
            "A1c is high",
            "B12 deficiency",
            "DNA repair",
            "DDimer is raised",
            "AFib with",
        ),
        *(
            "A(H1N1) influenza",
            "ECG changes",
            "ACTH",
            "CPeptide is low",
            "BCell lymphoma",
            "EColi",
            "cTnI",
            "GThe most",
        ),
        *("a Tzanck smear", "DEXA", "Acute", "Because it", "Both are", "eGFR of 30", "AIDS"),
    ],
)
def test_an_abbreviation_is_no_letter(text):
    assert extract_option(text)[0] is None


def test_what_a_letter_is_glued_to_decides_the_flagship_reproduction(data):
    """phi4's replies by our rules and by the published ones: both read 60.3 and 68.7 % as right."""
    folder = data / "healthbranches" / "predictions_v3_full"
    right = Counter()
    with (folder / "raw_predictions.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["model"] == "phi4:14b" and row["run"] == "quiz":
                for mode in ("standard", "paper"):
                    letter = extract_option(row["raw_prediction"], mode=mode)[0]
                    right[row["condition_setting"], mode] += letter == row["correct_option"]
    assert right == {
        ("zero_shot", "standard"): 181,
        ("zero_shot", "paper"): 181,
        ("zero_shot_rag", "standard"): 206,
        ("zero_shot_rag", "paper"): 206,
    }
