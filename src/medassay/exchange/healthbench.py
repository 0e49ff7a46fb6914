"""HealthBench results of others: stored criterion verdicts → scores, overall and by tag.

A file has one JSON object a line: `prompt_id`, `example_tags`, `responses` (a list, or its text: for each
criterion `points`, `tags` and the judge's `criteria_met`), as the HealthBench evaluation writes it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medassay.errors import InputError
from medassay.score.rubric import rubric_points
from medassay.storage.jsonl import read_jsonl


@dataclass(frozen=True, kw_only=True)
class RubricScore:
    """One answer: its score over all criteria, and over the criteria of each tag that can be met."""

    id: str
    tags: tuple[str, ...]
    score: float
    by_tag: dict[str, float]


def read_healthbench(path: Path) -> Iterator[RubricScore]:
    """Yield the score of every answer in a file of criterion verdicts.

    Raises
    ------
    InputError
        Naming the row that is not of this form.
    """
    for number, row in enumerate(read_jsonl(path), 1):
        where = f"{path.name} row {number}"
        try:
            judged = _listed(row["responses"])
            criteria = [{"points": c["points"], "tags": c["tags"]} for c in judged]
            met = [bool(c["response_dict"]["criteria_met"]) for c in judged]
            name, tags = str(row["prompt_id"]), tuple(row["example_tags"])
        except (KeyError, TypeError, ValueError, SyntaxError, RecursionError):
            raise InputError(
                f"{where}: expected prompt_id, example_tags and responses with points, tags and "
                "response_dict.criteria_met"
            ) from None
        yield RubricScore(
            id=name,
            tags=tags,
            score=rubric_points(criteria, met),
            by_tag=dict(_by_tag(criteria, met)),
        )


def _listed(given: Any) -> Any:
    """Return a list that may be written as text: published files hold Python literals."""
    return ast.literal_eval(given) if isinstance(given, str) else given


def _by_tag(criteria: list[dict[str, Any]], met: list[bool]) -> Iterator[tuple[str, float]]:
    for tag in sorted({tag for c in criteria for tag in c["tags"]}):
        chosen = [(c, yes) for c, yes in zip(criteria, met, strict=True) if tag in c["tags"]]
        if any(c["points"] > 0 for c, _ in chosen):
            yield tag, rubric_points([c for c, _ in chosen], [yes for _, yes in chosen])
