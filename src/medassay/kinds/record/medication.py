"""Medication: whether each drug stands in the list where it belongs, and whether dose, unit, route
and schedule agree.

A record can agree with the expected one in nearly every letter and still list a stopped drug as
current, or ten times its dose. These errors are counted by name. `medication_state` is the
published number, by names as they are written; `medication_details` knows a drug that is named
otherwise, too.

Source: specification of health-record extraction, "Medication state"; what goes beyond it is
medassay's own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from medassay.kinds.record.dose import Amount, read_amounts, read_units
from medassay.kinds.record.drug_name import Synonyms, drug_key, is_perhaps
from medassay.kinds.record.schedule import read_route, schedules_agree

LISTS = ("current", "advised", "discontinued")


class MedicationState(msgspec.Struct, frozen=True, kw_only=True):
    """How many drugs of the expected record are exactly where they belong, and what is wrong with
    the others.

    `stopped_as_current` are drugs that were stopped and are listed as current: a patient may go on
    taking them. `lost` are in no list of the reply, `invented` in no list expected. Names are
    casefolded.
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
    expected : lists of drugs by `current`, `advised`, `discontinued`; each drug an object with
        `name`
    actual : the same of a reply, in whatever shape; what is no list of drugs holds none

    Notes
    -----
    A drug that is expected in two lists (an old dose stopped, a new one advised) is one drug, and
    correct only in both and in no third.

    Examples
    --------
    >>> medication_state({"discontinued": [{"name": "A"}]}, {"current": [{
    ...     "name": "a"}]}).stopped_as_current
    ('a',)
    """
    expected_places, actual_places = _places(expected), _places(actual)
    stopped = [name for name, places in expected_places.items() if places == {"discontinued"}]
    return MedicationState(
        correct=sum(actual_places.get(name) == places for name, places in expected_places.items()),
        total=len(expected_places),
        stopped_as_current=tuple(n for n in stopped if "current" in actual_places.get(n, ())),
        lost=tuple(name for name in expected_places if name not in actual_places),
        invented=tuple(name for name in actual_places if name not in expected_places),
    )


def _places(medications: Any) -> dict[str, set[str]]:
    """Return each drug's name → the lists it stands in."""
    places: dict[str, set[str]] = {}
    if isinstance(medications, Mapping):
        for name in LISTS:
            drugs = medications.get(name)
            for drug in drugs if isinstance(drugs, list) else ():
                drug_name = drug.get("name") if isinstance(drug, Mapping) else drug
                if isinstance(drug_name, str) and (key := " ".join(drug_name.split()).casefold()):
                    places.setdefault(key, set()).add(name)
    return places


DETAILS = ("dose", "unit", "route", "schedule")


class DrugEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a list of drugs, as written.

    `key` is its name without dose, salt, case and punctuation.
    """

    place: str
    key: str
    name: str
    dose: str
    schedule: str


class WrongDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in a drug that both records have: which detail, in which list, and what each
    says.
    """

    detail: str
    drug: str
    place: str
    expected: str
    found: str


class MedicationDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What is right and wrong about the drugs that a reply has in common with the reference,
    however their names are written.

    `agree` and `compared` count entries by detail; a detail is compared where the reference tells
    it. Of the `stopped` drugs of the reference `matched` have the name of a drug of the reply;
    those `as_current` are listed as current, `perhaps` are the names that hold one another. Of the
    drugs whose dose is `changed` those of `old_dose` stay current in the old one.
    """

    agree: Mapping[str, int] = msgspec.field(default_factory=dict)
    compared: Mapping[str, int] = msgspec.field(default_factory=dict)
    wrong: tuple[WrongDetail, ...] = ()
    stopped: int = 0
    matched: int = 0
    as_current: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    changed: int = 0
    old_dose: tuple[str, ...] = ()

    @property
    def going_on(self) -> float | None:
        """Return the share of stopped drugs and doses that the reply lists as current, in [0, 1];
        None where none was stopped.
        """
        ended = self.stopped + self.changed
        return (len(self.as_current) + len(self.old_dose)) / ended if ended else None


def _wrong(detail: str, drug: DrugEntry, other: DrugEntry) -> WrongDetail:
    """Return what differs in a drug; unit and route are read from the text of the dose."""
    texts = [entry.schedule if detail == "schedule" else entry.dose for entry in (drug, other)]
    return WrongDetail(
        detail=detail, drug=drug.name, place=drug.place, expected=texts[0], found=texts[1]
    )


def medication_details(
    expected: Mapping[str, Any],
    actual: Any,
    *,
    synonyms: Synonyms | None = None,
    language: str = "de",
) -> MedicationDetails:
    """Return how the entries of a reply agree with the expected ones in dose, unit, route and
    schedule, and which drugs go on.

    Each expected entry is compared with one of its name: in its own list first, there one of equal
    dose first, else in another.

    Parameters
    ----------
    expected, actual : as in `medication_state`
    synonyms : name → its other names
    language : of the report; it says what 1.000 means

    Examples
    --------
    >>> gold = {"current": [{"name": "ASS", "dose": "100 mg", "schedule": "1-0-0"}]}
    >>> said = {"current": [{"name": "ASS 1000 mg", "dose": "1 g", "schedule": "morgens"}]}
    >>> found = medication_details(gold, said)
    >>> found.compared["dose"], found.agree["dose"], found.agree["schedule"]
    (1, 0, 1)
    """
    expected_drugs = list(_entries(expected, synonyms))
    actual_drugs = list(_entries(actual, synonyms))
    agree, compared = dict.fromkeys(DETAILS, 0), dict.fromkeys(DETAILS, 0)
    wrong = []
    for drug, other in _pairs(expected_drugs, actual_drugs, language):
        for detail, same in _agreement(drug, other, language):
            compared[detail] += 1
            agree[detail] += same
            if not same:
                wrong.append(_wrong(detail, drug, other))
    stopped = [
        d
        for d in expected_drugs
        if {w.place for w in expected_drugs if w.key == d.key} == {"discontinued"}
    ]
    keys = {drug.key for drug in actual_drugs}
    current = {drug.key for drug in actual_drugs if drug.place == "current"}
    certain = [drug for drug in stopped if drug.key in current]
    changed = list(_changed(expected_drugs, language))
    return MedicationDetails(
        agree=agree,
        compared=compared,
        wrong=tuple(wrong),
        stopped=len(stopped),
        matched=sum(drug.key in keys for drug in stopped),
        as_current=tuple(drug.name for drug in certain),
        perhaps=tuple(
            drug.name
            for drug in stopped
            if drug not in certain and any(is_perhaps(drug.key, key) for key in current)
        ),
        changed=len(changed),
        old_dose=tuple(
            drug.name
            for drug, dose in changed
            if any(
                entry.key == drug.key
                and entry.place == "current"
                and read_amounts(entry.dose, language) == dose
                for entry in actual_drugs
            )
        ),
    )


def _entries(medications: Any, synonyms: Synonyms | None) -> Iterator[DrugEntry]:
    for place in LISTS if isinstance(medications, Mapping) else ():
        drugs = medications.get(place)
        for drug in drugs if isinstance(drugs, list) else ():
            record = drug if isinstance(drug, Mapping) else {"name": drug}
            name = record.get("name")
            if isinstance(name, str) and (key := drug_key(name, synonyms)):
                dose, schedule = (
                    value if isinstance(value := record.get(part), str) else ""
                    for part in ("dose", "schedule")
                )
                # A dose within the name counts where there is none beside it.
                yield DrugEntry(
                    place=place, key=key, name=name, dose=dose or name, schedule=schedule
                )


def _pairs(
    expected: Sequence[DrugEntry], actual: Sequence[DrugEntry], language: str
) -> Iterator[tuple[DrugEntry, DrugEntry]]:
    """Yield each expected entry with the entry of the reply that it is compared with.

    One that is lost has none.
    """
    free = list(actual)
    for drug in expected:
        same = [other for other in free if other.key == drug.key]
        if not same:
            continue
        dose = read_amounts(drug.dose, language)
        best = min(
            same,
            key=lambda other: (
                other.place != drug.place,
                read_amounts(other.dose, language) != dose,
            ),
        )
        free.remove(best)
        yield drug, best


def _agreement(drug: DrugEntry, other: DrugEntry, language: str) -> Iterator[tuple[str, bool]]:
    """Yield whether each detail that the expected entry tells is the same in the other one."""
    if amounts := read_amounts(drug.dose, language):
        amounts_read = read_amounts(other.dose, language)
        yield "dose", amounts == amounts_read
        yield (
            "unit",
            amounts == amounts_read
            or read_units(drug.dose, language) == read_units(other.dose, language),
        )
    if (route := read_route(f"{drug.dose} {drug.schedule}")) is not None:
        yield "route", route == read_route(f"{other.dose} {other.schedule}")
    if drug.schedule.strip():
        yield "schedule", schedules_agree(drug.schedule, other.schedule)


def _changed(
    expected: Sequence[DrugEntry], language: str
) -> Iterator[tuple[DrugEntry, tuple[Amount, ...]]]:
    """Yield the stopped entries, with their doses, of drugs that go on in another dose."""
    for old in (drug for drug in expected if drug.place == "discontinued"):
        new = [drug for drug in expected if drug.key == old.key and drug.place != "discontinued"]
        dose = read_amounts(old.dose, language)
        if dose and new and all(read_amounts(drug.dose, language) != dose for drug in new):
            yield old, dose


def stopped_names(state: MedicationState, details: MedicationDetails) -> tuple[str, ...]:
    """Return the drugs that were stopped and are listed as current, each once: by its name in the
    reference, an old dose said so.
    """
    current = {drug_key(name) for name in details.as_current}
    others = (name for name in state.stopped_as_current if drug_key(name) not in current)
    return (*details.as_current, *others, *(f"{name} (old dose)" for name in details.old_dose))
