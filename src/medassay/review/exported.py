"""A closed review study as it is exported, for whoever reads it: see
`review/store/frozen.py: export_document`, which writes it.
"""

from typing import Any

import msgspec

from medassay.core.records.item_line import Statement
from medassay.core.records.trial import TrialLine
from medassay.errors import IntegrityError
from medassay.review.stored import HiddenPart, NamedReviewer


class ShownContent(msgspec.Struct, frozen=True, kw_only=True):
    """What reviewers saw of an answer, as far as labels are made of it."""

    facts: list[Statement] = []
    criteria: list[Statement] = []
    reference: str | None = None
    shown_answer: str = ""

    @property
    def reference_text(self) -> str:
        """Return the reference answer, else the target facts as one text."""
        return self.reference or " ".join(fact.text for fact in self.facts)


class ExportedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry: what reviewers saw, and what was hidden from them."""

    number: int
    item: str
    category: str = ""
    iteration: str = ""
    training: bool = False
    withdrawn: str | None = None
    content: ShownContent
    hidden: HiddenPart = HiddenPart()

    @property
    def trial(self) -> TrialLine:
        """Return what names the answer that was reviewed.

        Raises
        ------
        IntegrityError
            When nothing does.
        """
        if self.hidden.trial is None:
            raise IntegrityError(f"study: entry {self.number} names no answer")
        return self.hidden.trial

    @property
    def parts(self) -> list[str]:
        """Return the names of what is labelled one by one: facts and criteria."""
        return [
            *(f"fact-{fact.id}" for fact in self.content.facts),
            *(f"criterion-{criterion.id}" for criterion in self.content.criteria),
        ]


class ExportedReview(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of what a reviewer said of an entry; `review` by the form of the study."""

    entry: int
    reviewer: str
    revision: int = 0
    latest: bool
    complete: bool = True
    submitted_at: str | None = None
    reason: str = ""
    review: dict[str, Any]

    @property
    def own_scores(self) -> dict[str, Any]:
        """Return the reviewer's own rating: of a judge check the part before the verdict was
        shown.
        """
        scores: dict[str, Any] = self.review.get("own", self.review)["scores"]
        return scores


class ExportedForm(msgspec.Struct, frozen=True, kw_only=True):
    """The study itself."""

    name: str
    form: str
    overlap: int


class FrozenPart(msgspec.Struct, frozen=True, kw_only=True):
    """What closing froze under a hash."""

    study: ExportedForm
    reviewers: list[NamedReviewer] = []
    entries: list[ExportedEntry]
    reviews: list[ExportedReview]

    @property
    def counted_entries(self) -> dict[int, ExportedEntry]:
        """Return the entries by number, without those for training and those withdrawn."""
        return {
            entry.number: entry
            for entry in self.entries
            if not entry.training and entry.withdrawn is None
        }


class ExportedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a ticket; `scores` are the final values that an adjudicator gave."""

    verb: str
    scores: dict[str, Any] | None = None


class ExportedTicket(msgspec.Struct, frozen=True, kw_only=True):
    """Feedback on an entry, and what became of it."""

    entry: int
    state: str
    steps: list[ExportedStep]


class ExportedStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A closed study, with what became of its tickets."""

    frozen: FrozenPart
    tickets: list[ExportedTicket] = []
