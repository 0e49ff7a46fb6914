"""Pair check: an original and what was derived from it, side by side.

Right or not, with the reason if not.

Source: specification of bank synthesis, 10.4 (binary review by at least three evaluators).
"""

from collections.abc import Mapping

from medassay.review.form.form import Aspect, Form, Value

_CORRECT = Aspect(
    name="correct",
    label="Does the derived text say the same, correctly?",
    values=(("yes", "yes"), ("no", "no")),
    level="nominal",
)


def _comment_needed(scores: Mapping[str, Value]) -> str:
    return "Say what is not correct." if scores.get("correct") == "no" else ""


PAIR = Form(
    name="pair",
    title="Pair check",
    asks="Is what was derived as right as the original?",
    aspects=lambda content: (_CORRECT,),
    comment_needed=_comment_needed,
)
