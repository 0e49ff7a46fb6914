"""The score of one answer, as a run stores it."""

from collections.abc import Mapping
from typing import Any


def score_record(
    trial: Mapping[str, Any], score: float | None, because: str, scorer: str
) -> dict[str, Any]:
    """Return one line of scores.jsonl."""
    return {
        "schema_version": 1,
        "domain": trial["domain"],
        "model": trial["model"],
        "setting": trial["setting"],
        "mode": trial["mode"],
        "item": trial["item"],
        "repeat": trial["repeat"],
        "score": score,
        "because": because,
        "scorer": scorer,
    }
