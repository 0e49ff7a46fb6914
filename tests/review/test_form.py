import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import IntegrityError
from medassay.review.form import FORMS, MARKS, SEVERITIES, read_review
from medassay.review.form.form import LONGEST, clean
from medassay.review.rating import Rating

CONTENT = {
    "path": "a -> b",
    "options": [{"letter": letter, "text": letter} for letter in "ABC"],
    "facts": [{"id": "f1", "text": "F"}],
    "criteria": [{"id": "c1", "text": "C"}],
}
GOOD = {"question": "5", "answer": "4", "path": "3"}


def fields_of(form, **more):
    best = {aspect.name: str(aspect.values[-1][0]) for aspect in form.aspects(CONTENT)}
    return {**best, "comment": "c", **more}


def names(reading):
    return [one.field for one in reading.problems]


@pytest.mark.parametrize("name", sorted(FORMS))
def test_every_form_reads_what_it_asks_and_nothing_else(name):
    form = FORMS[name]
    assert form.name == name
    reading = read_review(form, CONTENT, fields_of(form))
    assert reading.problems == ()
    assert set(reading.review["scores"]) == {one.name for one in form.aspects(CONTENT)}
    assert set(fields_of(form)) <= form.known(CONTENT)
    empty = read_review(form, CONTENT, {})
    assert set(names(empty)) >= {one.name for one in form.aspects(CONTENT)}


def test_ids_of_facts_are_the_banks_own():
    facts = [{"id": name, "text": "F"} for name in (3, 2.5, None, True, 2**60 + 1)]
    named = [aspect.name for aspect in FORMS["answer"].aspects({"facts": facts})]
    assert named[:-1] == ["fact-3", "fact-2.5", "fact-None", "fact-True", f"fact-{2**60 + 1}"]
    assert len(FORMS["item"].aspects({"facts": facts})) == 2


def test_content_of_another_form_is_named():
    with pytest.raises(IntegrityError, match=r"the entry: Expected `str \| null`.*path"):
        FORMS["item"].aspects({"path": ["a"]})


def test_an_item_without_a_path_is_not_asked_for_one():
    form = FORMS["item"]
    assert [one.name for one in form.aspects({})] == ["question", "answer"]


@pytest.mark.parametrize(
    ("scores", "needed"),
    [
        ((3, 3, 3), []),
        ((5, 5, 2), ["comment"]),
        ((5, 2, 5), ["comment", "option"]),
        ((1, 1, 1), ["comment", "option"]),
    ],
)
def test_a_comment_and_the_right_answer_are_needed_below_three(scores, needed):
    given_ = dict(zip(("question", "answer", "path"), map(str, scores), strict=True))
    assert sorted(names(read_review(FORMS["item"], CONTENT, given_))) == needed
    assert Rating(**dict(zip(given_, scores, strict=True))).needs_feedback is (min(scores) < 3)


def test_without_options_the_right_answer_is_written():
    reading = read_review(FORMS["item"], {}, {"question": "5", "answer": "1", "comment": "c"})
    assert names(reading) == ["text"]
    reading = read_review(
        FORMS["item"], {}, {"question": "5", "answer": "1", "comment": "c", "text": "aspirin"}
    )
    assert reading.review["correction"] == {"text": "aspirin"}


def test_harm_has_a_severity_and_marks_are_yes_or_no():
    form = FORMS["item"]
    assert names(read_review(form, CONTENT, {**GOOD, "harm": "yes"})) == ["severity"]
    reading = read_review(
        form,
        CONTENT,
        {
            **GOOD,
            "harm": "yes",
            "severity": SEVERITIES[0],
            "mark-guideline": "no",
            "mark-education": "x",
        },
    )
    assert reading.review["harm"] == {"severity": "mild"}
    assert reading.review["marks"] == {"guideline": False}
    assert set(MARKS) == {"guideline", "education"}
    assert read_review(form, CONTENT, {**GOOD, "severity": "mild"}).review["harm"] is None


def test_a_no_to_a_pair_and_to_a_judge_needs_words():
    assert names(read_review(FORMS["pair"], {}, {"correct": "no"})) == ["comment"]
    assert names(read_review(FORMS["pair"], {}, {"correct": "yes"})) == []
    second = read_review(FORMS["judge"], CONTENT, {"agree": "partly"}, second=True)
    assert names(second) == ["comment"]
    assert second.review["scores"] == {"agree": "partly"}


def test_sides_that_are_swapped_still_name_the_answer():
    form = FORMS["preference"]
    for content, words in (({}, "left"), ({"swapped": True}, "right")):
        [aspect] = form.aspects(content)
        assert dict(aspect.values)["first"] == words
    [plain] = form.aspects({})
    assert [plain.number(value) for value in ("first", "equal", "second")] == [1, 2, 3]


def test_texts_that_are_too_long_are_refused():
    reading = read_review(FORMS["item"], CONTENT, {**GOOD, "comment": "x" * (LONGEST + 1)})
    assert names(reading) == ["comment"]


@given(
    st.dictionaries(
        st.sampled_from(["question", "answer", "path", "comment", "harm", "severity", "option"]),
        st.text(max_size=20),
    )
)
def test_whatever_is_filled_in_gives_a_review_or_problems(fields):
    reading = read_review(FORMS["item"], CONTENT, fields)
    for score in reading.review["scores"].values():
        assert score in (1, 2, 3, 4, 5, None)
    whole = all(
        fields.get(name) in ("1", "2", "3", "4", "5") for name in ("question", "answer", "path")
    )
    assert whole or reading.problems


@given(st.text())
def test_cleaned_texts_can_be_stored_everywhere(text):
    found = clean(text)
    assert "\x00" not in found
    found.encode("utf-8")
    assert clean(found) == found
