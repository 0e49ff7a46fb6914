"""One cell: its facts, then every answer and how it was parsed; long cells have several pages.

In a compact publication one page shows every cell: it reads the answers of a model from a file.
"""

from collections.abc import Iterator
from itertools import groupby, islice

from medassay.core.records.statistics import LeaderboardRow
from medassay.core.records.trial import CellKey
from medassay.report.board import ANSWERS_A_PAGE, Board
from medassay.report.judge_graph import drawings
from medassay.report.pages.html import Page, render

_LINES_AT_ONCE = 10_000


def pages(board: Board) -> Iterator[Page]:
    """Yield the pages of each cell, one page in memory at a time."""
    if board.compact:
        yield from _compact(board)
        return
    rows: dict[CellKey, list[tuple[LeaderboardRow, Board]]] = {}  # one of each metric
    for part in board.by_metric:
        for domain in part.domains:
            for row in part.rows(domain):
                rows.setdefault((domain, *row.key, row.mode), []).append((row, part))
    graphs = drawings(board.manifest.graphs)
    # Rows of several metrics do not count the answers of a baseline where nothing is chosen.
    totals = (
        {key: sum(1 for _ in answers) for key, answers in board.answers()} if board.metrics else {}
    )
    for key, answers in board.answers():
        of_metrics = rows.get((key.domain, key.model, key.setting, key.mode), [])
        if not of_metrics:
            continue
        row, part = of_metrics[0]
        total = totals.get(key, sum(row.outcomes.values()))
        count = max(1, -(-total // ANSWERS_A_PAGE))
        for number in range(count):
            path = board.cell_path(key) + (f"page-{number + 1}/" if number else "")
            yield render(
                "cell.html",
                board,
                path,
                key=key,
                row=row,
                judged=any(board_of_row.judged for _, board_of_row in of_metrics),
                rows=[of_metric for of_metric, _ in of_metrics],
                ranking=part.ranking_path(key.domain, key.mode),
                rows_beside=[
                    (of_metric, beside.ranking_path(key.domain, key.mode))
                    for of_metric, beside in of_metrics[1:]
                ],
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
