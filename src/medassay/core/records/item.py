"""The question side of the path: `Item` and `Bank`.

An item in a file is a JSON object with the keys of `bank/check.py: ITEM_KEYS`; hashes are taken
over that parsed object, so that a key which is absent stays absent. `Item` is the typed view of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from medassay.core.records.card_object import CardObject
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS, Choice, Facts, Form, Reference, Target
from medassay.errors import InputError

Kind = Literal["public", "synthetic"]
T = TypeVar("T", bound=Target)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One question with its target.

    A wrong answer to an item marked `harm` could harm a patient, and is counted apart.

    Attributes
    ----------
    target : what counts as right; its form decides how an answer is read and scored
    nice_to_have : statements that an open answer may have besides what it must have
    cluster : the vignette that the item shares with others
    more : keys of its file that belong to targets of other forms, as they stand there

    Examples
    --------
    >>> from medassay import Choice, Item
    >>> target = Choice(options=("Aspirin", "Apixaban"), expected="B")
    >>> item = Item(id="q1", domain="cardiology", question="Which drug?", target=target)
    >>> item.form, item.letters, item.target_text
    ('choice', 'AB', 'B')
    """

    id: str
    domain: str
    question: str
    target: Target
    kind: Kind = "public"
    language: str = "en"
    revision: int = 1
    split: str = "test"
    context: str | None = None
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
    nice_to_have: tuple[str, ...] = ()
    more: ItemObject = field(default_factory=ItemObject)

    @property
    def form(self) -> Form:
        """Return the form of the target."""
        return self.target.form

    @property
    def answer_type(self) -> Literal["closed", "open"]:
        """Return `open` for items whose answer is a text, a list or a record, else `closed`."""
        return "open" if self.target.is_open else "closed"

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options of a choice; none for other items."""
        return self.target.options if isinstance(self.target, Choice) else ()

    @property
    def letters(self) -> str:
        """Return the letters of the options, `ABCD` for four."""
        return LETTERS[: len(self.options)]

    def target_as(self, target_type: type[T]) -> T:
        """Return the target as one of a class.

        Raises
        ------
        InputError
            When the item has another.
        """
        if not isinstance(self.target, target_type):
            raise InputError(
                f"item '{self.id}': its target is of form {self.form}; expected {target_type.form}"
            )
        return self.target

    @property
    def must_have(self) -> tuple[str, ...]:
        """Return the statements that an open answer must have: the target facts, else the reference
        answer as one.
        """
        facts = self.target.facts if isinstance(self.target, Facts) else ()
        return tuple(fact.text for fact in facts) or (self.reference or "",)

    @property
    def reference_text(self) -> str:
        """Return the text that a good open answer is like: the reference answer, else all target
        facts.
        """
        return self.reference or " ".join(self.must_have)

    @property
    def target_text(self) -> str:
        """Return what counts as right, as one line of text."""
        return (self.reference or "") if isinstance(self.target, Reference) else self.target.text


@dataclass(frozen=True, kw_only=True)
class Bank:
    """A versioned set of items with its card; `medassay.load_bank` reads one.

    Attributes
    ----------
    version : changes with every change of an item
    items : a tuple, or a view of a file that reads an item when it is asked for, so that a bank of
        a million items costs an index and no more
    content_hash : SHA-256 over the items, which a workspace remembers for each version
    limits : what may not be concluded from it
    may_leave : whether it may be sent to models outside
    kept, dropped : how many items an import took, and left out for which reason

    Examples
    --------
    >>> from medassay import load_bank
    >>> bank = load_bank("demo")
    >>> bank.licence, bank.domains[:2]
    ('CC0-1.0', ('cardiology', 'emergency-medicine'))
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
    card: CardObject = field(default_factory=CardObject)
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
    shown, banked = LETTERS[: len(order)], banked_letters(order)
    return f"options shown as {', '.join(shown)} were {', '.join(banked)} of the bank"


def banked_letters(order: Sequence[int]) -> list[str]:
    """Return the letters that options have in the bank, in the order in which they were shown; see
    `shuffle_text`.
    """
    return [LETTERS[place] for place in order]
