"""The ranking: overall and for each domain, one page a mode."""

from collections.abc import Iterator, Sequence

from medassay.core.ledger import PublicationStatus
from medassay.core.records.statistics import OVERALL
from medassay.core.scale import scale_text
from medassay.report.board import Board, shown_rows
from medassay.report.pages.html import Page, render

_PAIRS_SHOWN = 200  # more pairs are in data/pairs.csv


def pages(board: Board) -> Iterator[Page]:
    """Yield every ranking page."""
    for mode in board.modes:
        for domain in (OVERALL, *board.domains):
            yield ranking(board, domain, mode)


def ranking(
    board: Board,
    domain: str,
    mode: str,
    *,
    up: str | None = None,
    publications: Sequence[str] = (),
    state: PublicationStatus | None = None,
) -> Page:
    """Return one ranking page.

    A site's first page also says its status and lists its publications, newest first.
    """
    ranked, others = shown_rows(board.rows(domain, mode))
    relations = board.relations(domain, mode)
    pairs = relations.pairs if len(relations.pairs) <= _PAIRS_SHOWN else []
    return render(
        "ranking.html",
        board,
        board.ranking_path(domain, mode),
        up=up,
        publications=publications,
        state=state,
        domain=domain,
        mode=mode,
        ranked=ranked,
        others=others,
        relations=relations,
        pairs=pairs,
        sentence=board.statistics.sentence(domain, mode),
        metric=metric_text(board),
        scale=board.statistics.scale.ends,
        judged="bench" in board.manifest,
        scripted=any("scripted" in row.flags for row in board.rows(domain, mode)),
    )


def metric_text(board: Board) -> str:
    """Return the metric with its unit, as a caption begins."""
    scale, metric = board.statistics.scale, board.statistics.metric
    name = {"accuracy": "Accuracy", "fact_score": "Fact score", "top100": "Score"}.get(
        metric, metric
    )
    if scale.is_share:
        return f"{name} in %"
    return f"{name}, {scale_text(scale.ends, scale.better)}"
