"""Answer rating: a model's answer without the model's name.

Each target fact or criterion, and the answer as a whole.
"""

from collections.abc import Mapping

from medassay.review.form.form import Aspect, Content, Form, Value, content_of
from medassay.review.rating import FEEDBACK_BELOW

FACT: tuple[tuple[Value, str], ...] = (
    ("entail", "said"),
    ("missing", "missing"),
    ("contradict", "contradicted"),
)
CRITERION: tuple[tuple[Value, str], ...] = (("met", "met"), ("not met", "not met"))


def answer_aspects(content: Content) -> tuple[Aspect, ...]:
    """Return the aspects of an answer: its target facts or criteria one by one, then the whole."""
    asked = content_of(content)
    parts = [
        Aspect(
            name=f"fact-{fact.id}",
            label="Target fact",
            values=FACT,
            level="nominal",
            kind="fact",
            text=fact.text,
        )
        for fact in asked.facts
    ]
    parts += [
        Aspect(
            name=f"criterion-{criterion.id}",
            label="Criterion",
            values=CRITERION,
            level="nominal",
            kind="criterion",
            text=criterion.text,
        )
        for criterion in asked.criteria
    ]
    return (*parts, Aspect(name="overall", label="The answer as a whole"))


def _comment_needed(scores: Mapping[str, Value]) -> str:
    overall = scores.get("overall")
    low = isinstance(overall, int) and overall < FEEDBACK_BELOW
    return "A score is below 3: say what is wrong." if low else ""


ANSWER = Form(
    name="answer",
    title="Answer rating",
    asks="How good is this answer? Who gave it is not shown.",
    aspects=answer_aspects,
    comment_needed=_comment_needed,
    extras=frozenset(("harm", "source")),
)
