"""Targets of closed items: an option, a pattern, a range, or what an import says."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from medassay.core.pattern import compile_pattern
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target.base import Keys, Refuse, Target, is_finite

# One character an option; where there are more than 26 (40 medical specialties), letters follow
# that look like none before. `Template.fill` shows them to models, and the parser of choices reads
# them.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "ΓΔΘΛΞΠΣΦΨΩБДЖЗ"


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
        _check_options(options, refuse)
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
        _check_options(record.get("options", []), refuse)

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


def _check_options(options: Any, refuse: Refuse) -> None:
    if not isinstance(options, list) or not all(
        isinstance(option, str) and option.strip() for option in options
    ):
        raise refuse("options", "expected a list of non-empty texts")
