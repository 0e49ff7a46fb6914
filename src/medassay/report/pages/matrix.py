"""Models × domains: every model's score in every domain at one look, 100 rows a page."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.report.board import Board
from medassay.report.pages.html import Page, render

ROWS_A_PAGE = 100
FEW_ROWS, FEW_DOMAINS = 30, 12  # up to these the matrix stands below the overall ranking, too
_SHADES = 4


class MatrixCell(msgspec.Struct, frozen=True):
    """A row in one domain, and how dark it is: 4 where no model is shown to be better, less the
    further down its range of ranks begins, 0 where it has no rank or no row is told from another.
    """

    row: LeaderboardRow
    shade: int


class MatrixRow(msgspec.Struct, frozen=True):
    """A row of the overall ranking with its cell in each domain, where it has one."""

    row: LeaderboardRow
    cells: Mapping[str, MatrixCell]


def pages(board: Board) -> Iterator[Page]:
    """Yield the pages of each metric and mode that has several domains."""
    for part in board.by_metric:
        if len(part.domains) < 2:
            continue
        for mode in part.modes:
            rows = matrix_rows(part, mode)
            n_pages = max(1, -(-len(rows) // ROWS_A_PAGE))
            first = matrix_path(part, mode)
            for number in range(n_pages):
                yield render(
                    "matrix.html",
                    part,
                    first + (f"page-{number + 1}/" if number else ""),
                    rows=rows[number * ROWS_A_PAGE : (number + 1) * ROWS_A_PAGE],
                    n_rows=len(rows),
                    mode=mode,
                    number=number + 1,
                    n_pages=n_pages,
                    first=first,
                )


def matrix_path(board: Board, mode: str) -> str:
    """Return the folder of the first matrix page of a mode, relative to the publication."""
    track = "" if mode == board.modes[0] else f"track/{board.slug(mode, 'mode')}/"
    return f"{board.folder}matrix/{track}"


def matrix_rows(board: Board, mode: str) -> list[MatrixRow]:
    """Return the rows of the overall ranking, in its order, each with its cells."""
    cells: dict[tuple[str, str], dict[str, MatrixCell]] = {}
    for domain in board.domains:
        ranking = board.rows(domain, mode)
        n_ranked = sum(row.rank is not None for row in ranking)
        # Where nothing is shown of any pair, all ranges begin at 1, and no row stands out.
        shaded = any(row.rank_lo not in (None, 1) for row in ranking) or n_ranked == 1
        for row in ranking:
            shade = shade_of(row, n_ranked) if shaded else 0
            cells.setdefault(row.key, {})[domain] = MatrixCell(row, shade)
    return [MatrixRow(row, cells.get(row.key, {})) for row in board.rows(OVERALL, mode)]


def few_rows(board: Board, mode: str) -> Sequence[MatrixRow]:
    """Return the rows of a matrix that fits below the overall ranking, none of a larger one."""
    if not 2 <= len(board.domains) <= FEW_DOMAINS or len(board.rows(OVERALL, mode)) > FEW_ROWS:
        return ()
    return matrix_rows(board, mode)


def shade_of(row: LeaderboardRow, n_ranked: int) -> int:
    """Return how dark the cell of a row is, by the first rank of its range, from 0 to 4.

    Examples
    --------
    >>> from types import SimpleNamespace as Row
    >>> [shade_of(Row(rank=1, rank_lo=first), 9) for first in (1, 2, 4, 7, 9)]
    [4, 3, 3, 2, 1]
    >>> shade_of(Row(rank=None, rank_lo=None), 9)
    0
    """
    if row.rank is None or row.rank_lo is None:
        return 0
    if row.rank_lo == 1:
        return _SHADES
    return max(1, _SHADES - 1 - int((_SHADES - 1) * (row.rank_lo - 2) / max(1, n_ranked - 1)))
