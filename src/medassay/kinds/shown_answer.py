"""What pages of a board and of the viewer show of an answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from medassay.core.records.item_object import ItemObject
from medassay.core.records.sealed_object import TrialObject
from medassay.core.records.trial import Trial
from medassay.kinds.kind import AnswerView
from medassay.report.board import ShownPart

_ABSENT = dict.fromkeys(
    ("context", "question", "options", "expected", "range", "regex", "reference", "language")
)


def whole_item(record: ItemObject) -> Mapping[str, Any]:
    """Return an item's object with the keys that templates ask for, None where it has none."""
    return {**_ABSENT, **record}


def parts_shown(
    views: Sequence[AnswerView], item: ItemObject, trial: TrialObject
) -> list[ShownPart]:
    """Return what the kind of a run shows of an answer."""
    parts = []
    for view in views:
        if view.shows(item, trial) and (values := view.view(item, msgspec.convert(trial, Trial))):
            parts.append(ShownPart(view.template, values, view.replaces_reply))
    return parts
