"""The score that came with a finished prediction (imports); it cannot be recomputed here."""

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item


def imported_score(item: Item, answer: Answer) -> tuple[float, str]:
    """Return the given score, which the import checked against the scale."""
    return float(answer.value or "nan"), "given"
