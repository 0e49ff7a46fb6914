"""Item review: question, answer and pathway from 1 to 5, with the total, corrections and harm.

Source: specification of bank synthesis, 10.2.
"""

from medassay.review.form.form import Aspect, Content, Form, comment_on_low, content_of

_LABELS = {
    "question": "Question: clear, sensible, complete",
    "answer": "Answer: right and the only right one",
    "path": "Reasoning path: medically right, leads to the answer",
}


def _aspects(content: Content) -> tuple[Aspect, ...]:
    """Return question and answer, and the path where the entry has one."""
    names = ("question", "answer", "path") if content_of(content).path else ("question", "answer")
    return tuple(Aspect(name=name, label=_LABELS[name]) for name in names)


ITEM = Form(
    name="item",
    title="Item review",
    asks="Is this question fit to test a model?",
    aspects=_aspects,
    comment_needed=comment_on_low,
    extras=frozenset(("total", "correction", "harm", "source", "marks")),
)
