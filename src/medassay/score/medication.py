"""Medication state: whether each drug stands in the list where it belongs, current, advised or discontinued.

A record can agree with the expected one in nearly every letter and still list a stopped drug as current. That error
is counted by name.

Source: specification of health-record extraction, "Medication state".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LISTS = ("current", "advised", "discontinued")


@dataclass(frozen=True, kw_only=True)
class MedicationState:
    """How many drugs of the expected record are exactly where they belong, and what is wrong with the others.

    `stopped_as_current` are drugs that were stopped and are listed as current: a patient may go on taking them.
    `lost` are in no list of the reply, `invented` in no list expected. Names are casefolded.
    """

    correct: int
    total: int
    stopped_as_current: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float | None:
        """Return the share that is correct, in [0, 1]; None where no drug was expected."""
        return self.correct / self.total if self.total else None


def medication_state(expected: Mapping[str, Any], actual: Any) -> MedicationState:
    """Return how the drugs of a reply stand against the expected ones, doses ignored.

    Parameters
    ----------
    expected : lists of drugs by `current`, `advised`, `discontinued`; each drug an object with `name`
    actual : the same of a reply, in whatever shape; what is no list of drugs holds none

    Notes
    -----
    A drug that is expected in two lists (an old dose stopped, a new one advised) is one drug, and correct only in both
    and in no third.

    Examples
    --------
    >>> medication_state({"discontinued": [{"name": "A"}]}, {"current": [{"name": "a"}]}).stopped_as_current
    ('a',)
    """
    wanted, found = _places(expected), _places(actual)
    stopped = [name for name, places in wanted.items() if places == {"discontinued"}]
    return MedicationState(
        correct=sum(found.get(name) == places for name, places in wanted.items()),
        total=len(wanted),
        stopped_as_current=tuple(n for n in stopped if "current" in found.get(n, ())),
        lost=tuple(name for name in wanted if name not in found),
        invented=tuple(name for name in found if name not in wanted),
    )


def _places(medications: Any) -> dict[str, set[str]]:
    """Return each drug's name → the lists it stands in."""
    places: dict[str, set[str]] = {}
    if isinstance(medications, Mapping):
        for name in LISTS:
            drugs = medications.get(name)
            for drug in drugs if isinstance(drugs, list) else ():
                given = drug.get("name") if isinstance(drug, Mapping) else drug
                if isinstance(given, str) and (key := " ".join(given.split()).casefold()):
                    places.setdefault(key, set()).add(name)
    return places
