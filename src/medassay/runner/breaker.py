"""When a model is given up for this start: its endpoint does not answer, and asking on would take
days or money for nothing.
"""

import time
from collections.abc import Callable

import msgspec

from medassay.core.records.plan import EngineRules


class RecentEnds(msgspec.Struct, frozen=True):
    """How requests of one model ended lately, in the order in which they ended.

    Parameters
    ----------
    succeeded : whether any succeeded
    failed : failures since then, without those by which a server asks for patience
    patient : failures since then by which it does: 429, 503, and others with a Retry-After
    last : what the last failure said
    """

    succeeded: bool = False
    failed: int = 0
    patient: int = 0
    last: str = ""

    def then(self, later: "RecentEnds") -> "RecentEnds":
        """Return this row with another one behind it."""
        if later.succeeded:
            return later
        failed, patient = self.failed + later.failed, self.patient + later.patient
        return RecentEnds(self.succeeded, failed, patient, later.last or self.last)


SUCCESS = RecentEnds(succeeded=True)


class CircuitBreaker:
    """Counts the requests of one model that failed in a row, of whatever item.

    It breaks after `give_up_after` of them, or once the row has lasted `give_up_minutes`: a burst
    of refusals, or a server that is still loading its weights, ends nothing within that time.
    """

    def __init__(self, rules: EngineRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock
        self._row = RecentEnds()
        self._began: float | None = None

    def hear(self, row: RecentEnds) -> str | None:
        """Take note of how requests ended; return why the model is given up, None if it is not."""
        if row.succeeded:
            self._began = None
        self._row = self._row.then(row)
        failed, patient = self._row.failed, self._row.patient
        if not failed and not patient:
            return None
        now = self._clock()
        self._began = now if self._began is None else self._began
        if failed >= self._rules.give_up_after:
            return f"{failed} requests in a row failed; the last: {self._row.last}"
        minutes = (now - self._began) / 60
        if minutes >= self._rules.give_up_minutes:
            return (
                f"none of {failed + patient} requests succeeded in {minutes:.0f} minutes; the last:"
                f" {self._row.last}"
            )
        return None


class Relay:
    """Collects how requests of one model ended, for whoever decides over several processes."""

    def __init__(self) -> None:
        self._row = RecentEnds()

    def hear(self, row: RecentEnds) -> None:
        """Take note of how requests ended."""
        self._row = self._row.then(row)

    def new(self) -> RecentEnds:
        """Return what was heard since the last time."""
        row, self._row = self._row, RecentEnds()
        return row
