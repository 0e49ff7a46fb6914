"""What steps of a workshop make, as records. The journal holds them as JSON.

A field that is `UNSET` is absent there.
"""

import msgspec
from msgspec import UNSET, UnsetType

from medassay.core.records.target import LETTERS


class ItemDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A private item as a model drafts it: a quiz has `options`, an open question `facts`."""

    question: str
    answer: str
    sources: list[str]
    options: list[str] | UnsetType = UNSET
    facts: list[str] | UnsetType = UNSET


class DraftIssue(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer finds wrong in a draft, by which criterion."""

    criterion: str
    text: str

    def __str__(self) -> str:
        return f"{self.criterion}: {self.text}"


class DraftVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a reviewer accepts a draft, would have it revised, or rejects it, and why."""

    verdict: str
    issues: list[DraftIssue]


class OpenVersion(msgspec.Struct, frozen=True, kw_only=True):
    """An exam question as an open one, where there can be one."""

    convertible: bool
    question: str | UnsetType = UNSET


class VersionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The number of the better version, from 1; 0 for none."""

    choice: int
    reason: str = ""


class OnlyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a key is the only right answer, and what else would be right."""

    only: bool
    other: list[str] = []


class CorrectableFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of an item that a correction may change; `path` where it has one."""

    question: str
    options: list[str]
    expected: str
    path: str | UnsetType | None = UNSET

    @property
    def right(self) -> str:
        """Return the option that is right."""
        return self.options[LETTERS.index(self.expected)]

    @property
    def pathway(self) -> str:
        """Return the path, "" where there is none."""
        return self.path or ""


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """A review of an item, and the item as it would stand after the change.

    Attributes
    ----------
    sense, key_right, path_right : whether the question makes sense, and key and pathway are right
    also_right : letters of other right options
    guidelines, issues : what the review goes by, and what it found
    types : of the change, keys of `correction.TYPES`
    """

    sense: bool
    key_right: bool
    path_right: bool
    also_right: list[str]
    guidelines: list[str]
    issues: list[str]
    types: list[int]
    reasons: str
    after: CorrectableFields


class PlannedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a plan names; `scripted` where a script answers in its stead."""

    family: str
    provider: str = ""
    scripted: bool = False


class PlannedBank(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says of the bank to be made; of corrections also the folder of the bank."""

    name: str
    maker: str = ""
    bank: str = ""
    title: str = ""
    licence: str = "unstated"
    limits: str = ""
    may_leave: bool = False


class PlanNote(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a workshop as its journal holds it."""

    plan: PlannedBank
    models: dict[str, PlannedModel] = {}


class SourceNote(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a source: a document with the date at which it was made, or a bank."""

    made: str | None = None
    may_leave: bool = True
    limits: str = ""
    bank: str = ""


class ItemRevision(msgspec.Struct, frozen=True, kw_only=True):
    """The revision of an item in a version of a bank, with the hash of its content."""

    revision: int
    content: str


class ReleaseNote(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a bank, with the ids and revisions of its items."""

    version: str
    content_sha256: str
    items: list[str]
    revisions: dict[str, ItemRevision] = {}
