"""`Rerun`: how a run with fresh calls differs from the stored one."""

import msgspec


class RerunOf(msgspec.Struct, frozen=True, kw_only=True):
    """The run whose models were asked again."""

    run: str
    root: str


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """What may differ: the share of closed trials of a cell that must be the same, and how far its
    mean may lie off, of the width of the scale.
    """

    identical: float
    points: float


class RerunCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of both runs.

    Attributes
    ----------
    identical, same_text : trials with the same reading and score, and with the same words
    old, old_ends, new, new_ends : mean scores with their intervals, None without scores
    within : whether the cell lies within tolerance
    metric : of its scores, where the run has several
    """

    domain: str
    model: str
    setting: str
    mode: str
    trials: int
    identical: int
    same_text: int
    old: float | None
    old_ends: tuple[float, float] | None = None
    new: float | None
    new_ends: tuple[float, float] | None = None
    within: bool
    metric: str | msgspec.UnsetType = msgspec.UNSET


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """How the trials of two runs differ, cell by cell."""

    schema_version: int = 1
    of: RerunOf
    tolerance: Tolerance
    differing: int
    trials: int
    within: bool
    cells: list[RerunCell]

    @property
    def beyond(self) -> list[RerunCell]:
        """Return the cells that leave the tolerance."""
        return [cell for cell in self.cells if not cell.within]
