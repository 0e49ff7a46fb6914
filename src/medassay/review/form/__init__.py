"""The forms that people fill in: what is asked of an entry, and what makes a review."""

from medassay.review.form.catalog import FORMS
from medassay.review.form.form import (
    MARKS,
    SEVERITIES,
    Aspect,
    Form,
    Problem,
    clean,
    read_review,
)

__all__ = [
    "FORMS",
    "MARKS",
    "SEVERITIES",
    "Aspect",
    "Form",
    "Problem",
    "clean",
    "read_review",
]
