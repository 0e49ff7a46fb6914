"""What counts as right for an item: one class for each form of target, tagged by its form.

A target is read from the keys of an item's file object that belong to it, after they were checked.
The classes here are those that more than one room reads; kinds may bring their own
(`further_targets`).
"""

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self, cast

import msgspec

from medassay.core.criteria_points import lowest_points
from medassay.core.json import unchecked
from medassay.core.keyed import keyed
from medassay.core.pattern import compile_pattern
from medassay.core.records.diagnosis import SEVERITY_MAPS
from medassay.core.records.health_record import Origin, origin_from, record_from
from medassay.core.records.item_object import CriterionObject, ItemObject
from medassay.errors import InputError

Form = str  # the tag of a target; `FORMS` has those of this file
Keys = Mapping[str, type]
Refuse = Callable[[str, str], InputError]  # field, problem → what is raised
# One character an option; where there are more than 26 (40 medical specialties), letters follow
# that look like none before.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "ΓΔΘΛΞΠΣΦΨΩБДЖЗ"
_LEAST_POINTS, _MOST_POINTS = 1e-6, 1e6


class Target:
    """What counts as right for an item.

    Attributes
    ----------
    form : its tag, which tasks name
    is_open : whether an answer is a text, a list or a record, and not one of few values
    keys : keys of an item's file object that belong to it, with their types; `object` where `check`
        looks closer
    """

    form: ClassVar[Form]
    is_open: ClassVar[bool] = False
    keys: ClassVar[Keys] = {}

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether a file object has a target of this form: the first key of `keys`."""
        return next(iter(cls.keys), "") in record

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise what `refuse` makes of the first field that is wrong."""

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the target in a file object that was checked before."""
        return cls(**{key: value for key, value in record.items() if key in cls.keys})

    @classmethod
    def check_beside(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where keys of this target stand on an item of another and are not of their form."""

    def to_dict(self) -> ItemObject:
        """Return the keys of a file object; what is absent stays absent."""
        values = keyed(self, *self.keys)
        return cast(ItemObject, {key: v for key, v in values.items() if v is not None})

    @property
    def text(self) -> str:
        """Return what counts as right, as one line."""
        return ""

    @property
    def lowest(self) -> float | None:
        """Return the lowest score an answer can have; None for the lowest of the scale."""
        return None


@dataclass(frozen=True, kw_only=True)
class Choice(Target):
    """One of some options, by its letter.

    Attributes
    ----------
    options : 2 to 40 texts, in the bank's order; the first one has the letter A
    expected : letter of the right one; None in code alone, files have a key

    Examples
    --------
    >>> from medassay import Choice
    >>> target = Choice(options=("Aspirin", "Apixaban"), expected="B")
    >>> target.letters, target.text
    ('AB', 'B')
    """

    form = "choice"
    keys: ClassVar[Keys] = {"options": object, "expected": str}
    options: tuple[str, ...]
    expected: str | None = None

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless there are 2 to 40 options and the key is the letter of one."""
        options = record["options"]
        check_options(options, refuse)
        if not 2 <= len(options) <= len(LETTERS):
            raise refuse("options", f"{len(options)} options; expected 2 to {len(LETTERS)}")
        letters = LETTERS[: len(options)]
        expected = record.get("expected")
        if not isinstance(expected, str) or len(expected) != 1 or expected not in letters:
            raise refuse(
                "expected", f"target '{expected}' is not among options {letters[0]}–{letters[-1]}"
            )

    @classmethod
    def check_beside(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless options, if there are any, are texts."""
        check_options(record.get("options", []), refuse)

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the options with their key."""
        return cls(options=tuple(record["options"]), expected=record.get("expected"))

    def to_dict(self) -> ItemObject:
        """Return options and key."""
        plain: ItemObject = {"options": list(self.options)}
        if self.expected is not None:
            plain |= {"expected": self.expected}
        return plain

    @property
    def letters(self) -> str:
        """Return the letters of the options, `ABCD` for four."""
        return LETTERS[: len(self.options)]

    @property
    def place(self) -> int:
        """Return the place of the expected option; there must be one."""
        if self.expected is None:
            raise ValueError("no option is known to be right")
        return self.letters.index(self.expected)

    @property
    def text(self) -> str:
        """Return the expected letter."""
        return self.expected or ""


@dataclass(frozen=True, kw_only=True)
class Pattern(Target):
    r"""A pattern that a reply must contain.

    Attributes
    ----------
    regex : of Python's `re`, found anywhere in the reply after its thoughts are removed

    Examples
    --------
    >>> from medassay import Pattern
    >>> print(Pattern(regex=r"(?i)\bapixaban\b").text)
    /(?i)\bapixaban\b/
    """

    form = "regex"
    keys: ClassVar[Keys] = {"regex": str}
    regex: str

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless the pattern compiles and decides in time."""
        compile_pattern(record["regex"], lambda problem: refuse("regex", problem))

    @property
    def text(self) -> str:
        """Return the pattern between slashes."""
        return f"/{self.regex}/"


@dataclass(frozen=True, kw_only=True)
class Range(Target):
    """Accepted numbers, both ends included.

    Attributes
    ----------
    lo, hi : the ends, in the unit that the question asks for
    extract : a pattern whose one group holds the number; None takes the last number of the reply
    locale : how numbers are written, "en" (1,000.5) or "de" (1.000,5)

    Examples
    --------
    >>> from medassay import Range
    >>> Range(lo=2.5, hi=3.5).text
    '2.5 to 3.5'
    """

    form = "range"
    keys: ClassVar[Keys] = {"range": object, "extract": str, "locale": str}
    lo: float
    hi: float
    extract: str | None = None
    locale: str = "en"

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless lo <= hi, the locale is known, and the pattern has one group."""
        bounds = record["range"]
        if not isinstance(bounds, dict) or set(bounds) != {"lo", "hi"}:
            raise refuse("range", f'{bounds!r:.60}; expected {{"lo": number, "hi": number}}')
        for end in bounds.values():
            if not is_finite(end):
                raise refuse("range", f"{end!r:.40} is not a number")
        lo, hi = bounds["lo"], bounds["hi"]
        if lo > hi:
            raise refuse("range", f"lo {lo} > hi {hi}; expected lo <= hi")
        locale = record.get("locale", "en")
        if locale not in ("en", "de"):
            raise refuse("locale", f"'{locale:.60}'; expected en or de")
        if "extract" in record:
            pattern = compile_pattern(record["extract"], lambda problem: refuse("extract", problem))
            if pattern.groups != 1:
                raise refuse("extract", f"{pattern.groups} groups; expected exactly one")

    @classmethod
    def check_beside(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless the range, if there is one, is one."""
        if "range" in record:
            cls.check(record, refuse)

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the bounds and how the number is read."""
        bounds = record["range"]
        return cls(
            lo=float(bounds["lo"]),
            hi=float(bounds["hi"]),
            extract=record.get("extract"),
            locale=record.get("locale", "en"),
        )

    def to_dict(self) -> ItemObject:
        """Return the bounds, and what is not usual of how the number is read."""
        plain: ItemObject = {"range": {"lo": self.lo, "hi": self.hi}}
        if self.extract is not None:
            plain |= {"extract": self.extract}
        if self.locale != "en":
            plain |= {"locale": self.locale}
        return plain

    @property
    def text(self) -> str:
        """Return both ends."""
        return f"{self.lo:g} to {self.hi:g}"


@dataclass(frozen=True, kw_only=True)
class Key(Target):
    """The value that a finished prediction must equal, in imports."""

    form = "key"
    keys: ClassVar[Keys] = {"expected": str}
    expected: str

    @property
    def text(self) -> str:
        """Return the value."""
        return self.expected


@dataclass(frozen=True, kw_only=True)
class Given(Target):
    """Nothing: the score came with the answer, in imports."""

    form = "given"


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

    def to_dict(self) -> ItemObject:
        """Return the criteria as objects, without tags and mark where there are none."""
        return {"criteria": [criterion.to_dict() for criterion in self.criteria]}

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

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return names and severity."""
        return cls(diagnoses=tuple(record["diagnoses"]), severity=record.get("severity"))

    def to_dict(self) -> ItemObject:
        """Return names and severity."""
        plain: ItemObject = {"diagnoses": list(self.diagnoses)}
        if self.severity is not None:
            plain |= {"severity": self.severity}
        return plain

    @property
    def golden(self) -> str:
        """Return the golden diagnosis."""
        return self.diagnoses[0]

    @property
    def text(self) -> str:
        """Return the golden diagnosis, where there is one."""
        return self.diagnoses[0] if self.diagnoses else ""


@dataclass(frozen=True, kw_only=True)
class Record(Target):
    """A structured health record that a model shall write from a report.

    Attributes
    ----------
    record : the reference record, with the keys of `medassay schema record`
    origin : who made it, and whether it is gold or silver
    drug_names : other names of its drugs that count alike

    Examples
    --------
    >>> from medassay import Record
    >>> Record(record={"tumours": []}).is_open
    True
    """

    form = "record"
    is_open = True
    keys: ClassVar[Keys] = {"record": object, "origin": object, "drug_names": object}
    record: Mapping[str, Any]
    origin: Origin | None = None
    drug_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether there is a reference record."""
        return record.get("record") is not None

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where drug names, record or origin are not as they should be."""
        check_drug_names(record, refuse)
        try:
            record_from(record["record"])
        except ValueError as error:
            raise refuse("record", str(error)) from None
        try:
            origin_from(record.get("origin"))
        except ValueError as error:
            problem = f"{error}; expected who made the record: standing (gold or silver) and maker"
            raise refuse("origin", problem) from None

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the record with its origin."""
        return cls(
            record=record["record"] or {},
            origin=origin_from(record["origin"]),
            drug_names=record.get("drug_names", {}),
        )

    def to_dict(self) -> ItemObject:
        """Return the record with its origin; drug names where there are any."""
        plain: ItemObject = {"record": self.record}
        if self.drug_names:
            plain |= {"drug_names": _lists(self.drug_names)}
        if self.origin is not None:
            plain |= {"origin": self.origin.to_dict()}
        return plain

    @property
    def text(self) -> str:
        """Return the record as JSON."""
        return json.dumps(self.record, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class Report(Target):
    """No reference record yet: what a reply says of the report is read, and nothing is scored."""

    form = "report"
    is_open = True
    keys: ClassVar[Keys] = {"record": object, "drug_names": object}
    drug_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether the record is null."""
        return "record" in record and record["record"] is None

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise unless `drug_names`, if there are any, is a table of lists."""
        check_drug_names(record, refuse)

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the names of drugs, if any."""
        return cls(drug_names=record.get("drug_names", {}))

    def to_dict(self) -> ItemObject:
        """Return that there is no record; drug names where there are any."""
        plain: ItemObject = {"record": None}
        if self.drug_names:
            plain |= {"drug_names": _lists(self.drug_names)}
        return plain


@dataclass(frozen=True, kw_only=True)
class Withheld(Target):
    """A state of any target: it is committed to or deleted, and not here.

    `commitment` and `tombstone` are hashes; `floor` is the lowest score of the target that is not
    here, where that is below the scale; `severity` is that of its golden diagnosis, which stays
    public. In a run over items of several kinds the record's `form` says of which it was.
    """

    form = "withheld"
    keys: ClassVar[Keys] = {
        "commitment": str,
        "tombstone": str,
        "lowest": object,
        "severity": str,
        "form": str,
    }
    commitment: str | None = None
    tombstone: str | None = None
    floor: float | None = None
    severity: str | None = None

    @classmethod
    def claims(cls, record: ItemObject) -> bool:
        """Return whether there is a commitment or a tombstone."""
        return "commitment" in record or "tombstone" in record

    @classmethod
    def check(cls, record: ItemObject, refuse: Refuse) -> None:
        """Raise where the hash is none, or the lowest score above 0."""
        key = "tombstone" if "tombstone" in record else "commitment"
        if not re.fullmatch("[0-9a-f]{64}", str(record.get(key))):
            raise refuse(key, "expected 64 hexadecimal digits")
        lowest = record.get("lowest", 0)
        if not is_finite(lowest) or lowest > 0:
            raise refuse("lowest", f"{lowest!r:.40}; expected a number, 0 or below")

    @classmethod
    def read(cls, record: ItemObject) -> Self:
        """Return the hashes, the lowest score and the severity."""
        return cls(
            commitment=record.get("commitment"),
            tombstone=record.get("tombstone"),
            floor=float(record["lowest"]) if "lowest" in record else None,
            severity=record.get("severity"),
        )

    def to_dict(self) -> ItemObject:
        """Return the hashes, the lowest score and the severity."""
        values = {**keyed(self, "commitment", "tombstone", "severity"), "lowest": self.floor}
        return cast(ItemObject, {key: v for key, v in values.items() if v is not None})

    @property
    def lowest(self) -> float | None:
        """Return the lowest score of the target that is not here, as its publisher says."""
        return self.floor


# An item has the first that claims it, of the closed or of the open ones, and without any the last
# of these; but for one that is withheld, and for targets that kinds bring: these are asked first.
CLOSED_TARGETS: tuple[type[Target], ...] = (Choice, Pattern, Range, Key, Given)
OPEN_TARGETS: tuple[type[Target], ...] = (Report, Criteria, Diagnoses, Record, Reference, Facts)
TARGETS: tuple[type[Target], ...] = (*CLOSED_TARGETS, *OPEN_TARGETS, Withheld)
OPEN_FORMS = frozenset(target.form for target in TARGETS if target.is_open)


@cache
def further_targets() -> tuple[type[Target], ...]:
    """Return the targets that kinds bring themselves.

    The catalogue of kinds lies above the rooms that read items, and is found by name: when an item
    has a key that nobody here knows (docs/decisions/0028).
    """
    catalog = importlib.import_module("medassay.kinds.catalog")
    return tuple(target for kind in catalog.KINDS.values() for target in kind.targets)


def _lists(drug_names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(others) for name, others in drug_names.items()}


def check_options(options: Any, refuse: Refuse) -> None:
    """Raise unless options are texts."""
    if not isinstance(options, list) or not all(
        isinstance(option, str) and option.strip() for option in options
    ):
        raise refuse("options", "expected a list of non-empty texts")


def check_drug_names(record: ItemObject, refuse: Refuse) -> None:
    """Raise unless `drug_names`, if there are any, is a table of lists."""
    names = record.get("drug_names", {})
    is_table = isinstance(names, dict) and all(
        isinstance(others, list) and all(isinstance(o, str) and o.strip() for o in others)
        for others in names.values()
    )
    if not is_table:
        raise refuse("drug_names", 'expected a table of lists, such as {"ASS": ["Aspirin"]}')


def is_finite(value: Any) -> bool:
    """Return whether a value is a number that a double holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # exact for integers of any size; false for NaN
