"""HealthBench: conversations with criteria that physicians wrote.

One JSON object a line: `prompt_id`, `prompt` (turns, the last one the user's), `rubrics`
(criterion, points, tags) and `example_tags`, of which the theme becomes the category. Earlier turns
of a conversation become the item's context, as text: here every model is asked one question.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medassay.bank.builder import BankBuilder, find_file, need_columns, read_records
from medassay.core.records.item import Bank
from medassay.core.records.item_object import CriterionObject, ItemObject
from medassay.errors import InputError

DOMAIN = "healthbench"
_COLUMNS = {"prompt", "prompt_id", "rubrics", "example_tags"}
_SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System"}


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
    for number, row in enumerate(read_records(path), 1):
        need_columns(path, row, _COLUMNS)
        try:
            record = record_of(row)
        except (AttributeError, LookupError, TypeError, ValueError):
            raise InputError(
                f"{path.name} record {number}: expected prompt (turns with role and content) and "
                "rubrics (criterion, points, tags)"
            ) from None
        if record is None:
            draft.drop("no question or no criterion that gives points")
        else:
            draft.add(record)
    return draft.bank()


def record_of(row: Mapping[str, Any]) -> ItemObject | None:
    """Return the item of one line; None if it has no question of a user or nothing to reach.

    Raises
    ------
    KeyError, TypeError, ValueError
        Where the line has another form.
    """
    turns = [(_text(turn["role"]), _text(turn["content"])) for turn in row["prompt"]]
    criteria: list[CriterionObject] = [
        {
            "id": f"c{number}",
            "text": _text(rubric["criterion"]),
            "points": rubric["points"],
            "tags": [_text(tag) for tag in rubric["tags"]],
        }
        for number, rubric in enumerate(row["rubrics"], 1)
        if rubric["points"]
    ]
    reachable = any(c["points"] > 0 for c in criteria)
    if not turns or turns[-1][0] != "user" or not turns[-1][1].strip() or not reachable:
        return None
    themes = [tag.partition(":")[2] for tag in row["example_tags"] if tag.startswith("theme:")]
    earlier = "\n\n".join(f"{_SPEAKERS.get(who, who)}: {text}" for who, text in turns[:-1])
    item: ItemObject = {
        "id": _text(row["prompt_id"]),
        "domain": DOMAIN,
        "answer_type": "open",
        "question": turns[-1][1],
        "criteria": criteria,
    }
    if earlier:
        item |= {"context": earlier}
    if themes:
        item |= {"category": themes[0]}
    return item


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value
