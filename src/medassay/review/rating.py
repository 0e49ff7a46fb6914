"""Ratings of items by people: question, answer and pathway from 1 (poor) to 5 (excellent), their
total, and what follows.

Source: specification of bank synthesis, 10.2 (review protocol of HealthBranches, A.9).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from medassay.bank.reviews import ReviewerGroup
from medassay.errors import InputError

ASPECTS = ("question", "answer", "path")
_MEANS = (*ASPECTS, "total")  # of a group of reviewers
LOWEST, HIGHEST = 1, 5
FLAGGED_BELOW = 9  # of a total of 15
FEEDBACK_BELOW = 3  # of a score; offered at 3


@dataclass(frozen=True, kw_only=True)
class Rating:
    """One person's scores of one item."""

    question: int
    answer: int
    path: int

    def __post_init__(self) -> None:
        for aspect, score in zip(ASPECTS, self.scores, strict=True):
            if type(score) is not int or not LOWEST <= score <= HIGHEST:
                raise InputError(
                    f"rating: {aspect} is {score!r:.20}; expected a whole number from {LOWEST} to"
                    f" {HIGHEST}"
                )

    @property
    def scores(self) -> tuple[int, int, int]:
        """Return the scores in the order of `ASPECTS`."""
        return self.question, self.answer, self.path

    @property
    def total(self) -> int:
        """Return the sum, 3 to 15."""
        return sum(self.scores)

    @property
    def mean(self) -> float:
        """Return a third of the total, to two decimals."""
        return round(self.total / len(ASPECTS), 2)

    @property
    def flagged(self) -> bool:
        """Return whether the total is too low to leave the item as it is."""
        return self.total < FLAGGED_BELOW

    @property
    def needs_feedback(self) -> bool:
        """Return whether a written comment is required."""
        return min(self.scores) < FEEDBACK_BELOW


def group_of(qualification: str, ratings_given: Sequence[tuple[str, Rating]]) -> ReviewerGroup:
    """Return the means of some ratings, each with the reviewer's name.

    Raises
    ------
    InputError
        When there is none.
    """
    if not ratings_given:
        raise InputError(f"no rating by '{qualification}'; a mean of nothing is no number")
    n = len(ratings_given)
    return ReviewerGroup(
        qualification=qualification,
        **{name: sum(getattr(r, name) for _, r in ratings_given) / n for name in _MEANS},
        reviewers=len({name for name, _ in ratings_given}),
        reviews=n,
    )


def together(groups: Iterable[ReviewerGroup]) -> ReviewerGroup:
    """Return all groups as one, weighted by their ratings: published tables weight groups alike,
    which is no mean of ratings.
    """
    groups_found = list(groups)
    reviews = sum(group.reviews for group in groups_found)
    if not reviews:
        raise InputError("no ratings; a mean of nothing is no number")
    sums = {name: sum(getattr(g, name) * g.reviews for g in groups_found) for name in _MEANS}
    return ReviewerGroup(
        qualification="all",
        **{name: total / reviews for name, total in sums.items()},
        reviewers=sum(group.reviewers for group in groups_found),
        reviews=reviews,
    )
