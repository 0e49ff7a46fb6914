"""The worth of one answer: as a scorer gives it, and as a run stores it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from medassay.core.records.sealed_object import ScoreObject
from medassay.core.records.trial import TrialKey, TrialLine


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Worth of one answer on its scorer's scale, or None when nobody can know it.

    `parts` are numbers that the scorer gives besides.
    """

    item_id: str
    value: float | None
    because: str
    parts: Mapping[str, float | None] = msgspec.field(default_factory=dict)


class TrialScore(TrialLine, frozen=True, kw_only=True):
    """A line of scores.jsonl, for reading: it is never written again.

    Attributes
    ----------
    domain, model, setting, mode, item, repeat : what names the trial
    because : why the score is what it is
    scorer : which scorer gave it
    score : None where nobody can know it
    parts : numbers besides the score, by name; what they are follows from the kind of the item
    measured : values of metrics of texts, by column; None where a metric has no value
    judges : score by each judge
    """

    score: float | None
    because: str = ""
    scorer: str = ""
    parts: dict[str, Any] | None = None
    measured: dict[str, float | None] = msgspec.field(default_factory=dict)
    judges: dict[str, float | None] = msgspec.field(default_factory=dict)


def score_record(place: TrialKey, score: float | None, because: str, scorer: str) -> ScoreObject:
    """Return one line of scores.jsonl."""
    domain, model, setting, mode, item, repeat = place
    return {
        "schema_version": 1,
        "domain": domain,
        "model": model,
        "setting": setting,
        "mode": mode,
        "item": item,
        "repeat": repeat,
        "score": score,
        "because": because,
        "scorer": scorer,
    }
