"""Targets of open items: facts, a reference, a rubric, a diagnosis."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec

from medassay.core.criteria_points import lowest_points
from medassay.core.json import unchecked
from medassay.core.records.diagnosis import SEVERITY_MAPS
from medassay.core.records.item_object import CriterionObject, ItemObject
from medassay.core.records.target.base import Keys, Refuse, Target, is_finite

_LEAST_POINTS, _MOST_POINTS = 1e-6, 1e6


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One statement that a complete open answer must contain.

    Attributes
    ----------
    id : its name in verdicts, unique in its item
    text : the statement
    weight : above 0; how much of the score depends on it

    Examples
    --------
    >>> from medassay import Fact
    >>> Fact(id="f1", text="Anticoagulation is started.").weight
    1.0
    """

    id: str
    text: str
    weight: float = 1.0


class _Entry(msgspec.Struct, frozen=True):
    """A fact or a criterion as a file has it; none of its values is checked yet."""

    id: Any = msgspec.UNSET
    text: Any = None

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return the entry of a list of a file; one that is text alone has nothing else."""
        if isinstance(value, dict):
            return unchecked(value, cls)
        return cls(text=value if isinstance(value, str) else None)

    def name(self, letter: str, number: int) -> str:
        """Return its id; of one without, a letter with its place, counted from 1."""
        return f"{letter}{number}" if self.id is msgspec.UNSET else str(self.id)


class _FactEntry(_Entry, frozen=True):
    weight: Any = 1


@dataclass(frozen=True, kw_only=True)
class Facts(Target):
    """Statements that a complete open answer must contain; judges say which of them it does.

    Examples
    --------
    >>> from medassay import Fact, Facts
    >>> facts = Fact(id="f1", text="Call 112."), Fact(id="f2", text="Note the time.")
    >>> Facts(facts=facts).text
    'Call 112.; Note the time.'
    """

    form = "open"
    is_open = True
    keys: ClassVar[Keys] = {"facts": object}
    facts: tuple[Fact, ...] = ()

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless there are texts with weights above 0 and ids of their own."""
        entries = record.get("facts")
        if not isinstance(entries, list) or not entries:
            problem = "absent or empty; an open item needs target facts, a reference or criteria"
            raise refuse("facts", problem)
        names = []
        for number, entry in enumerate(map(_FactEntry.of, entries), 1):
            if not isinstance(entry.text, str) or not entry.text:
                raise refuse("facts", f"fact {number}: expected text or an object with a text")
            if not is_finite(entry.weight) or not entry.weight > 0:
                problem = f"weight {entry.weight!r:.40}; expected a number above 0"
                raise refuse("facts", f"fact {number}: {problem}")
            names.append(entry.name("f", number))
        if len(set(names)) != len(names):
            raise refuse("facts", "two facts share an id")

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the statements."""
        return cls(
            facts=tuple(
                Fact(id=entry.name("f", number), text=entry.text, weight=float(entry.weight))
                for number, entry in enumerate(map(_FactEntry.of, record["facts"]), 1)
            )
        )

    def to_dict(self) -> ItemObject:
        """Return the statements as objects."""
        return {
            "facts": [
                {"id": fact.id, "text": fact.text, "weight": fact.weight} for fact in self.facts
            ]
        }

    @property
    def text(self) -> str:
        """Return the statements, parted by semicolons."""
        return "; ".join(fact.text for fact in self.facts)


@dataclass(frozen=True, kw_only=True)
class Reference(Target):
    """That an open answer is like the reference answer of its item, by metrics of texts or judges.

    Examples
    --------
    >>> from medassay import Item, Reference
    >>> item = Item(id="q1", domain="stroke", question="What first?", target=Reference(),
    ...     reference="Call an ambulance.")
    >>> item.form, item.target_text
    ('text', 'Call an ambulance.')
    """

    form = "text"
    is_open = True

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether there is a reference answer, and no target facts."""
        return "reference" in record and "facts" not in record

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where the reference is blank."""
        if not record["reference"].strip():
            raise refuse("reference", "empty; an open item without facts needs one")


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One line of a rubric: what an answer does, and the points for it.

    Attributes
    ----------
    id : its name in verdicts, unique in its item
    text : what an answer that meets it does
    points : below 0 for what harms
    tags : themes; the score over the criteria of each tag is told beside the ranking
    harm : whether each answer that meets it is counted in the harm ledger

    Examples
    --------
    >>> from medassay import Criterion
    >>> Criterion(id="c1", text="Doubles the dose.", points=-8, harm=True).points
    -8
    """

    id: str
    text: str
    points: float
    tags: tuple[str, ...] = ()
    harm: bool = False

    def to_dict(self) -> CriterionObject:
        """Return the keys of a file object, without tags and mark where there are none."""
        plain: CriterionObject = {"id": self.id, "text": self.text, "points": self.points}
        if self.tags:
            plain |= {"tags": list(self.tags)}
        if self.harm:
            plain |= {"harm": True}
        return plain


class _CriterionEntry(_Entry, frozen=True):
    points: Any = None
    tags: Any = []
    harm: Any = False

    def problem(self, keys: Iterable[object]) -> str | None:
        """Return what is wrong with it, None where nothing is; `keys` are those of its object."""
        known = self.__struct_fields__
        if not str(self.text or "").strip():
            return "expected an object with a text"
        if not isinstance(self.text, str):
            return f"{self.text!r:.40} is no text"
        if strange := [key for key in keys if key not in known]:
            return f"'{strange[0]}' is unknown; known are {', '.join(known)}"
        if not is_finite(self.points) or not _LEAST_POINTS <= abs(self.points) <= _MOST_POINTS:
            return (
                f"points {self.points!r:.40}; expected a number above or below 0, from a millionth"
                " to a million"
            )
        tags = self.tags
        if not isinstance(tags, list) or not all(isinstance(t, str) and t for t in tags):
            return f"tags {tags!r:.40}; expected texts"
        return None if isinstance(self.harm, bool) else "harm is neither true nor false"


@dataclass(frozen=True, kw_only=True)
class Criteria(Target):
    """A rubric: criteria with points, one of them above 0 at least.

    Examples
    --------
    >>> from medassay import Criteria, Criterion
    >>> rubric = Criteria(criteria=(Criterion(id="c1", text="Asks for allergies.", points=5),
    ...     Criterion(id="c2", text="Doubles the dose.", points=-5)))
    >>> rubric.lowest  # the share of the points above 0 for doing all harm and no good
    -1.0
    """

    form = "rubric"
    is_open = True
    keys: ClassVar[Keys] = {"criteria": object}
    criteria: tuple[Criterion, ...]

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise for the first criterion that is wrong, or where nothing could be reached."""
        entries = record["criteria"]
        if not isinstance(entries, list) or not entries:
            problem = f"{entries!r:.40}; expected a list of objects with text and points"
            raise refuse("criteria", problem)
        criteria = []
        for number, value in enumerate(entries, 1):
            # Text alone is no criterion: it has no points.
            criterion = _CriterionEntry.of(value if isinstance(value, dict) else None)
            if (wrong := criterion.problem(value)) is not None:
                raise refuse("criteria", f"criterion {number}: {wrong}")
            criteria.append(criterion)
        names = [entry.name("c", number) for number, entry in enumerate(criteria, 1)]
        if len(set(names)) != len(names):
            raise refuse("criteria", "two criteria share an id")
        if not any(entry.points > 0 for entry in criteria):
            raise refuse("criteria", "none has points above 0; nothing could be reached")

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the criteria."""
        entries = map(_CriterionEntry.of, record["criteria"])
        return cls(
            criteria=tuple(
                Criterion(
                    id=entry.name("c", number),
                    text=entry.text,
                    points=float(entry.points),
                    tags=tuple(entry.tags),
                    harm=entry.harm,
                )
                for number, entry in enumerate(entries, 1)
            )
        )

    @property
    def text(self) -> str:
        """Return the criteria with their points, parted by semicolons."""
        return "; ".join(f"{c.points:+g} {c.text}" for c in self.criteria)

    @property
    def lowest(self) -> float:
        """Return the score of doing all harm and no good."""
        return lowest_points(criterion.points for criterion in self.criteria)


@dataclass(frozen=True, kw_only=True)
class Diagnoses(Target):
    """The golden diagnosis of a case.

    Attributes
    ----------
    diagnoses : its names; the first one is shown, the others count alike
    severity : label of one of the severity maps; None where it is not known

    Examples
    --------
    >>> from medassay import Diagnoses
    >>> Diagnoses(diagnoses=("Kleefstra syndrome", "9q34.3 deletion")).golden
    'Kleefstra syndrome'
    """

    form = "diagnoses"
    is_open = True
    keys: ClassVar[Keys] = {"diagnoses": object, "severity": object}
    diagnoses: tuple[str, ...]
    severity: str | None = None

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless there are names, and a severity that is known if any."""
        names = record.get("diagnoses")
        if not isinstance(names, list) or not names:
            problem = "absent or empty; expected the golden diagnosis and its names"
            raise refuse("diagnoses", problem)
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise refuse("diagnoses", f"{name!r:.40}; expected texts that are not empty")
        known_labels = sorted(
            {label for severity_map in SEVERITY_MAPS.values() for label in severity_map.levels}
        )
        if "severity" in record and record["severity"] not in known_labels:
            labels = ", ".join(known_labels)
            raise refuse(
                "severity", f"{record['severity']!r:.40}; expected one of {labels}, or nothing"
            )

    @property
    def golden(self) -> str:
        """Return the golden diagnosis."""
        return self.diagnoses[0]

    @property
    def text(self) -> str:
        """Return the golden diagnosis, where there is one."""
        return self.diagnoses[0] if self.diagnoses else ""
