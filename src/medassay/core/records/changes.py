"""`PublicationChanges`: what a publication says otherwise than the one before it on its site."""

import msgspec

from medassay.core.records.statistics import RankRange


class PublicationRoot(msgspec.Struct, frozen=True, kw_only=True):
    """A publication by its id and the hash over its records."""

    publication: str
    root: str
    date: str


class ChangedField(msgspec.Struct, frozen=True, kw_only=True):
    """A field before and after; "" where there was none."""

    name: str
    before: str
    after: str


class ChangedBank(msgspec.Struct, frozen=True, kw_only=True):
    """A question bank: its versions, "" where it is new or left, and what its own list of changes
    says of the versions since.
    """

    name: str
    before: str
    after: str
    text: str = ""


class ChangedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model: `new`, `left`, or `changed` in the fields that are named."""

    model: str
    what: str
    fields: list[ChangedField] = []


class ChangedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item: `corrected`, `added` or `removed`.

    Attributes
    ----------
    fields : names of what differs, never the texts: an item may have to be deleted by law
    disputes : numbers of upheld disputes about it
    """

    domain: str
    item: str
    what: str
    fields: list[str] = []
    disputes: list[int] = []


class RowPlace(RankRange, frozen=True, kw_only=True):
    """Score and range of ranks of a row in one publication; `interval` says how lo and hi were
    made.
    """

    score: float | None
    lo: float | None
    hi: float | None
    n: int


class ChangedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of one ranking whose score, range of ranks or number of items differs.

    Attributes
    ----------
    scale : lower and upper end of the scores
    before, after : None where the row is new, or left
    items : items of the ranking that were corrected, added or removed
    answers : answers of the row that differ, to items that did not change
    rescored : equal answers to items that did not change, with another score
    """

    domain: str
    metric: str
    scale: tuple[float | None, float | None]
    model: str
    setting: str
    mode: str
    before: RowPlace | None
    after: RowPlace | None
    items: int = 0
    answers: int = 0
    rescored: int = 0

    @property
    def moved(self) -> bool:
        """Return whether its range of ranks is another one."""
        if self.before is None or self.after is None:
            return True
        return self.before.rank_text() != self.after.rank_text()


class PublicationChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a publication says otherwise than an earlier one of its site, by the records of both.

    Attributes
    ----------
    earlier, later : the two publications
    same_series : whether both have the same banks and methodology, so that scores can be compared
    reason : why bank or methodology changed, in the words of the publisher
    further : what else a number depends on: methodology, judges, task
    not_compared : items and answers whose text is withheld or deleted
    rows_before, rows_after : numbers of rows of all rankings
    """

    schema_version: int = 1
    earlier: PublicationRoot
    later: PublicationRoot
    same_series: bool
    reason: str = ""
    banks: list[ChangedBank] = []
    models: list[ChangedModel] = []
    further: list[ChangedField] = []
    items: list[ChangedItem] = []
    rows: list[ChangedRow] = []
    not_compared: int = 0
    rows_before: int
    rows_after: int
