"""`Dispute`, a number of a publication that somebody holds to be wrong: what was claimed, what was
checked, and what was decided, as the lines of a site's ledger say it.
"""

from typing import Literal

import msgspec

DECISIONS = ("upheld", "rejected", "withdrawn")


class DisputedThing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a claim is about: a model, an item or an answer of a publication; a publication as a
    whole where all are empty.

    Attributes
    ----------
    model : its id
    item : domain and id, `cardiology/item-7`
    answer : SHA-256 of its record
    page : where it is shown, relative to the publication
    """

    model: str = ""
    item: str = ""
    answer: str = ""
    page: str = ""

    @property
    def name(self) -> str:
        """Return it in words."""
        if self.answer:
            return f"an answer of {self.model} to {self.item}"
        if self.item:
            return f"item {self.item}"
        return self.model or "the publication as a whole"


WHOLE_PUBLICATION = DisputedThing()


class DisputeStep(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of a ledger says of a dispute.

    Attributes
    ----------
    step : `opened`, `answered` (what was checked) or `closed`
    dispute : its number on the site, from 1
    about, claim, by : of the opening
    checked : of an answer
    decision, reason, next : of the closing; `next` is the publication that holds the correction
    """

    step: Literal["opened", "answered", "closed"]
    dispute: int
    publication: str
    at: str
    about: DisputedThing = WHOLE_PUBLICATION
    claim: str = ""
    by: str = ""
    checked: str = ""
    decision: str = ""
    reason: str = ""
    next: str | None = None


class Dispute(msgspec.Struct):
    """A dispute with its steps, oldest first, each with the hash of its line in the ledger."""

    number: int
    publication: str
    steps: list[tuple[DisputeStep, str]] = msgspec.field(default_factory=list)

    @property
    def opening(self) -> DisputeStep:
        """Return the claim."""
        return self.steps[0][0]

    @property
    def closing(self) -> DisputeStep | None:
        """Return the decision, None while there is none."""
        last = self.steps[-1][0]
        return last if last.step == "closed" else None

    @property
    def state(self) -> str:
        """Return `open` or what was decided."""
        return "open" if self.closing is None else self.closing.decision
