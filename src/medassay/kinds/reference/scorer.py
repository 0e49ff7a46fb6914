"""Likeness of an answer to the reference of its item."""

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.score.text import chrf, text_likeness


def likeness_to_reference(item: Item, answer: Answer) -> tuple[float, str]:
    """Return chrF of an answer and the item's reference text.

    Of the metrics that need no model it agrees best with people on what a summary leaves out, see
    `study metrics`.
    """
    return chrf(answer.value or "", item.reference_text), "chrf"


def likeness_parts(item: Item, answer: Answer, text: str) -> dict[str, dict[str, float]]:
    """Return every metric of words under the key `text`; {} without an answer."""
    if answer.value is None:
        return {}
    return {"text": text_likeness(answer.value, item.reference_text)}
