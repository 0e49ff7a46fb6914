"""Which trials of a run somebody looks for, and in which order: filters of the viewer as SQL."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from medassay.core.records.answer import OUTCOMES
from medassay.errors import UsageError
from medassay.viewer.entry import GRADES
from medassay.viewer.index import RunIndex

PAGE_SIZE = 50
MOST_PAGES = 100_000
Grade = Literal["", "right", "partial", "wrong", "none"]
Judges = Literal["", "agree", "differ", "far"]
Sort = Literal["", "score", "length", "seconds", "spread", "tokens", "cost", "item", "newest"]
_NAMED = ("model", "domain", "setting", "mode", "item", "reason", "scorer", "shape")
_OUTCOMES: tuple[str, ...] = OUTCOMES
_SPREADS: dict[str, tuple[str, float]] = {
    "agree": ("t.spread = ?", 0),
    "differ": ("t.spread > ?", 0),
    "far": ("t.spread >= ?", 0.5),  # half the scale
}
_WORD = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')
_ORDERS = {
    "score": "t.score",
    "length": "t.length",
    "seconds": "t.seconds",
    "spread": "t.spread",
    "tokens": "t.completion_tokens",
    "cost": "t.cost",
    "newest": "t.n",
}
Number = str  # as a form sends it; "" where nothing was filled in


class TrialFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """What a table of trials is asked for, as its address says it; "" filters nothing.

    Attributes
    ----------
    grade : where the score lies on its scale; `none` where there is none
    reason : the rule that read the reply, or why nothing could be read
    cut : "yes" for replies that ended at their token limit
    judges : whether they give one score, differ, or lie half the scale apart
    least, most : characters of the reply
    text : words that the reply has; in quotation marks a phrase, with `*` a beginning, with `-`
        what it has not
    """

    model: str = ""
    domain: str = ""
    setting: str = ""
    mode: str = ""
    item: str = ""
    outcome: str = ""
    grade: Grade = ""
    reason: str = ""
    scorer: str = ""
    value: str = ""
    shape: str = ""
    cut: Literal["", "yes", "no"] = ""
    judges: Judges = ""
    least: Number = ""
    most: Number = ""
    text: str = ""
    sort: Sort = ""
    down: Literal["", "yes"] = ""
    page: str = "1"

    @property
    def number(self) -> int:
        """Return the number of the page, from 1."""
        return max(1, min(_whole("page", self.page) or 1, MOST_PAGES))

    @property
    def narrowed(self) -> dict[str, str]:
        """Return what is filtered by."""
        plain = {name: getattr(self, name) for name in self.__struct_fields__}
        return {k: v for k, v in plain.items() if v and k not in ("sort", "down", "page")}

    def query(self, **changes: str) -> dict[str, str]:
        """Return what the address of this filter says, with changes; without what says nothing."""
        plain = {name: getattr(self, name) for name in self.__struct_fields__} | changes
        return {k: v for k, v in plain.items() if v and (k, v) != ("page", "1")}


class FoundTrials(NamedTuple):
    """A page of trials, how many there are in all, and which page it is: the last one where a later
    one was asked for.
    """

    numbers: list[int]
    total: int
    page: int
    n_pages: int


def read_filter(query: Mapping[str, str]) -> TrialFilter:
    """Return the filter in the query of an address.

    Raises
    ------
    UsageError
        Naming what is not as expected.
    """
    fields = TrialFilter.__struct_fields__
    try:
        wish = msgspec.convert({k: v for k, v in query.items() if k in fields}, TrialFilter)
    except msgspec.ValidationError as error:
        raise UsageError(f"the address: {error}") from None
    for name, value in (("least", wish.least), ("most", wish.most), ("page", wish.page)):
        _whole(name, value)
    if wish.outcome and wish.outcome not in _OUTCOMES:
        raise UsageError(
            f"the address: outcome '{wish.outcome:.60}'; expected one of {', '.join(OUTCOMES)}"
        )
    return wish


def _whole(name: str, value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 12):
        raise UsageError(f"the address: {name} '{value:.40}'; expected a whole number from 0")
    return int(value)


def find_trials(index: RunIndex, wish: TrialFilter) -> FoundTrials:
    """Return the trials that a filter names, one page of them in its order."""
    conditions, values = conditions_of(index, wish)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    total = count_trials(index, where, tuple(values), index.version)
    n_pages = max(1, -(-total // PAGE_SIZE))
    page = min(wish.number, n_pages)
    direction = "DESC" if wish.down else "ASC"
    # Without an order: as a sealed run has them; of one under way the newest first.
    order = "t.n" if index.sealed else "t.n DESC"
    table = "trial t"
    if wish.sort == "item":
        table += " JOIN name i ON i.id = t.item"
        order = f"i.text {direction}, {order}"
    elif wish.sort == "newest":
        order = f"t.n {direction}"
    elif wish.sort:
        column = _ORDERS[wish.sort]
        order = f"{column} IS NULL, {column} {direction}, {order}"
    rows = index.rows(
        f"SELECT t.n FROM {table}{where} ORDER BY {order} LIMIT ? OFFSET ?",
        *values,
        PAGE_SIZE,
        PAGE_SIZE * (page - 1),
    )
    return FoundTrials([number for (number,) in rows], total, page, n_pages)


@lru_cache(maxsize=64)
def count_trials(index: RunIndex, where: str, values: Sequence[Any], version: int) -> int:
    """Return how many trials there are; the same question is answered from memory until the index
    has grown (`version`).
    """
    del version
    if not where:
        return index.n_trials
    [[total]] = index.rows(f"SELECT count(*) FROM trial t{where}", *values)
    return int(total)


def conditions_of(index: RunIndex, wish: TrialFilter) -> tuple[list[str], list[Any]]:
    """Return the conditions of a filter on the table `trial t`, and their values."""
    pairs: list[tuple[str, Any]] = []
    for kind in _NAMED:
        if text := getattr(wish, kind):
            number = index.number_of_name(kind, text)
            pairs.append((f"t.{kind} = ?", -1 if number is None else number))
    if wish.outcome:
        pairs.append(("t.outcome = ?", _OUTCOMES.index(wish.outcome)))
    if wish.grade:
        grade = None if wish.grade == "none" else GRADES.index(wish.grade)
        pairs.append(("t.score IS ?" if grade is None else "t.grade = ?", grade))
    if wish.value:
        pairs.append(("t.value = ?", wish.value))
    if wish.cut:
        pairs.append(("t.cut = ?", wish.cut == "yes"))
    if wish.judges:
        pairs.append(_SPREADS[wish.judges])
    for sign, bound in ((">=", wish.least), ("<=", wish.most)):
        if bound:
            pairs.append((f"t.length {sign} ?", int(bound)))
    terms, unwanted = words_of(wish.text)
    for words, sign in ((terms, "IN"), (unwanted, "NOT IN")):
        if words:
            pairs.append((f"t.n {sign} (SELECT rowid FROM reply WHERE reply MATCH ?)", words))
    return [condition for condition, _ in pairs], [value for _, value in pairs]


def words_of(text: str) -> tuple[str, str]:
    """Return what somebody typed as two queries of SQLite's full-text search: what a reply has, and
    what it has not; each "" for nothing.

    Whatever is typed is taken for words: nothing of the query language of the search gets through.

    Raises
    ------
    UsageError
        When something was typed and no word is in it.

    Examples
    --------
    >>> words_of('beta blocker "acute heart" -aspirin fur*')
    ('"beta" AND "blocker" AND "acute heart" AND "fur" *', '"aspirin"')
    >>> words_of('NEAR(a b) OR "')
    ('"NEAR(a" AND "b)" AND "OR"', '')
    """
    terms: list[str] = []
    unwanted: list[str] = []
    for match in _WORD.finditer(text.replace("\x00", " ")):
        minus, phrase, word = match[1], match[2], match[3]
        term = phrase or word or ""
        begins = word is not None and term.endswith("*")
        term = term.rstrip("*")
        if any(character.isalnum() for character in term):
            (unwanted if minus else terms).append(f'"{term}"' + (" *" if begins else ""))
    if text.strip() and not (terms or unwanted):
        raise UsageError(f"the address: text '{text:.40}' has no word to search for")
    return " AND ".join(terms), " OR ".join(unwanted)


SORTS: tuple[str, ...] = tuple(sort for sort in get_args(Sort) if sort)
