"""Approval: a judge says yes or no to an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.verdict import Case, SingleQuestionGrader, Verdict, VerdictBody
from medassay.core.scale import Scale
from medassay.judging.sanitize import delimit

_QUESTION = "Is this answer right? Say yes or no."


class ApprovalBody(VerdictBody, frozen=True, kw_only=True):
    """Whether the judge said yes."""

    approved: bool


@dataclass(frozen=True)
class Approval(SingleQuestionGrader):
    """One question, one word."""

    name: ClassVar[str] = "approval"
    revision: ClassVar[int] = 1
    body_type: ClassVar[type[VerdictBody]] = ApprovalBody
    prompts: ClassVar[tuple[str, ...]] = ("approval@test",)
    texts: ClassVar[tuple[bytes, ...]] = (_QUESTION.encode(),)
    batch: ClassVar[int] = 1
    scale: ClassVar[Scale] = Scale()
    alternatives: ClassVar[int] = 0
    spot_check: ClassVar[None] = None

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the question, or the verdict."""
        [case] = cases
        if replies:
            word = replies[0].text.strip().casefold().rstrip(".")
            if word not in ("yes", "no"):
                return [Verdict(valid=False, reason="neither yes nor no")]
            return [Verdict(valid=True, body=ApprovalBody(approved=word == "yes"))]
        messages = [{"role": "user", "content": f"{_QUESTION}\n{delimit(case.text, 'answer')}"}]
        return Prompt(
            item_id=case.item.id,
            messages=tuple(messages),
            encoded=canonical(messages),
            template=self.prompts[0],
        )

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return 1 for yes."""
        return float(verdict.body_as(ApprovalBody).approved) if verdict.valid else None
