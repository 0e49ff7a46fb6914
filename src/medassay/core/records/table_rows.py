"""Records as rows of data frames: the columns are the fields, with names that can stand side by
side.
"""

from collections.abc import Mapping

import msgspec

from medassay.core.frame import FrameValue
from medassay.core.records.item import Item
from medassay.core.records.score import TrialScore
from medassay.core.records.trial import TRIAL_KEY, Trial, TrialLine
from medassay.core.records.verdict import StoredVerdict

# Fields of a trial that most runs do not have: columns where one does.
_RARE = ("likelihoods", "drawn", "order", "own_source", "tool_use", "trace", "again", "tombstone")
_ITEM_TEXTS = (
    *("context", "reference", "rationale", "language", "category", "condition", "difficulty"),
    *("cluster", "kind", "split", "source", "licence", "year", "revision", "harm"),
)


def key_row(line: TrialLine) -> dict[str, FrameValue]:
    """Return what names a trial, as columns."""
    return dict(zip(TRIAL_KEY, line.place, strict=True))


def trial_row(trial: Trial) -> dict[str, FrameValue]:
    """Return a trial as a row; nested fields are plain lists and dictionaries."""
    row = key_row(trial)
    for name in ("outcome", "value", "reason", "text", "finish", "template", "attempt", "cut_off"):
        row[name] = getattr(trial, name)
    for name in _RARE:
        if (value := getattr(trial, name)) not in (None, ()):
            row[name] = msgspec.to_builtins(value)
    return row


def score_row(score: TrialScore) -> dict[str, FrameValue]:
    """Return a score as a row.

    Parts, metrics of texts and scores by judge have columns of their own: `part:NAME`,
    `metric:NAME`, `judge:NAME`.
    """
    return key_row(score) | score_columns(score) | {"scorer": score.scorer}


def score_columns(score: TrialScore) -> dict[str, FrameValue]:
    """Return the columns of a score that stand beside its trial."""
    row: dict[str, FrameValue] = {"score": score.score, "because": score.because}
    named: tuple[tuple[str, Mapping[str, FrameValue]], ...] = (
        ("part", score.parts or {}),
        ("metric", score.measured),
        ("judge", score.judges),
    )
    for kind, values in named:
        row |= {f"{kind}:{name}": value for name, value in values.items()}
    return row


def verdict_row(verdict: StoredVerdict) -> dict[str, FrameValue]:
    """Return a verdict as a row; `replies` are the judge's texts, `body` what was read in them."""
    return key_row(verdict) | {
        "judge": verdict.judge,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "score": verdict.score,
        "grader": verdict.rubric,
        "attempt": verdict.attempt,
        "unsupported_quotes": verdict.unsupported_quotes,
        "body": verdict.body,
        "replies": verdict.replies,
    }


def item_row(item: Item) -> dict[str, FrameValue]:
    """Return an item as a row; `target` is what counts as right, as one line of text."""
    return {"domain": item.domain, "item": item.id} | item_columns(item)


def item_columns(item: Item) -> dict[str, FrameValue]:
    """Return the columns of an item that stand beside an answer to it."""
    return {
        "form": item.form,
        "question": item.question,
        "options": list(item.options) or None,
        "target": item.target_text,
        **{name: getattr(item, name) for name in _ITEM_TEXTS},
    }
