import numpy as np
import pytest

from medassay.review.agreement import LastReview, agreements, differing, is_right, votes_of
from medassay.review.form import FORMS
from medassay.review.summary import (
    EntryCounts,
    by_qualification,
    counts,
    scored_aspects,
    standing_of,
    standings,
    trend,
)
from medassay.statistic.agreement.alpha import krippendorff_alpha

ITEM = FORMS["item"]
CONTENT = {"path": "a -> b"}


def one(entry, reviewer, scores, **more):
    names = ("question", "answer", "path")
    review = {
        "scores": dict(zip(names, scores, strict=True)) if isinstance(scores, tuple) else scores,
        "cannot": {},
        "comment": "",
        "harm": more.pop("harm", None),
    }
    return LastReview(
        entry=entry,
        reviewer=reviewer,
        qualification=more.pop("qualification", "physician"),
        content=review,
        submitted_at=more.pop("at", "2026-01-05T10:00:00Z"),
        **more,
    )


def test_scores_two_apart_or_other_labels_are_a_disagreement():
    aspects = ITEM.aspects(CONTENT)
    assert differing(aspects, [one(1, 1, (5, 4, 3)), one(1, 2, (4, 3, 2))]) == []
    assert differing(aspects, [one(1, 1, (5, 4, 3)), one(1, 2, (3, 3, 5))]) == [
        "question",
        "path",
    ]
    assert differing(aspects, [one(1, 1, (5, None, 3)), one(1, 2, (5, 1, 3))]) == []
    assert differing(
        aspects, [one(1, 1, (5, 4, 3), harm={"severity": "mild"}), one(1, 2, (5, 4, 3))]
    ) == ["harm"]
    pair = FORMS["pair"].aspects({})
    assert differing(pair, [one(1, 1, {"correct": "yes"}), one(1, 2, {"correct": "no"})]) == [
        "correct"
    ]


def test_agreement_equals_alpha_over_reviewers_and_items():
    rng = np.random.default_rng(3)
    table = rng.integers(1, 6, (3, 40))
    table[1] = np.where(rng.random(40) < 0.7, table[0], table[1])
    given = [
        one(
            entry,
            reviewer,
            (int(table[reviewer, entry]), 4, 4),
            qualification=("student", "physician", "physician")[reviewer],
        )
        for entry in range(40)
        for reviewer in range(3)
    ]
    found = {
        (row.aspect, row.qualification): row
        for row in agreements(ITEM, dict.fromkeys(range(40), CONTENT), given, seed=1)
    }
    whole = found["question", "all"]
    assert whole.alpha.value == pytest.approx(krippendorff_alpha(table.astype(float), "ordinal"))
    assert whole.alpha.lo < whole.alpha.value < whole.alpha.hi
    assert (whole.entries, whole.reviewers) == (40, 3)
    two = found["question", "physician"]
    assert two.alpha.value == pytest.approx(krippendorff_alpha(table[1:].astype(float), "ordinal"))
    assert found["question", "student"].alpha is None  # nobody to agree with
    assert found["answer", "all"].alpha is None  # all the same: undefined, not 1


def test_missing_scores_do_not_count_as_agreement():
    given = [
        one(e, r, (None if (e + r) % 2 else 1 + e % 5, 4, 4)) for e in range(10) for r in range(2)
    ]
    [row] = [
        row
        for row in agreements(ITEM, dict.fromkeys(range(10), CONTENT), given, seed=1)
        if (row.aspect, row.qualification) == ("question", "all")
    ]
    assert row.alpha is None
    assert row.entries == 0


def test_votes_by_category_and_iteration_are_the_published_example():
    votes = [(1, 1, 1), (1, 1, 0), (0, 0, 0), (1, 0, 0), (1, 1, 1)]
    given = [
        one(
            entry,
            reviewer,
            {"correct": "yes" if vote else "no"},
            category="heart" if entry < 3 else "skin",
            iteration="1" if entry < 3 else "2",
        )
        for entry, row in enumerate(votes)
        for reviewer, vote in enumerate(row)
    ]
    given.append(one(9, 0, {"correct": "yes"}, category="skin", iteration="2"))
    places = {one.entry: (one.category, one.iteration) for one in given} | {10: ("heart", "1")}
    found = {
        (row.category, row.iteration): row for row in votes_of(FORMS["pair"], places, given, 3)
    }
    whole = found["all", "all"]
    assert [e.value for e in whole.table.at_least] == [0.8, 0.6, 0.4]
    assert whole.table.unanimous.value == 0.6
    assert whole.missing == 2  # one with one vote of three, one with none
    assert found["heart", "1"].table.n_items == 3
    rounds = {("all", "1"), ("all", "2"), ("heart", "1"), ("skin", "2")}
    whole_rows = {("all", "all"), ("heart", "all"), ("skin", "all")}
    assert set(found) == whole_rows | rounds
    alone = {number: (category, "1") for number, (category, _) in places.items()}
    assert {(row.category, row.iteration) for row in votes_of(FORMS["pair"], alone, given, 3)} == (
        whole_rows  # of one round, the round is no row of its own
    )
    assert votes_of(FORMS["preference"], {}, given, 3) == []


@pytest.mark.parametrize(
    ("form", "scores", "right"),
    [
        ("item", {"question": 3, "answer": 3, "path": 3}, True),
        ("item", {"question": 5, "answer": 2, "path": 5}, False),
        ("item", {"question": None, "answer": None}, None),
        ("item", {"question": 4, "answer": None}, None),  # nobody found the key right
        ("item", {"question": 2, "answer": None}, False),
        ("pair", {"correct": None}, None),
        ("judge", {"agree": "partly"}, False),
        ("answer", {"fact-f1": "missing", "overall": 4}, True),
    ],
)
def test_who_finds_an_entry_right(form, scores, right):
    assert is_right(FORMS[form], one(1, 1, scores)) is right


def test_what_is_low_what_is_below_nine_and_what_is_flagged_are_three_questions():
    found = standings(
        [
            one(1, 1, (5, 5, 3)),
            one(1, 2, (5, 5, 5)),
            one(2, 1, (2, 2, 2)),
            one(2, 2, (5, 5, 5)),
            one(3, 1, (2, 2, 2)),
            one(3, 2, (2, 3, 3)),
            one(3, 3, (5, 5, 5)),
            one(3, 4, (5, 5, 5)),
            one(4, 1, (4, 4, 4), harm={"severity": "severe"}),
        ]
    )
    assert [s.any_low for s in found] == [True, True, True, False]
    assert [s.below_nine for s in found] == [False, False, False, False]
    assert [s.flagged for s in found] == [
        False,
        False,
        True,
        False,
    ]  # two reviews of entry 3 flag it
    assert standing_of(5, [one(5, 1, (2, 3, 3))]).below_nine
    assert counts(found) == EntryCounts(entries=4, any_low=3, below_nine=0, flagged=1, harm=1)
    short = standing_of(6, [one(6, 1, {"question": 2, "answer": 3})])
    assert (short.total, short.flagged) == (None, True)  # no path: a mean below 3
    unsure = {"question": 1, "answer": 1, "path": None}
    mixed = standing_of(7, [one(7, 1, (5, 5, 5)), one(7, 2, unsure), one(7, 3, unsure)])
    assert (mixed.total, mixed.flagged) == (15, True)  # two of three call it as bad as can be


@pytest.mark.parametrize(
    ("totals", "flagged"),
    [((8,), True), ((9,), False), ((8, 15), False), ((8, 8, 15), True), ((8, 9), True)],
)
def test_an_item_is_flagged_by_its_mean_or_by_two(totals, flagged):
    scores = {8: (3, 3, 2), 9: (3, 3, 3), 15: (5, 5, 5)}
    reviews = [one(1, reviewer, scores[total]) for reviewer, total in enumerate(totals)]
    assert standing_of(1, reviews).flagged == flagged


def test_votes_are_of_the_first_by_pseudonym_as_in_the_exported_table():
    reviews = [
        one(1, reviewer, {"correct": said}, pseudonym=name)
        for reviewer, (name, said) in enumerate((("r-c", "no"), ("r-a", "yes"), ("r-b", "yes")))
    ]
    [found] = votes_of(FORMS["pair"], {1: ("", "")}, reviews, 2)[:1]
    assert found.table.unanimous.value == 1
    assert found.table.at_least[1].value == 1


def test_the_table_by_qualification_weighs_all_by_reviews():
    given = [
        one(1, 1, (5, 5, 5), qualification="student"),
        one(2, 1, (5, 5, 5), qualification="student"),
        one(1, 2, (2, 2, 2)),
    ]
    rows = {row.qualification: row for row in by_qualification(given)}
    assert rows["student"].total == 15
    assert rows["all"].total == pytest.approx(12)
    assert (rows["student"].reviewers, rows["student"].reviews) == (1, 2)
    assert by_qualification([]) == []


def test_trends_are_means_by_month_of_what_was_asked():
    given = [
        one(1, 1, (5, 4, 4), category="heart"),
        one(2, 1, (3, 4, 4), category="skin"),
        one(1, 2, (1, 4, 4), category="heart", at="2026-02-01T10:00:00Z"),
    ]
    assert scored_aspects(given) == ["answer", "path", "question"]
    points = trend(given, "question", "all", seed=1)
    assert [(p.month, p.mean.value, p.reviews) for p in points] == [
        ("2026-01", 4, 2),
        ("2026-02", 1, 1),
    ]
    by = trend(given, "question", "category", seed=1)
    assert [(p.name, p.month) for p in by] == [
        ("heart", "2026-01"),
        ("heart", "2026-02"),
        ("skin", "2026-01"),
    ]
