"""What a run that is not finished says by now: counts and means of what is there, no more.

No ranks and no intervals: which items are answered first is no random draw, and models may be at
different items.
"""

from collections import Counter

import msgspec

from medassay.core.records.leaderboard import UNREAD
from medassay.storage.run import Run

_Key = tuple[str, str, str, str]  # model, setting, mode, scorer


class ProvisionalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model in one setting and mode, by one scorer.

    Attributes
    ----------
    answered : trials with a reply
    unread : of these, replies in which no answer was read
    failed : trials without a reply
    scored : trials with a score; where judges judge they come later
    mean : of these scores, on the scorer's scale; None without any
    """

    model: str
    setting: str
    mode: str
    scorer: str
    answered: int
    unread: int
    failed: int
    scored: int
    mean: float | None


def provisional(run: Run) -> list[ProvisionalRow]:
    """Return a row for each model, setting, mode and scorer, sorted by name."""
    outcomes: dict[_Key, Counter[str]] = {}
    scores: dict[_Key, list[float]] = {}
    by_place = {score.place: score for score in run.scores()}
    scorers: dict[tuple[str, str, str], set[str]] = {}
    for own in by_place.values():
        scorers.setdefault((*own.row, own.mode), set()).add(own.scorer)
    for trial in run.trials():
        score = by_place.get(trial.place)
        row = (*trial.row, trial.mode)
        # What has no score yet will have that of the row's scorer, where there is one alone.
        expected = scorers.get(row, set())
        scorer = score.scorer if score else next(iter(expected)) if len(expected) == 1 else ""
        key = (*row, scorer)
        outcomes.setdefault(key, Counter())[trial.outcome] += 1
        if score is not None and score.score is not None:
            scores.setdefault(key, []).append(score.score)
    rows = []
    for key in sorted(outcomes):
        model, setting, mode, scorer = key
        counts, values = outcomes[key], scores.get(key, [])
        rows.append(
            ProvisionalRow(
                model=model,
                setting=setting,
                mode=mode,
                scorer=scorer,
                answered=counts.total() - counts["failed"],
                unread=sum(counts[name] for name in UNREAD),
                failed=counts["failed"],
                scored=len(values),
                mean=sum(values) / len(values) if values else None,
            )
        )
    return rows
