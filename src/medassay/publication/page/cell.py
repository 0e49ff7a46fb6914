"""One cell: its facts, then every answer and how it was parsed; long cells have several pages.

In a compact publication one page shows every cell: it reads the answers of a model from a file.
"""

from collections.abc import Iterator

from medassay.core.canonical import canonical
from medassay.publication.board import Board
from medassay.publication.page.graph import drawings
from medassay.publication.page.html import Page, render

ANSWERS_A_PAGE = 250


def pages(board: Board) -> Iterator[Page]:
    """Yield the pages of each cell, one cell in memory at a time."""
    if board.compact:
        yield from _compact(board)
        return
    rows = {
        (domain, row["model"], row["setting"], row["mode"]): row
        for domain in board.domains
        for row in board.statistics["domains"][domain]
    }
    graphs = drawings(board.manifest.get("graphs", []))
    for key, answers in board.answers():
        row = rows[key.domain, key.model, key.setting, key.mode]
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
                drawings=graphs,
            )


def _compact(board: Board) -> Iterator[Page]:
    """Yield the page of all cells and, cell by cell, the lines of each model's file."""
    yield render("cells.html", board, "cell/")
    for key, answers in board.answers():
        lines = [
            canonical(
                {
                    "because": answer.because,
                    "panel": answer.panel,
                    "score": answer.score,
                    "sha256": answer.sha256,
                    "trial": answer.trial,
                    **({"verdicts": answer.verdicts} if answer.verdicts else {}),
                }
            ).decode()
            + "\n"
            for answer in answers
        ]
        yield f"cell/{board.answers_file(key.model)}", "".join(lines)
