"""Every form of the review app: one line each."""

from medassay.review.form.answer import ANSWER
from medassay.review.form.form import Form
from medassay.review.form.item import ITEM
from medassay.review.form.judged import JUDGED
from medassay.review.form.pair import PAIR
from medassay.review.form.preference import PREFERENCE

FORMS: dict[str, Form] = {
    "answer": ANSWER,
    "item": ITEM,
    "judge": JUDGED,
    "pair": PAIR,
    "preference": PREFERENCE,
}
