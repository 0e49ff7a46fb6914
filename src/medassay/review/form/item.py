"""Item review: question, answer and pathway from 1 to 5, with the total, corrections and harm.

Source: specification of bank synthesis, 10.2.
"""

from collections.abc import Mapping

from medassay.review.form.form import Aspect, Content, Form, Value, content_of
from medassay.review.rating import FEEDBACK_BELOW

_LABELS = {
    "question": "Question: clear, sensible, complete",
    "answer": "Answer: right and the only right one",
    "path": "Reasoning path: medically right, leads to the answer",
}


def _aspects(content: Content) -> tuple[Aspect, ...]:
    """Return question and answer, and the path where the entry has one."""
    names = ("question", "answer", "path") if content_of(content).path else ("question", "answer")
    return tuple(Aspect(name=name, label=_LABELS[name]) for name in names)


def _comment_needed(scores: Mapping[str, Value]) -> str:
    low = any(isinstance(score, int) and score < FEEDBACK_BELOW for score in scores.values())
    return "A score is below 3: say what is wrong." if low else ""


ITEM = Form(
    name="item",
    title="Item review",
    asks="Is this question fit to test a model?",
    aspects=_aspects,
    comment_needed=_comment_needed,
    extras=frozenset(("total", "correction", "harm", "source", "marks")),
)
