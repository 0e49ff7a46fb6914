"""What people look at in a notebook: data frames of pandas or polars, and small tables in HTML.

The HTML has no script, loads nothing, and takes its colours from the page around it, so that it
can be read on a dark page as on a light one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from medassay.core.wording import visible
from medassay.errors import InputError

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")
FrameValue: TypeAlias = (
    "str | float | bool | Sequence[FrameValue] | Mapping[str, FrameValue] | None"
)
FrameRow = Mapping[str, FrameValue]  # by the names of its columns
SHOWN = 20  # rows of a table in a notebook; of the others the number is told
_LONGEST_CELL = 160  # characters
_RULE = "1px solid rgba(128,128,128,.35)"
_CELL = (
    "padding:.25em .75em;text-align:left;vertical-align:top;white-space:pre-wrap;"
    f"border-bottom:{_RULE}"
)


class Tabular(ABC):
    """What can be read as a table: `to_pandas`, `to_polars`, and a few rows in a notebook."""

    @abstractmethod
    def table_rows(self) -> Iterator[FrameRow]:
        """Yield the rows, each a mapping from columns to plain values."""

    def to_pandas(self) -> "pandas.DataFrame":
        """Return all rows as a pandas DataFrame; what a row does not have is missing there.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise InputError(
                "to_pandas needs pandas: pip install 'medassay[notebook]', or pandas alone"
            ) from None
        return pandas.DataFrame(columns_of(self.table_rows()))

    def to_polars(self) -> "polars.DataFrame":
        """Return all rows as a polars DataFrame; what a row does not have is null there.

        Raises
        ------
        InputError
            When polars is not installed.
        """
        try:
            import polars
        except ImportError:
            raise InputError("to_polars needs polars: pip install polars") from None
        # Types follow from all rows: the first hundred may hold whole numbers or nothing.
        return polars.DataFrame(
            columns_of(self.table_rows()), strict=False, infer_schema_length=None
        )

    def _repr_html_(self) -> str:
        rows = self.table_rows()
        columns = columns_of(islice(rows, SHOWN))
        cells = [[cell_text(value) for value in row] for row in zip(*columns.values(), strict=True)]
        return table_html(list(columns), cells, n_more=sum(1 for _ in rows))


class Records(Tabular, Generic[T]):
    """The records of one kind that a run holds, read from its files each time they are iterated.

    `len` counts them; nothing is kept in memory.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T]:
        """Yield the records in the order of the file."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many there are."""


def columns_of(rows: Iterable[FrameRow]) -> dict[str, list[FrameValue]]:
    """Return rows as columns of equal length, None where a row does not have one.

    Examples
    --------
    >>> columns_of([{"item": "q1", "score": 1.0}, {"item": "q2", "judge": "x"}])
    {'item': ['q1', 'q2'], 'score': [1.0, None], 'judge': [None, 'x']}
    """
    columns: dict[str, list[FrameValue]] = {}
    for n_rows, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                columns[name] = [None] * n_rows
            columns[name].append(value)
        if len(row) < len(columns):
            for name in columns.keys() - row.keys():
                columns[name].append(None)
    return columns


def cell_text(value: FrameValue) -> str:
    """Return a value as a cell of a table shows it: nothing for None, long text cut.

    Examples
    --------
    >>> cell_text(None), cell_text(0.25), cell_text(True), cell_text(["a", "b"])
    ('', '0.25', 'True', "['a', 'b']")
    """
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


def table_html(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    n_more: int = 0,
    notes: Sequence[str] = (),
    markup: frozenset[int] = frozenset(),
) -> str:
    """Return a table as HTML that stands by itself: all texts escaped, no script, no link.

    Parameters
    ----------
    n_more : how many rows are not shown
    notes : lines below the table
    markup : places of columns whose cells are HTML that we made ourselves

    Examples
    --------
    >>> "<th" in table_html(["model"], [["<b>"]]), "&lt;b&gt;" in table_html(["model"], [["<b>"]])
    (True, True)
    """
    head = "".join(
        f'<th scope="col" style="{_CELL}">{escape(visible(name))}</th>' for name in headings
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL}">{cell if at in markup else escape(visible(cell))}</td>'
            for at, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    caption = (
        f'<caption style="text-align:left;font-weight:bold">{escape(visible(title))}</caption>'
        if title
        else ""
    )
    more = [f"… {n_more:,} more"] if n_more else []
    below = "".join(
        f'<p style="margin:.4em 0">{escape(visible(line))}</p>' for line in (*more, *notes)
    )
    return (
        '<div style="overflow-x:auto" tabindex="0"><table style="border-collapse:collapse">'
        f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )
