"""The parts of the score of one reply that should be a health record, for reading; see
`scorer.record_parts`, which makes them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from medassay.core.json import record_as


class DrugParts(msgspec.Struct, frozen=True, kw_only=True):
    """What `medication.medication_details` counts in one reply.

    Attributes
    ----------
    agree, compared : by detail (dose, unit, route, schedule)
    going_on : share of stopped drugs and doses that are listed as current
    """

    agree: dict[str, int]
    compared: dict[str, int]
    stopped: int
    matched: int
    as_current: int
    perhaps: int
    changed: int
    old_dose: int
    going_on: float | None = None


class ReferenceParts(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the reference is gold or silver, and which model wrote a silver one."""

    standing: str
    converted: bool = False
    maker: str = ""
    family: str = ""


class GraphScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one answer by a judge graph, and that of each branch."""

    score: float | None
    branches: dict[str, float | None] = {}


class RecordParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one score; of a report without a reference only `read` and `characters`.

    Attributes
    ----------
    read : whether the reply is a record in JSON and nothing else
    similarity, as_published, sections, fields : likenesses, 0 to 1
    leaves, missing, extra : leaves of the reference, those lost, and those invented
    correct, total : drugs in the right list, and drugs expected
    stopped_as_current, lost, invented : drugs
    drugs : absent in scores of before details of drugs were compared
    """

    read: bool = False
    characters: int = 0
    reference: ReferenceParts | None = None
    similarity: float | None = None
    as_published: float | None = None
    sections: dict[str, float | None] = {}
    fields: dict[str, float | None] = {}
    leaves: int = 0
    missing: int = 0
    extra: int = 0
    correct: int = 0
    total: int = 0
    stopped_as_current: int = 0
    lost: int = 0
    invented: int = 0
    drugs: DrugParts | None = None
    graphs: dict[str, GraphScore] = {}

    @property
    def medication(self) -> float | None:
        """Return the share of drugs in the right list, None where none is expected."""
        return self.correct / self.total if self.total else None

    @property
    def going_on(self) -> bool:
        """Return whether anything that was stopped is listed as current."""
        drugs = self.drugs
        by_details = drugs is not None and (drugs.as_current or drugs.old_dose)
        return bool(self.stopped_as_current or by_details)


def parts_of(parts: Mapping[str, Any] | None) -> RecordParts | None:
    """Return the parts of a score as a record, None where there are none.

    Raises
    ------
    IntegrityError
        Naming the part that is wrong.
    """
    where = "scores.jsonl: parts of a health record"
    return record_as(parts, RecordParts, where) if parts else None
