"""What a row of a run on health records tells besides its rank."""

import msgspec

from medassay.core.records.estimate import Estimate
from medassay.core.records.statistics import LeaderboardRow


class GraphEstimates(msgspec.Struct, frozen=True, kw_only=True):
    """The mean score by one judge graph, and that of each branch."""

    score: Estimate | None = None
    branches: dict[str, Estimate | None] = {}


class ReferenceOrigins(msgspec.Struct, frozen=True, kw_only=True):
    """How many references people wrote (gold), a model wrote (silver), were converted from the
    published Markdown, or were written by a model of the tested one's family.
    """

    gold: int
    silver: int
    converted: int = 0
    of_own_family: int = 0


class DrugCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Drugs over all answers.

    Attributes
    ----------
    stopped, changed : that were stopped, or have a new dose
    matched : stopped ones that a reply lists somewhere
    as_current : of these, those listed as current; `perhaps` where the reply leaves it open
    old_dose : listed as current with the dose that they had
    dose_agree, dose_compared : of each detail in how many both records agree, of how many that have
        it in both
    """

    stopped: int
    matched: int
    as_current: int
    perhaps: int
    changed: int
    old_dose: int
    dose_agree: int
    unit_agree: int
    route_agree: int
    schedule_agree: int
    dose_compared: int
    unit_compared: int
    route_compared: int
    schedule_compared: int

    def compared(self, detail: str) -> int:
        """Return how many drugs have a detail in both records."""
        n: int = getattr(self, f"{detail}_compared")
        return n


class RecordCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Drugs by the list they stand in, and leaves, over all answers; earlier versions did not count
    leaves.
    """

    correct: int
    total: int
    stopped_as_current: int
    lost: int
    invented: int
    leaves: int = 0
    missing: int = 0
    extra: int = 0


class DrugEstimates(msgspec.Struct, frozen=True, kw_only=True):
    """How details of drugs agree that reply and reference have in common, and what was counted."""

    dose: Estimate | None = None
    unit: Estimate | None = None
    route: Estimate | None = None
    schedule: Estimate | None = None
    going_on: Estimate | None = None
    counted: DrugCounts

    def estimate(self, name: str) -> Estimate | None:
        """Return the estimate of one detail by its name."""
        estimate: Estimate | None = getattr(self, name)
        return estimate


class RecordColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a row; those of leaves and drugs are absent in runs of before they were told.

    Attributes
    ----------
    similarity, medication, read, characters, as_published : see `core/records/health_record.py`
    sections, fields : likeness of each
    counted : drugs and leaves over all answers
    """

    similarity: Estimate | None = None
    medication: Estimate | None = None
    read: Estimate | None = None
    characters: Estimate | None = None
    as_published: Estimate | None = None
    precision: Estimate | msgspec.UnsetType | None = msgspec.UNSET
    f1: Estimate | None = None
    lost_leaves: Estimate | None = None
    invented_leaves: Estimate | None = None
    sections: dict[str, Estimate] = {}
    fields: dict[str, Estimate] = {}
    graphs: dict[str, GraphEstimates] = {}
    counted: RecordCounts
    references: ReferenceOrigins
    drugs: DrugEstimates | None = None

    @property
    def tells_leaves(self) -> bool:
        """Return whether what is lost and invented was counted."""
        return self.precision is not msgspec.UNSET

    def estimate(self, name: str) -> Estimate | None:
        """Return one of the numbers of the whole record by its name."""
        estimate = getattr(self, name)
        return estimate or None


class RecordRow(LeaderboardRow, frozen=True, kw_only=True):
    """A row with what it tells of health records."""

    record: RecordColumns
