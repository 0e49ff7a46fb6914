"""One page a model: every domain and setting with score, interval, rank, and the way to its
answers.
"""

from collections.abc import Iterator

from medassay.core.records.statistics import OVERALL
from medassay.report.board import Board, ShownCell
from medassay.report.pages.html import Page, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of each model."""
    for model in board.models:
        rows = []
        for domain in (OVERALL, *board.domains):
            for row in board.rows(domain):
                if row.model == model:
                    key = ShownCell(domain=domain, model=model, setting=row.setting, mode=row.mode)
                    cell = None if domain == OVERALL else board.cell_link(key)
                    rows.append((domain, row, cell))
        spec = board.manifest["models"][model]
        yield render(
            "model.html",
            board,
            f"model/{board.slug(model)}/",
            model=model,
            rows=rows,
            spec=spec,
        )
