"""HealthBench: conversations with criteria that physicians wrote.

One JSON object a line: `prompt_id`, `prompt` (turns, the last one the user's), `rubrics`
(criterion, points, tags) and `example_tags`, of which the theme becomes the category. Earlier turns
of a conversation become the item's context, as text: here every model is asked one question.
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, find_file, read_records, rows_of
from medassay.core.records.item import Bank
from medassay.core.records.item_object import CriterionObject, ItemObject

DOMAIN = "healthbench"
_SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System"}


class Turn(msgspec.Struct):
    """What one of the two says."""

    role: str
    content: str


class Rubric(msgspec.Struct):
    """A criterion of a physician, with the points that it gives or takes."""

    criterion: str
    points: int | float
    tags: list[str]


class RatedConversation(msgspec.Struct):
    """One line of a published file."""

    prompt: list[Turn]
    prompt_id: str
    rubrics: list[Rubric]
    example_tags: list[str]


def load(root: Path) -> Bank:
    """Return HealthBench, in its original form or with judged answers beside it."""
    draft = BankBuilder(
        "healthbench",
        licence="MIT",
        source="HealthBench, Arora et al. (2025), arXiv:2505.08775",
        title="HealthBench",
        limits=(
            "Conversations are asked as one question; the canary of the original file is not kept."
        ),
    )
    path = find_file(root, "*healthbench*.jsonl", "*oss_eval*.jsonl", "judge_responses.jsonl")
    for row in rows_of(path, read_records(path), RatedConversation):
        if (record := record_of(row)) is None:
            draft.drop("no question or no criterion that gives points")
        else:
            draft.add(record)
    return draft.bank()


def record_of(row: RatedConversation) -> ItemObject | None:
    """Return the item of one line; None if it has no question of a user or nothing to reach."""
    criteria: list[CriterionObject] = [
        {
            "id": f"c{number}",
            "text": rubric.criterion,
            "points": rubric.points,
            "tags": list(rubric.tags),
        }
        for number, rubric in enumerate(row.rubrics, 1)
        if rubric.points
    ]
    reachable = any(rubric.points > 0 for rubric in row.rubrics)
    last_turn = row.prompt[-1] if row.prompt else Turn(role="", content="")
    is_question = last_turn.role == "user" and last_turn.content.strip()
    if not is_question or not reachable:
        return None
    themes = [tag.partition(":")[2] for tag in row.example_tags if tag.startswith("theme:")]
    item: ItemObject = {
        "id": row.prompt_id,
        "domain": DOMAIN,
        "answer_type": "open",
        "question": last_turn.content,
        "criteria": criteria,
    }
    earlier = (f"{_SPEAKERS.get(t.role, t.role)}: {t.content}" for t in row.prompt[:-1])
    if context := "\n\n".join(earlier):
        item |= {"context": context}
    if themes:
        item |= {"category": themes[0]}
    return item
