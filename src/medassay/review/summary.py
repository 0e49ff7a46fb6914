"""What a coordinator looks at: items that were rated low, means over time, and the table by
qualification.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import msgspec

from medassay.bank.reviews import ReviewerGroup
from medassay.core.records.estimate import Estimate
from medassay.core.scale import Scale
from medassay.review.agreement import LastReview
from medassay.review.rating import FLAGGED_BELOW, Rating, group_of, together
from medassay.statistic.interval.bootstrap import bootstrap_mean

LOW = 3  # a score of at most 3 puts an item on the list
_MEAN_BELOW = FLAGGED_BELOW / 3
_SCALE = Scale(lo=1, hi=5)


class EntrySummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the reviews of one entry say together.

    `total` is the mean total of 15, None where not all three were scored.
    """

    entry: int
    reviews: int
    lowest: int | None
    total: float | None
    any_low: bool
    below_nine: bool
    flagged: bool
    harm: bool


def standing_of(entry: int, reviews: Sequence[LastReview]) -> EntrySummary:
    """Return what the reviews of an entry say together.

    An entry is flagged where its mean total is below 9 or two reviews flag it; where a review lacks
    a score, the mean of its scores stands for a third of its total.
    """
    numbers = [
        score for review in reviews for score in review.scores.values() if type(score) is int
    ]
    ratings = [rating for review in reviews if (rating := review.rating) is not None]
    total = sum(r.total for r in ratings) / len(ratings) if ratings else None
    return EntrySummary(
        entry=entry,
        reviews=len(reviews),
        lowest=min(numbers, default=None),
        total=total,
        any_low=min(numbers, default=5) <= LOW,
        below_nine=total is not None and total < FLAGGED_BELOW,
        flagged=_is_flagged(reviews),
        harm=any(review.harm is not None for review in reviews),
    )


def _is_flagged(reviews: Sequence[LastReview]) -> bool:
    # A total below 9 is a mean below 3: reviews in which something could not be judged count, too.
    means = [review.mean for review in reviews if review.mean is not None]
    if not means:
        return False
    return sum(means) / len(means) < _MEAN_BELOW or sum(m < _MEAN_BELOW for m in means) > 1


def standings(reviews: Sequence[LastReview]) -> list[EntrySummary]:
    """Return the standing of every entry that has a review, by entry."""
    of: dict[int, list[LastReview]] = defaultdict(list)
    for review in reviews:
        of[review.entry].append(review)
    return [standing_of(entry, reviews_of) for entry, reviews_of in sorted(of.items())]


def by_qualification(reviews: Sequence[LastReview]) -> list[ReviewerGroup]:
    """Return the table by qualification, and all of them together last.

    Empty where no three scores were given.
    """
    of: dict[str, list[tuple[str, Rating]]] = defaultdict(list)
    for review in reviews:
        if (rating := review.rating) is not None:
            of[review.qualification].append((str(review.reviewer), rating))
    groups = [group_of(qualification, rated) for qualification, rated in sorted(of.items())]
    return [*groups, together(groups)] if groups else []


class TrendPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A mean score in one month, of one category or qualification or of all."""

    month: str
    name: str
    mean: Estimate
    reviews: int
    reviewers: int


By = Literal["all", "category", "qualification"]


def scored_aspects(reviews: Sequence[LastReview]) -> list[str]:
    """Return the aspects that have scores from 1 to 5."""
    names = (
        name for review in reviews for name, score in review.scores.items() if type(score) is int
    )
    return sorted(set(names))


def trend(reviews: Sequence[LastReview], aspect: str, by: By, *, seed: int) -> list[TrendPoint]:
    """Return the mean score of an aspect by month, with intervals over entries: of all, of each
    category or each qualification.
    """
    rows: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    people: dict[tuple[str, str], set[int]] = defaultdict(set)
    for review in reviews:
        score = review.scores.get(aspect)
        if type(score) is int:
            name = "all" if by == "all" else str(getattr(review, by))
            rows[name, review.submitted_at[:7]].append((review.entry, score))
            people[name, review.submitted_at[:7]].add(review.reviewer)
    return [
        TrendPoint(
            month=month,
            name=name,
            mean=bootstrap_mean(
                [score for _, score in scores_of],
                seed=seed,
                clusters=[entry for entry, _ in scores_of],
                scale=_SCALE,
            ),
            reviews=len(scores_of),
            reviewers=len(people[name, month]),
        )
        for (name, month), scores_of in sorted(rows.items())
    ]


class EntryCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many entries of a study have any score of at most 3, a mean total below 9 (two questions,
    two answers), a flag, or harm seen.
    """

    entries: int
    any_low: int
    below_nine: int
    flagged: int
    harm: int


def counts(entry_summaries: Sequence[EntrySummary]) -> EntryCounts:
    """Return the counts of a study."""
    names = ("any_low", "below_nine", "flagged", "harm")
    sums = {name: sum(getattr(entry, name) for entry in entry_summaries) for name in names}
    return EntryCounts(entries=len(entry_summaries), **sums)
