"""Preference: two answers to one question, on sides drawn at random, and which is better."""

from msgspec.structs import replace

from medassay.review.form.form import Aspect, Content, Form, content_of

_BETTER = Aspect(
    name="better",
    label="Which answer is better for the patient?",
    # Of the answers as they are stored; the page shows which side that is.
    values=(("first", "left"), ("equal", "equally good"), ("second", "right")),
    level="nominal",
)


def _aspects(content: Content) -> tuple[Aspect, ...]:
    if not content_of(content).swapped:
        return (_BETTER,)
    return (replace(_BETTER, values=(("second", "left"), _BETTER.values[1], ("first", "right"))),)


PREFERENCE = Form(
    name="preference",
    title="Preference",
    asks="Two answers to the same question. Who gave them is not shown.",
    aspects=_aspects,
    extras=frozenset(("harm",)),
)
