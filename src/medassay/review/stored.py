"""What the database of reviews holds as JSON, as records for reading."""

from typing import Any

import msgspec

from medassay.core.records.trial import TrialLine


class StudySource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the entries of a study are from; "" where that is not of its kind.

    Attributes
    ----------
    bank, version : of items of a bank
    private_run, publication : places of a run with private items, and of what was published of it
    """

    bank: str = ""
    version: str = ""
    private_run: str = ""
    publication: str = ""


class NamedReviewer(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer of a closed study under a pseudonym, as they were when it was closed."""

    reviewer: str
    qualification: str = ""


class StoredSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator chose of a study; see `StudySettings`, which is stored."""

    least_all: float = 0.7
    again_months: int = 12
    source: StudySource = StudySource()
    reviewers: list[NamedReviewer] = []


class ReviewContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer said of an entry, whatever its form.

    Attributes
    ----------
    scores : by aspect; None where it could not be judged
    correction : the right option, or the right answer as text
    harm : what harm was seen, and how severe
    own : of a judge check, one's own rating from before the verdict was shown
    """

    scores: dict[str, Any]
    comment: str = ""
    correction: dict[str, str] = {}
    harm: dict[str, str] | None = None
    source: str = ""
    own: "ReviewContent | None" = None


class HiddenScale(msgspec.Struct, frozen=True, kw_only=True):
    """The ends of the scale of an answer's score."""

    lo: float | None = None
    hi: float | None = None


class HiddenPart(msgspec.Struct, frozen=True, kw_only=True):
    """What reviewers are not shown of an entry.

    Attributes
    ----------
    revision, forms : of the item, and of its other forms by their ids
    trial : of the answer that is reviewed
    scale : of the answer's score; of a judge's verdict it stands in `verdict`
    training : what an entry for training teaches once it is answered
    """

    revision: int = 1
    forms: dict[str, int] = {}
    trial: TrialLine | None = None
    scale: HiddenScale | None = None
    verdict: HiddenScale | None = None
    training: dict[str, Any] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Return the ends of the scale, 0 and 1 where nothing is said of it."""
        scale = self.scale or self.verdict or HiddenScale()
        return (
            0.0 if scale.lo is None else scale.lo,
            1.0 if scale.hi is None else scale.hi,
        )
