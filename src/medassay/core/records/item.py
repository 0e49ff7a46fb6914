"""The question side of the path: `Item` and `Bank`.

An item in a file is a JSON object with the keys of `ITEM_KEYS`; hashes are taken over that parsed
object, so that a key which is absent stays absent. `Item` is the typed view of it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from medassay.core.records.health_record import Origin

Kind = Literal["public", "synthetic"]
Form = Literal[
    "choice",
    "regex",
    "range",
    "key",
    "given",
    "open",
    "text",
    "rubric",
    "diagnoses",
    "record",
    "report",
    "withheld",
]
OPEN_FORMS: tuple[Form, ...] = ("open", "text", "rubric", "diagnoses", "record", "report")
# One character an option; where there are more than 26 (40 medical specialties), letters follow
# that look like none before.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "ΓΔΘΛΞΠΣΦΨΩБДЖЗ"


@dataclass(frozen=True, kw_only=True)
class Range:
    """Accepted numbers, both ends included."""

    lo: float
    hi: float


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One statement that a complete open answer must contain."""

    id: str
    text: str
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One line of a rubric: what an answer does, and the points for it; below 0 for what harms.

    An answer that meets a criterion marked `harm` is counted, one by one, in the harm ledger.
    """

    id: str
    text: str
    points: float
    tags: tuple[str, ...] = ()
    harm: bool = False


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question with its target.

    `form` says how an answer is read and scored: a letter (`choice`), a pattern (`regex`), a number
    (`range`), target facts (`open`), likeness to a reference text (`text`), criteria with points
    (`rubric`), a ranked list by its closeness to the golden diagnosis (`diagnoses`: it and its
    other names, with its `severity` if known), a structured health record by its likeness to a
    reference `record` that says its `origin` (`record`; a `report` has none yet; `drug_names` are
    other names of its drugs), in imports a finished prediction equal to a key (`key`) or a score
    that came with it (`given`); in publications a synthetic item is a `commitment` without its text
    (`withheld`), and a deleted one a `tombstone`. A wrong answer to an item marked `harm` could
    harm a patient, and is counted apart. Target facts are what an open answer must have;
    `nice_to_have` are statements that it may have besides.
    """

    id: str
    domain: str
    question: str
    form: Form
    kind: Kind = "public"
    language: str = "en"
    revision: int = 1
    split: str = "test"
    context: str | None = None
    options: tuple[str, ...] = ()
    expected: str | None = None
    regex: str | None = None
    range: Range | None = None
    extract: str | None = None
    locale: str = "en"
    facts: tuple[Fact, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    diagnoses: tuple[str, ...] = ()
    severity: str | None = None
    record: Mapping[str, Any] | None = None
    origin: Origin | None = None
    drug_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reference: str | None = None
    rationale: str | None = None
    source: str | None = None
    licence: str | None = None
    category: str | None = None
    condition: str | None = None
    path: str | None = None
    leaf: str | None = None
    year: int | None = None
    difficulty: str | None = None
    cluster: str | None = None
    harm: bool = False
    commitment: str | None = None
    tombstone: str | None = None
    lowest: float | None = None
    nice_to_have: tuple[str, ...] = ()

    @property
    def letters(self) -> str:
        """Return the letters of the options, `ABCD` for four."""
        return LETTERS[: len(self.options)]

    @property
    def answer_type(self) -> Literal["closed", "open"]:
        """Return `open` for items whose answer is a text, a list or a record, else `closed`."""
        return "open" if self.form in OPEN_FORMS else "closed"

    @property
    def reference_text(self) -> str:
        """Return the text that a good open answer is like: the reference answer, else all target
        facts.
        """
        return self.reference or " ".join(fact.text for fact in self.facts)

    @property
    def must_have(self) -> tuple[str, ...]:
        """Return the statements that an open answer must have: the target facts, else the reference
        answer as one.
        """
        return tuple(fact.text for fact in self.facts) or (self.reference or "",)

    @property
    def target(self) -> str:
        """Return what counts as right, as one line of text."""
        if self.range is not None:
            return f"{self.range.lo:g} to {self.range.hi:g}"
        if self.record is not None:
            return json.dumps(self.record, ensure_ascii=False)
        targets = {
            "regex": f"/{self.regex}/",
            "open": "; ".join(fact.text for fact in self.facts),
            "text": self.reference or "",
            "diagnoses": self.diagnoses[0] if self.diagnoses else "",
            "rubric": "; ".join(f"{c.points:+g} {c.text}" for c in self.criteria),
        }
        return targets.get(self.form, self.expected or "")


@dataclass(frozen=True, kw_only=True)
class Bank:
    """A versioned set of items with its card.

    `items` is any sequence: a tuple, or a view of a file that reads an item when it is asked for,
    so that a bank of a million items costs an index and no more.
    """

    name: str
    version: str
    domains: tuple[str, ...]
    licence: str
    items: Sequence[Item]
    content_hash: str
    title: str = ""
    limits: str = ""
    created: str = ""
    may_leave: bool = True
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    card: dict[str, Any] = field(default_factory=dict)
    changes: str = ""
    reviews: Sequence[Mapping[str, Any]] = ()


def shuffle_text(order: Sequence[int]) -> str:
    """Return under which letters the options of the bank were shown.

    Parameters
    ----------
    order : place in the bank of the option shown first, second, and so on

    Examples
    --------
    >>> shuffle_text([2, 0, 1])
    'options shown as A, B, C were C, A, B of the bank'
    """
    shown, banked = LETTERS[: len(order)], [LETTERS[place] for place in order]
    return f"options shown as {', '.join(shown)} were {', '.join(banked)} of the bank"
