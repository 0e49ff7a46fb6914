"""Answer rating: a model's answer without the model's name.

Each target fact or criterion, and the answer as a whole.
"""

from medassay.review.form.form import Aspect, Content, Form, Value, comment_on_low, content_of

FACT: tuple[tuple[Value, str], ...] = (
    ("entail", "said"),
    ("missing", "missing"),
    ("contradict", "contradicted"),
)
CRITERION: tuple[tuple[Value, str], ...] = (("met", "met"), ("not met", "not met"))


def answer_aspects(content: Content) -> tuple[Aspect, ...]:
    """Return the aspects of an answer: its target facts or criteria one by one, then the whole."""
    asked = content_of(content)
    kinds = (
        ("fact", "Target fact", FACT, asked.facts),
        ("criterion", "Criterion", CRITERION, asked.criteria),
    )
    parts = [
        Aspect(
            name=f"{kind}-{part.id}",
            label=label,
            values=values,
            level="nominal",
            kind=kind,
            text=part.text,
        )
        for kind, label, values, parts_of_kind in kinds
        for part in parts_of_kind
    ]
    return (*parts, Aspect(name="overall", label="The answer as a whole"))


ANSWER = Form(
    name="answer",
    title="Answer rating",
    asks="How good is this answer? Who gave it is not shown.",
    aspects=answer_aspects,
    comment_needed=comment_on_low,
    extras=frozenset(("harm", "source")),
)
