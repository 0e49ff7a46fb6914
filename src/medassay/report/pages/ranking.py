"""The ranking: overall and for each domain, one page a mode."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from medassay.core.ledger import PublicationStatus
from medassay.core.records.relations import Relations
from medassay.core.records.statistics import OVERALL
from medassay.core.scale import scale_text
from medassay.report.board import Board, RankedRow, shown_rows
from medassay.report.pages.html import Page, metric_name, render
from medassay.report.pages.matrix import few_rows, matrix_path
from medassay.report.row_filters import row_filters

_PAIRS_SHOWN = 200  # more pairs are in data/pairs.csv


def pages(board: Board) -> Iterator[Page]:
    """Yield every ranking page."""
    for part in board.by_metric:
        for mode in part.modes:
            for domain in (OVERALL, *part.domains):
                yield ranking(part, domain, mode)


def ranking(
    board: Board,
    domain: str,
    mode: str,
    *,
    up: str | None = None,
    publications: Sequence[PublicationStatus] = (),
    state: PublicationStatus | None = None,
) -> Page:
    """Return one ranking page.

    A site's first page also says its status and lists its publications, newest first. The first
    page of a run with several metrics shows the rankings by all of them, one below the other.
    """
    board = board.by_metric[0]
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
        matrix_rows=few_rows(board, mode) if domain == OVERALL else (),
        matrix_path=matrix_path(board, mode) if len(board.domains) > 1 else "",
        metric=metric_text(board),
        scale=board.statistics.scale.ends,
        judged=board.judged,
        beside=[_beside(part, mode) for part in board.metrics if part.folder]
        if domain == OVERALL and not board.folder
        else [],
        filters=row_filters(
            board.rows(domain, mode),
            board.manifest.models,
            {} if board.identity is None else board.identity.settings,
        ),
    )


class _OtherRanking(msgspec.Struct, frozen=True, kw_only=True):
    """What the first page shows of the ranking by another metric."""

    board: Board
    ranked: Sequence[RankedRow]
    others: Sequence[RankedRow]
    relations: Relations
    sentence: str
    metric: str
    judged: bool


def _beside(board: Board, mode: str) -> _OtherRanking:
    ranked, others = shown_rows(board.rows(OVERALL, mode))
    return _OtherRanking(
        board=board,
        ranked=ranked,
        others=[entry for entries in others.values() for entry in entries],
        relations=board.relations(OVERALL, mode),
        sentence=board.statistics.sentence(OVERALL, mode),
        metric=metric_text(board),
        judged=board.judged,
    )


def metric_text(board: Board) -> str:
    """Return the metric with its unit, as a caption begins."""
    scale, texts = board.statistics.scale, board.texts
    name = texts.said(metric_name(board.statistics.metric))
    if scale.is_share:
        return f"{name} in %"
    words = scale_text(scale.ends, scale.better)
    for english in ("lower is better", "from", "to"):
        words = re.sub(rf"\b{english}\b", texts.said(english), words)
    return f"{name}, {words}"
