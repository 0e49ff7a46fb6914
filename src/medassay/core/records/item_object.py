"""`ItemObject`: an item as the JSON object that a bank file, a run or a workshop holds.

The object itself is what is hashed, copied and published: a key that is absent stays absent, and
keys that this version does not know stay where they are. So it remains a dictionary, and these
types name its keys for whoever reads or writes them. They are true of objects that
`bank/check.py` has let through.
"""

from collections.abc import Mapping
from typing import Any, Required, TypedDict


class FactObject(TypedDict, total=False):
    """One statement that a complete open answer contains."""

    id: str
    text: Required[str]
    weight: float


class CriterionObject(TypedDict, total=False):
    """One line of a rubric with its points."""

    id: str
    text: Required[str]
    points: Required[float]
    tags: list[str]
    harm: bool


class RangeObject(TypedDict):
    """Accepted numbers, both ends included."""

    lo: float
    hi: float


class ApprovalObject(TypedDict):
    """Who approved an item, and on which day (`2026-11-25`)."""

    who: str | None
    when: str


class OriginObject(TypedDict, total=False):
    """Where a reference record comes from."""

    standing: Required[str]
    maker: Required[str]
    family: str
    prompt_sha256: str
    converted: bool


class ItemObject(TypedDict, total=False):
    """The keys of an item, or some of them: of a draft, or of a change of one.

    A whole item has `id` and `domain`; which others follows from its target.
    """

    id: str
    domain: str
    revision: int
    kind: str
    answer_type: str
    question: str
    context: str
    language: str
    split: str
    source: str
    licence: str
    category: str
    condition: str
    path: str
    leaf: str
    year: int
    difficulty: str
    cluster: str
    rationale: str
    review_date: str
    harm: bool
    meta: dict[str, object]
    approval: ApprovalObject
    nice_to_have: list[str]
    # Keys of targets
    options: list[str]
    expected: str
    regex: str
    range: RangeObject
    extract: str
    locale: str
    reference: str
    facts: list[FactObject | str]
    criteria: list[CriterionObject]
    diagnoses: list[str]
    severity: str
    record: Mapping[str, Any] | None
    origin: OriginObject
    drug_names: dict[str, list[str]]
    commitment: str
    tombstone: str
    lowest: float
    form: str
