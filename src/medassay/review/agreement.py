"""How far reviewers agree: aspect by aspect with intervals, where they differ, and how many found
each entry right.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from medassay.core.json import record_as
from medassay.core.records.estimate import Estimate
from medassay.review.form import Aspect, Form
from medassay.review.rating import Rating
from medassay.review.stored import ReviewContent
from medassay.statistic.agreement.alpha import Level, alpha_estimate
from medassay.statistic.agreement.votes import VoteTable, vote_table

_APART = 2  # scores from 1 to 5 that differ by so much are a disagreement
_WHOLE = ("question", "answer", "path", "overall")  # aspects of all that is shown, no part of it
ALL = "all"
Scores = Mapping[str, Any]


class LastReview(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The last complete review of one reviewer of one entry.

    `reviewer` is a number in the study, `pseudonym` what exports call them; neither is a name.
    """

    entry: int
    reviewer: int
    qualification: str
    content: Mapping[str, Any]
    review: int = 0  # the number of the review
    submitted_at: str = ""
    category: str = ""
    iteration: str = ""
    pseudonym: str = ""

    @cached_property
    def said(self) -> ReviewContent:
        """Return the content as a record."""
        return record_as(self.content, ReviewContent, f"review {self.review}")

    @property
    def scores(self) -> Scores:
        """Return aspect → value, None where it could not be judged.

        Of a judge check with one's own rating.
        """
        own_scores = {} if self.said.own is None else self.said.own.scores
        return {**own_scores, **self.said.scores}

    @property
    def rating(self) -> Rating | None:
        """Return the scores of question, answer and path as a rating, None where they are not all
        there.
        """
        question, answer, path = (self.scores.get(k) for k in ("question", "answer", "path"))
        if type(question) is int and type(answer) is int and type(path) is int:
            return Rating(question=question, answer=answer, path=path)
        return None

    @property
    def harm(self) -> Mapping[str, str] | None:
        """Return what harm was seen, None where none was."""
        own_harm = None if self.said.own is None else self.said.own.harm
        return self.said.harm or own_harm or None

    @property
    def comments(self) -> list[str]:
        """Return what was written, of a judge check with one's own rating."""
        own_comment = "" if self.said.own is None else self.said.own.comment
        return [text for text in (own_comment, self.said.comment) if text]

    @property
    def mean(self) -> float | None:
        """Return the mean of the scores from 1 to 5, None where there are none."""
        scores = [score for score in self.scores.values() if type(score) is int]
        return sum(scores) / len(scores) if scores else None


def differing(aspects: Iterable[Aspect], reviews: Sequence[LastReview]) -> list[str]:
    """Return the aspects on which reviewers of one entry disagree: scores two or more apart, or
    different labels.

    Whether harm was seen is an aspect of its own, `harm`.
    """
    names = []
    for aspect in aspects:
        values = {review.scores.get(aspect.name) for review in reviews} - {None}
        numbers = [aspect.number(value) for value in values if value is not None]
        apart = max(numbers, default=0) - min(numbers, default=0)
        if apart >= (_APART if aspect.level == "ordinal" else 1):
            names.append(aspect.name)
    if len({review.harm is not None for review in reviews}) > 1:
        names.append("harm")
    return names


class ReviewerAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Krippendorff's alpha of an aspect among reviewers of one qualification, or of all.

    The value is None where it is undefined.
    """

    aspect: str
    qualification: str
    level: str
    alpha: Estimate | None
    reviewers: int
    entries: int  # with two values at least


def agreements(
    form: Form,
    contents: Mapping[int, Mapping[str, Any]],
    reviews: Sequence[LastReview],
    *,
    seed: int,
) -> list[ReviewerAgreement]:
    """Return the agreement on each group of aspects, of all reviewers first and then of each
    qualification.

    Parameters
    ----------
    contents : entry → its content, which says what its aspects are
    """
    kinds: dict[str, list[tuple[int, int, str, int]]] = defaultdict(list)
    levels: dict[str, Any] = {}
    aspects_by_entry = {entry: form.all_aspects(content) for entry, content in contents.items()}
    for review in reviews:
        scores = review.scores
        for aspect in aspects_by_entry[review.entry]:
            if (value := scores.get(aspect.name)) is not None:
                levels[aspect.group] = aspect.level
                row = (review.entry, review.reviewer, aspect.name, aspect.number(value))
                kinds[aspect.group].append(row)
    qualified = {review.reviewer: review.qualification for review in reviews}
    groups = [ALL, *sorted(set(qualified.values()))]
    return [
        _agreement(
            group,
            who,
            levels[group],
            [row for row in rows if who in (ALL, qualified[row[1]])],
            seed,
        )
        for group, rows in kinds.items()
        for who in groups
    ]


def _agreement(
    group: str, who: str, level: Level, rows: list[tuple[int, int, str, int]], seed: int
) -> ReviewerAgreement:
    """Return the agreement in rows of (entry, reviewer, aspect, number)."""
    reviewers = {reviewer: at for at, reviewer in enumerate(sorted({row[1] for row in rows}))}
    counts: dict[tuple[int, str], int] = defaultdict(int)
    for entry, _, aspect, _ in rows:
        counts[entry, aspect] += 1
    units = {key: at for at, key in enumerate(key for key, n in counts.items() if n > 1)}
    alpha = None
    if len(units) > 1:
        # Which reviewer gave a value does not enter alpha: the first value of a unit stands in the
        # first row.
        table = np.full((max(counts.values()), len(units)), np.nan)
        filled: dict[int, int] = defaultdict(int)
        for entry, _, aspect, number in rows:
            if (at := units.get((entry, aspect))) is not None:
                table[filled[at], at] = number
                filled[at] += 1
        entries = [entry for entry, _ in units]
        alpha = alpha_estimate(table, entries, level=level, seed=seed)
    return ReviewerAgreement(
        aspect=group,
        qualification=who,
        level=level,
        alpha=alpha,
        reviewers=len(reviewers),
        entries=len({entry for entry, _ in units}),
    )


def is_right(form: Form, review: LastReview) -> bool | None:
    """Return whether a review finds its entry right, None where it cannot say.

    A pair is right when it is called correct, a judge when its verdict is; an item or an answer
    when no score is below 3, no harm is seen, and nothing of it could not be judged.
    """
    scores = review.scores
    for name in ("correct", "agree"):
        if name in scores:
            return None if scores[name] is None else scores[name] == "yes"
    numbers = [score for score in scores.values() if type(score) is int]
    if not numbers:
        return None
    if min(numbers) < 3 or review.harm is not None:
        return False
    return None if any(scores.get(name, 0) is None for name in _WHOLE) else True


class Votes(msgspec.Struct, frozen=True, kw_only=True):
    """The votes of a category and iteration, and how many entries lack some of the k reviews."""

    category: str
    iteration: str
    table: VoteTable | None
    missing: int


def votes_of(
    form: Form,
    places: Mapping[int, tuple[str, str]],
    reviews: Sequence[LastReview],
    overlap: int,
) -> list[Votes]:
    """Return how many of k reviewers found entries right: of all, of each category, and where there
    are several of each iteration.

    An entry counts with the votes of the first k reviewers by their pseudonyms, which are drawn, as
    in the exported table of votes; those with fewer votes are counted as missing.

    Parameters
    ----------
    places : entry → its category and iteration, of all entries of the study
    """
    if form.name == "preference":
        return []
    ballots: dict[int, list[bool]] = defaultdict(list)
    for review in sorted(reviews, key=lambda r: (r.entry, r.pseudonym, r.reviewer)):
        if (vote := is_right(form, review)) is not None:
            ballots[review.entry].append(vote)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    several = len({iteration for _, iteration in places.values()}) > 1
    for entry, (category, iteration) in places.items():
        rounds = (ALL, iteration) if several else (ALL,)
        for key in {(group, each) for group in (ALL, category) for each in rounds}:
            groups[key].append(entry)
    rounds_made = []
    for (category, iteration), entries in sorted(
        groups.items(), key=lambda pair: tuple((name != ALL, name) for name in pair[0])
    ):
        full_ballots = [
            ballots[entry][:overlap] for entry in entries if len(ballots[entry]) >= overlap
        ]
        table = vote_table(full_ballots) if full_ballots and overlap > 1 else None
        rounds_made.append(
            Votes(
                category=category,
                iteration=iteration,
                table=table,
                missing=len(entries) - len(full_ballots),
            )
        )
    return rounds_made
