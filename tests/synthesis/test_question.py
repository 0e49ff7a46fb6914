"""What becomes a question: the golden vectors, and hostile replies that never do."""

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.bank.check import check_record
from medassay.synthesis.question import OPTIONS, read_question, read_reply, shows, shuffled
from medassay.synthesis.refine import read_steps, refined

GOOD = [
    "A man of 60, what now?",
    "saline",
    ["saline", "water", "nothing", "insulin", "a pill"],
    "A",
]


def test_golden_items_are_valid_or_not(golden):
    for case in golden("bank_synthesis")["item_validation"]:
        try:
            read_question(case["value"])
            valid = True
        except ValueError:
            valid = False
        assert valid == case["valid"], case["name"]


def hostile(number):
    """Return a reply as a model at its worst might give it; some of them are fine all the same."""
    rng = random.Random(number)
    asked, answer, options, letter = json.loads(json.dumps(GOOD))
    kinds = (
        lambda: json.dumps([asked, answer, options[:4], letter]),
        lambda: json.dumps([asked, answer, [*options, "six"], letter]),
        lambda: json.dumps([asked, answer, options, "F"]),
        lambda: json.dumps([asked, "plasma", options, letter]),
        lambda: json.dumps([asked, answer, [*options[:4], "SALINE "], letter]),
        lambda: json.dumps([asked + "\u0000", answer, options, letter]),
        lambda: json.dumps([asked + "\u202e", answer, options, letter]),
        lambda: json.dumps([asked, answer, [*options[:4], "pi\u0007ll"], letter]),
        lambda: json.dumps([asked, answer, options, letter])[: rng.randrange(5, 60)],
        lambda: "[" * rng.randrange(1, 3000),
        lambda: '["' + "\\" * rng.randrange(1, 500),
        lambda: (
            'Reply with one JSON list only: ["the question", "the answer", ["five options"],'
            ' "letter"]'
        ),
        lambda: json.dumps([asked, answer, options, 1]),
        lambda: json.dumps([asked, answer, options, ["A"]]),
        lambda: json.dumps([asked, [answer], options, letter]),
        lambda: json.dumps(
            {"question": asked, "answer": answer, "options": options, "key": letter}
        ),
        lambda: json.dumps([[asked, answer, options, letter]] * 2),
        lambda: json.dumps([" ", answer, options, letter]),
        lambda: json.dumps([asked, answer, ["", *options[1:]], "B"]),
        lambda: json.dumps([asked, answer, options, None]),
        lambda: "",
        lambda: "I cannot help with that.",
        lambda: "<think>" + json.dumps(GOOD),
        lambda: json.dumps(["Low -> salt?", answer, options, letter]),
        lambda: json.dumps(["x" * 5000, answer, options, letter]),
        lambda: json.dumps([asked, answer, ["?", "!", "-", "saline", "."], "D"]),
        lambda: "```json\n" + json.dumps([asked, "a. saline", options, letter.lower()]) + "\n```",
        lambda: json.dumps(
            [asked, answer, [f"{c}. {o}" for c, o in zip("ABCDE", options, strict=True)], "A"]
        ),
        lambda: json.dumps(GOOD) + json.dumps([asked, "water", options[:3], "B"]),
    )
    return kinds[number % len(kinds)]()


@pytest.mark.parametrize("number", range(200))
def test_a_hostile_reply_never_becomes_an_invalid_question(number):
    try:
        made = read_reply(hostile(number), ("Low", "salt", "saline given"))
    except ValueError as error:
        assert str(error)
        return
    texts = [made.question, *made.options]
    assert all(text.strip() == text and text.isprintable() for text in texts)
    assert len(made.options) == OPTIONS == len({o.casefold() for o in made.options})
    assert made.answer == made.options[made.key]
    record = {
        "id": "x",
        "domain": "d",
        "question": made.question,
        "options": list(made.options),
    }
    check_record({**record, "expected": made.letter, "source": "s"}, "test", {"d"})


def test_most_hostile_replies_are_refused_and_honest_ones_are_not():
    accepted = 0
    for number in range(29):
        try:
            read_reply(hostile(number), ("Low", "salt"))
            accepted += 1
        except ValueError:
            continue
    assert (
        accepted == 3
    )  # fenced with a small letter; options with letters; a good list before a bad one
    assert read_reply(json.dumps(GOOD), ()).to_list() == GOOD


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=6),
    )
)
def test_any_json_is_a_question_or_a_value_error(value):
    try:
        made = read_question(value)
    except ValueError:
        return
    assert len(made.options) == OPTIONS


def test_letters_are_shuffled_evenly_and_the_same_each_time():
    question = read_question(GOOD)
    counts = Counter(shuffled(question, 7, f"item-{n}").letter for n in range(5000))
    assert all(abs(counts[letter] - 1000) < 110 for letter in "ABCDE")  # 4 standard deviations
    assert shuffled(question, 7, "a") == shuffled(question, 7, "a")
    for n in range(50):
        mixed = shuffled(question, n, "a")
        assert mixed.options[mixed.key] == question.answer
        assert sorted(mixed.options) == sorted(question.options)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("Fever -> cough, what now?", "an arrow"),
        ("A man gets intravenous saline. What is right?", "contains its answer"),
        ("He has fever, then a stiff neck, then confusion: what now?", "names 3 steps"),
        ("A man of 60 has a temperature of 39 and a stiff neck. What now?", None),
    ],
)
def test_a_question_must_not_show_its_pathway_or_its_answer(question, says):
    made = read_question(
        [question, "intravenous saline", ["intravenous saline", "b", "c", "d", "e"], "A"]
    )
    shown = shows(made, ("Fever", "Stiff neck", "Confusion", "Saline"))
    assert (shown or "").startswith(says or "") if says is None else says in shown
    assert (shown is None) == (says is None)


EIGHT = (
    "Pleural effusion",
    "Dyspnoea",
    "Chest radiograph",
    "Unilateral",
    "Thoracentesis",
    "Exudate",
    "Low pH",
    "Drain",
)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("Pleural effusion", "at least two steps"),
        ("A -> B\nC -> D", "line breaks"),
        ("A -> -> B", "without a word"),
        ("Here is the sequence: A -> B -> C", "other text"),
        ("A -> B\u0007 -> C", "control character"),
        ("`A -> B`", "other text"),
        ("", "at least two steps"),
    ],
)
def test_a_refined_pathway_is_a_sequence_and_nothing_else(reply, says):
    with pytest.raises(ValueError, match=says):
        read_steps(reply)


def test_a_refined_pathway_may_gain_three_steps_or_half_its_length():
    nine = " -> ".join([*EIGHT[:7], "Complicated effusion", "Chest tube"])
    assert len(refined(nine, EIGHT)) == 9  # the worked example: 8 steps become 9
    assert len(refined(" -> ".join("abcdefghijkl"), EIGHT)) == 12
    with pytest.raises(ValueError, match="8 steps became 13"):
        refined(" -> ".join("abcdefghijklm"), EIGHT)
    assert len(refined("a -> b -> c -> d -> e", ("x", "y"))) == 5
    with pytest.raises(ValueError):
        refined("a -> b -> c -> d -> e -> f", ("x", "y"))
