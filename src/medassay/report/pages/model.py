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
        for part in board.by_metric:
            for domain in (OVERALL, *part.domains):
                for row in part.rows(domain):
                    if row.model == model:
                        key = ShownCell(
                            domain=domain, model=model, setting=row.setting, mode=row.mode
                        )
                        cell = None if domain == OVERALL else part.cell_link(key)
                        place = part.ranking_path(domain, row.mode)
                        rows.append((domain, row, cell, place))
        spec = board.manifest["models"][model]
        yield render(
            "model.html",
            board,
            f"model/{board.slug(model)}/",
            model=model,
            rows=rows,
            spec=spec,
        )
