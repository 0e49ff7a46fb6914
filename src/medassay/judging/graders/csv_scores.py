"""Replies of G-Eval: a CSV of integer scores by id, read strictly.

Source: specification of G-Eval, "Reply rules".
"""

import csv
import re
from collections.abc import Sequence

from medassay.core.reply.thoughts import strip_thoughts

BEST = 10
_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)


def read_scores(reply: str, ids: Sequence[str]) -> dict[str, int]:
    """Return id → score for the ids that a CSV reply scores validly; the others are asked again.

    Valid is an integral value from 0 to 10. Nothing is clamped or rounded; an id with two different
    scores has none; rows may come in any order; unknown ids are ignored.
    """
    text = _FENCE.sub("", strip_thoughts(reply)[0]).strip()
    try:
        rows = list(csv.reader(text.replace("\0", "").splitlines()[:10_000]))
    except csv.Error:  # a field beyond all measure
        return {}
    header = next(
        (n for n, row in enumerate(rows) if {"question_id", "score"} <= {c.strip() for c in row}),
        None,
    )
    if header is None:
        return {}
    names = [cell.strip() for cell in rows[header]]
    at, value = names.index("question_id"), names.index("score")
    scores_by_id: dict[str, set[int | None]] = {}
    for row in rows[header + 1 :]:
        if len(row) > max(at, value) and row[at].strip() in ids:
            scores_by_id.setdefault(row[at].strip(), set()).add(integral(row[value]))
    single = {name: next(iter(scores)) for name, scores in scores_by_id.items() if len(scores) == 1}
    return {name: score for name, score in single.items() if score is not None}


def integral(text: str) -> int | None:
    """Return the integer 0 to 10 that a text is ("7", "7.0"), None for anything else."""
    match = re.fullmatch(r"\s*(\d{1,2})(?:\.0+)?\s*", text, re.ASCII)
    return int(match[1]) if match and int(match[1]) <= BEST else None
