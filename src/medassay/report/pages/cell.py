"""One cell: its facts, then every answer and how it was parsed; long cells have several pages.

In a compact publication one page shows every cell: it reads the answers of a model from a file.
"""

from collections.abc import Iterator
from itertools import groupby, islice

from medassay.report.board import Board
from medassay.report.judge_graph import drawings
from medassay.report.pages.html import Page, render

ANSWERS_A_PAGE = 250
_LINES_AT_ONCE = 10_000


def pages(board: Board) -> Iterator[Page]:
    """Yield the pages of each cell, one page in memory at a time."""
    if board.compact:
        yield from _compact(board)
        return
    rows = {
        (domain, *row.key, row.mode): row for domain in board.domains for row in board.rows(domain)
    }
    graphs = drawings(board.manifest.get("graphs", []))
    for key, answers in board.answers():
        row = rows[key.domain, key.model, key.setting, key.mode]
        total = sum(row.outcomes.values())
        count = max(1, -(-total // ANSWERS_A_PAGE))
        for number in range(count):
            path = board.cell_path(key) + (f"page-{number + 1}/" if number else "")
            yield render(
                "cell.html",
                board,
                path,
                key=key,
                row=row,
                answers=list(islice(answers, ANSWERS_A_PAGE)),
                number=number + 1,
                count=count,
                first=board.cell_path(key),
                drawings=graphs,
            )


def _compact(board: Board) -> Iterator[Page]:
    """Yield the page of all cells and, some lines at a time, each model's file."""
    yield render("cells.html", board, "cell/")
    for model, lines in groupby(board.lines(), key=lambda entry: entry[0]):
        while part := b"".join(line for _, line in islice(lines, _LINES_AT_ONCE)):
            yield f"cell/{board.answers_file(model)}", part.decode()
