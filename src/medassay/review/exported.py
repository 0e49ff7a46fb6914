"""A closed review study as it is exported, for whoever reads it: see
`review/store/frozen.py: export_document`, which writes it.
"""

from typing import Any

import msgspec


class ExportedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry: what reviewers saw, and what was hidden from them."""

    number: int
    item: str
    category: str = ""
    iteration: str = ""
    training: bool = False
    withdrawn: str | None = None
    content: dict[str, Any]
    hidden: dict[str, Any] = {}

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Return the target facts that reviewers labelled."""
        facts: list[dict[str, Any]] = self.content.get("facts", [])
        return facts

    @property
    def parts(self) -> list[str]:
        """Return the names of what is labelled one by one: facts and criteria."""
        criteria = self.content.get("criteria", ())
        return [
            *(f"fact-{fact['id']}" for fact in self.facts),
            *(f"criterion-{criterion['id']}" for criterion in criteria),
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


class ExportedReviewer(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer under a pseudonym."""

    reviewer: str
    qualification: str = ""


class ExportedForm(msgspec.Struct, frozen=True, kw_only=True):
    """The study itself."""

    name: str
    form: str
    overlap: int


class FrozenPart(msgspec.Struct, frozen=True, kw_only=True):
    """What closing froze under a hash."""

    study: ExportedForm
    reviewers: list[ExportedReviewer] = []
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
