"""One cell: its facts, then every answer and how it was parsed; long cells have several pages."""

from collections.abc import Iterator

from medassay.publication.board import Board
from medassay.publication.page.html import Page, render

ANSWERS_A_PAGE = 250


def pages(board: Board) -> Iterator[Page]:
    """Yield the pages of each cell, one cell in memory at a time."""
    for key, answers in board.answers():
        row = next(
            r
            for r in board.rows(key.domain, key.mode)
            if (r["model"], r["setting"]) == (key.model, key.setting)
        )
        count = max(1, -(-len(answers) // ANSWERS_A_PAGE))
        for number in range(count):
            path = board.cell_path(key) + (f"page-{number + 1}/" if number else "")
            part = answers[number * ANSWERS_A_PAGE : (number + 1) * ANSWERS_A_PAGE]
            yield render(
                "cell.html",
                board,
                path,
                key=key,
                row=row,
                answers=part,
                number=number + 1,
                count=count,
                first=board.cell_path(key),
                total=len(answers),
            )
