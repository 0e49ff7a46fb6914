"""What a coordinator looks at: items that were rated low, means over time, and the table by qualification."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from medassay.bank.reviews import ReviewerGroup
from medassay.core.records.estimate import Estimate
from medassay.core.records.trial import Scale
from medassay.review.agreement import LastReview
from medassay.review.rating import FLAGGED_BELOW, Rating, group_of, is_flagged, together
from medassay.statistic.interval.bootstrap import bootstrap_mean

LOW = 3  # a score of at most 3 puts an item on the list
_MEAN_BELOW = FLAGGED_BELOW / 3
_SCALE = Scale(lo=1, hi=5)


@dataclass(frozen=True, kw_only=True)
class EntrySummary:
    """What the reviews of one entry say together; `total` is the mean total of 15, None where not all three were scored."""

    entry: int
    reviews: int
    lowest: int | None
    total: float | None
    any_low: bool
    below_nine: bool
    flagged: bool
    harm: bool


def standing_of(entry: int, given: Sequence[LastReview]) -> EntrySummary:
    """Return what the reviews of an entry say together.

    Flagged is a mean total below 9 or two reviews that flag it; where an entry has no path, the same in means: below 3.
    """
    numbers = [score for one in given for score in one.scores.values() if type(score) is int]
    ratings = [rating for one in given if (rating := one.rating) is not None]
    total = sum(r.total for r in ratings) / len(ratings) if ratings else None
    return EntrySummary(
        entry=entry,
        reviews=len(given),
        lowest=min(numbers, default=None),
        total=total,
        any_low=min(numbers, default=5) <= LOW,
        below_nine=total is not None and total < FLAGGED_BELOW,
        flagged=_flagged(given, ratings),
        harm=any(one.harm is not None for one in given),
    )


def _flagged(given: Sequence[LastReview], ratings: Sequence[Rating]) -> bool:
    if ratings:
        return is_flagged(ratings)
    means = [one.mean for one in given if one.mean is not None]
    if not means:
        return False
    return sum(means) / len(means) < _MEAN_BELOW or sum(m < _MEAN_BELOW for m in means) > 1


def standings(given: Sequence[LastReview]) -> list[EntrySummary]:
    """Return the standing of every entry that has a review, by entry."""
    of: dict[int, list[LastReview]] = defaultdict(list)
    for one in given:
        of[one.entry].append(one)
    return [standing_of(entry, found) for entry, found in sorted(of.items())]


def by_qualification(given: Sequence[LastReview]) -> list[ReviewerGroup]:
    """Return the table by qualification, and all of them together last; empty where no three scores were given."""
    of: dict[str, list[tuple[str, Rating]]] = defaultdict(list)
    for one in given:
        if (rating := one.rating) is not None:
            of[one.qualification].append((str(one.reviewer), rating))
    groups = [group_of(qualification, rated) for qualification, rated in sorted(of.items())]
    return [*groups, together(groups)] if groups else []


@dataclass(frozen=True, kw_only=True)
class TrendPoint:
    """A mean score in one month, of one category or qualification or of all."""

    month: str
    name: str
    mean: Estimate
    reviews: int
    reviewers: int


By = Literal["all", "category", "qualification"]


def scored_aspects(given: Sequence[LastReview]) -> list[str]:
    """Return the aspects that have scores from 1 to 5."""
    found = (name for one in given for name, score in one.scores.items() if type(score) is int)
    return sorted(set(found))


def trend(given: Sequence[LastReview], aspect: str, by: By, *, seed: int) -> list[TrendPoint]:
    """Return the mean score of an aspect by month, with intervals over entries: of all, of each category or each qualification."""
    rows: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    people: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in given:
        score = one.scores.get(aspect)
        if type(score) is int:
            name = "all" if by == "all" else str(getattr(one, by))
            rows[name, one.submitted_at[:7]].append((one.entry, score))
            people[name, one.submitted_at[:7]].add(one.reviewer)
    return [
        TrendPoint(
            month=month,
            name=name,
            mean=bootstrap_mean(
                [score for _, score in found],
                seed=seed,
                clusters=[entry for entry, _ in found],
                scale=_SCALE,
            ),
            reviews=len(found),
            reviewers=len(people[name, month]),
        )
        for (name, month), found in sorted(rows.items())
    ]


def counts(found: Sequence[EntrySummary]) -> Mapping[str, int]:
    """Return how many entries have any score of at most 3, and how many a mean total below 9: two questions, two answers."""
    return {
        "entries": len(found),
        "any_low": sum(one.any_low for one in found),
        "below_nine": sum(one.below_nine for one in found),
        "flagged": sum(one.flagged for one in found),
        "harm": sum(one.harm for one in found),
    }
