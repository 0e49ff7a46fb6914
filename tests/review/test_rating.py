"""Ratings by people: the golden vectors, and tables by qualification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import InputError, StatisticError
from medassay.review.rating import Rating, ReviewerGroup, group_of, together
from medassay.statistic.agreement.votes import margin_of_error, vote_table

scores = st.integers(1, 5)
ratings = st.builds(Rating, question=scores, answer=scores, path=scores)


def test_golden_ratings(golden):
    for case in golden("bank_synthesis")["review"]:
        given_ = {"question": case["q"], "answer": case["a"], "path": case["p"]}
        if not case["valid"]:
            with pytest.raises(InputError, match="whole number from 1 to 5"):
                Rating(**given_)
            continue
        rating = Rating(**given_)
        assert (rating.total, rating.mean) == (case["total"], case["mean"])
        assert (rating.flagged, rating.needs_feedback) == (
            case["flagged"],
            case["feedback_required"],
        )


def test_golden_table_weights_by_reviews(golden):
    known = golden("bank_synthesis")["review_table"]
    groups = [
        ReviewerGroup(
            qualification=g["g"],
            question=g["q"],
            answer=g["a"],
            path=g["p"],
            total=g["total"],
            reviewers=g["reviewers"],
            reviews=g["reviews"],
        )
        for g in known["groups"]
    ]
    found, expected = together(groups), known["review_weighted"]
    assert (found.question, found.answer, found.path, found.total) == pytest.approx(
        (expected["q"], expected["a"], expected["p"], expected["total"]), abs=5e-5
    )
    assert (found.reviewers, found.reviews) == (23, 137)


@given(st.lists(st.tuples(st.sampled_from("abc"), ratings), min_size=1, max_size=20))
def test_groups_together_are_the_whole(given_):
    names = sorted({name for name, _ in given_})
    parts = [group_of(name, [one for one in given_ if one[0] == name]) for name in names]
    whole, joined = group_of("all", given_), together(parts)
    assert joined.total == pytest.approx(whole.total)
    assert joined.reviews == whole.reviews
    assert whole.total == pytest.approx(whole.question + whole.answer + whole.path)


def test_nothing_is_no_number():
    for empty in (lambda: group_of("x", []), lambda: together([])):
        with pytest.raises(InputError):
            empty()


def test_golden_votes(golden):
    for case in golden("bank_synthesis")["agreement"]:
        table = vote_table(case["votes"])
        shares = [100 * one.value for one in (*table.at_least, table.unanimous)]
        assert shares == pytest.approx(
            [case["ge1"], case["ge2"], case["all3"], case["interrater_unanimous"]]
        )
        assert 100 * table.pairwise == pytest.approx(case["interrater_pairwise"])


@given(
    st.integers(2, 5).flatmap(
        lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=30)
    )
)
def test_shares_fall_with_the_votes_asked_for(votes):
    table = vote_table(votes)
    values = [one.value for one in table.at_least]
    assert values == sorted(values, reverse=True)
    assert all(one.lo <= one.value <= one.hi for one in table.at_least)
    none_right = sum(not any(row) for row in votes) / len(votes)
    assert table.unanimous.value == pytest.approx(table.all_of_them.value + none_right)


def test_golden_margin_and_gaps():
    assert round(margin_of_error(360, 5621), 4) == 0.05
    assert margin_of_error(7, 7) == 0
    for votes in ([], [[True]], [[True, False], [True]]):
        with pytest.raises(StatisticError):
            vote_table(votes)
    with pytest.raises(StatisticError):
        margin_of_error(0, 10)
