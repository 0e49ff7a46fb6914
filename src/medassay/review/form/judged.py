"""Judge check: first one's own rating of an answer, then whether a judge's verdict on it holds.

Both are kept.
"""

from collections.abc import Mapping

from medassay.review.form.answer import answer_aspects
from medassay.review.form.form import Aspect, Form, Value

_AGREE = Aspect(
    name="agree",
    label="Is the judge's verdict right?",
    values=(("yes", "yes"), ("partly", "partly"), ("no", "no")),
    level="nominal",
)


def _comment_needed(scores: Mapping[str, Value]) -> str:
    wrong = scores.get("agree") in ("partly", "no")
    return "Say what the judge got wrong." if wrong else ""


JUDGED = Form(
    name="judge",
    title="Judge check",
    asks="Rate the answer yourself; then you see what the judge said.",
    aspects=answer_aspects,
    comment_needed=_comment_needed,
    extras=frozenset(("harm",)),
    then=(_AGREE,),
)
