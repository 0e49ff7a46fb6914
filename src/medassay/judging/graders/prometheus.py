"""Prometheus: direct grading 1 to 5 by a rubric, given a reference answer; stored as (s − 1) / 4.

Source: specification of text metrics; Kim et al. (2024), doi:10.18653/v1/2024.emnlp-main.248. The
scale is inferred from published values, exact multiples of 1/80 on 20 documents.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.verdict import Case, Verdict, VerdictBody
from medassay.core.reply.thoughts import strip_thoughts
from medassay.core.scale import Scale
from medassay.judging.grader_text import GraderText, OneTextGrader
from medassay.judging.sanitize import delimit

RETRIES = 2
_PROMPT = GraderText("prometheus")
_RESULT = re.compile(r"\[RESULT\]\s*\(?\s*(\d+(?:\.\d+)?)", re.IGNORECASE)


def read_result(reply: str) -> int | None:
    """Return the grade 1 to 5 behind `[RESULT]`; None if there is none, or several that differ.

    Examples
    --------
    >>> read_result("Feedback: close, but a dose is absent. [RESULT] 4")
    4
    """
    grades = {float(value) for value in _RESULT.findall(strip_thoughts(reply)[0])}
    if len(grades) != 1:
        return None
    [grade] = grades
    return int(grade) if grade in (1, 2, 3, 4, 5) else None


class GradeBody(VerdictBody, frozen=True, kw_only=True):
    """A grade from 1 to 5."""

    grade: int


@dataclass(frozen=True, kw_only=True)
class Prometheus(OneTextGrader):
    """Judges one answer at a time; asks again, at most twice."""

    name: ClassVar[str] = "prometheus"
    body_type: ClassVar[type[VerdictBody]] = GradeBody
    revision: ClassVar[int] = 1
    scale: Scale = Scale()
    text: GraderText = _PROMPT

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the prompt, or the verdict once a reply holds a grade or the retries are used."""
        [case] = cases
        for reply in replies:
            if (grade := read_result(reply.text)) is not None:
                return [Verdict(valid=True, body=GradeBody(grade=grade))]
        if len(replies) > RETRIES:
            return [Verdict(valid=False, reason="no grade 1 to 5")]
        item = case.item
        question = f"{item.context}\n\n{item.question}" if item.context else item.question
        return self.text.prompt(
            item.id,
            item.language,
            question=question,
            answer=delimit(case.text, "response"),
            reference=item.reference or item.target_text,
        )

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return (grade − 1) / 4, in [0, 1]; None unless the verdict is valid."""
        return (verdict.body_as(GradeBody).grade - 1) / 4 if verdict.valid else None
