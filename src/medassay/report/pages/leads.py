"""Who has the first place where, on which share of items each model is best, and the bound above
them.
"""

from collections.abc import Iterator

from medassay.core.records.statistics import OVERALL
from medassay.core.wording import listed
from medassay.report.board import Board
from medassay.report.pages.html import Page, metric_name, render


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    tables = []
    for part in board.by_metric:
        for mode in part.modes:
            for domain in (OVERALL, *part.domains):
                relations = part.relations(domain, mode)
                tables.append(
                    {
                        "domain": domain,
                        "mode": mode,
                        "metric": board.texts.said(metric_name(part.statistics.metric)),
                        "scale": part.statistics.scale.ends,
                        "oracle": relations.oracle,
                        "n": relations.n_common,
                    }
                )
    texts = {
        board.texts.said(metric_name(part.statistics.metric)): board.texts.said(leaders_text(part))
        for part in board.by_metric
    }
    said = " ".join(
        f"{metric}: {text}" if len(texts) > 1 else text for metric, text in texts.items()
    )
    yield render("leads.html", board, "leads/", tables=tables, said=said)


def leaders_text(board: Board) -> str:
    """Return who has the first place where, in the board's first mode: as much as the ranges of
    ranks say.
    """
    first: list[set[str]] = []  # of each domain that ranks: the models whose first rank is 1
    for domain in board.domains:
        rows = [row for row in board.rows(domain, board.modes[0]) if row.rank is not None]
        if rows:
            first.append({row.model for row in rows if row.rank == 1})
    if not first:
        alone = len(board.domains) == 1
        return "No model is ranked." if alone else "No single domain ranks any model."
    where = "in every domain" if len(first) == len(board.domains) else "in every domain that ranks"
    if len(board.domains) == 1:
        where = "here"
    everywhere = sorted(set.intersection(*first))
    if len(everywhere) == 1 and all(len(models) == 1 for models in first):
        return f"{everywhere[0]} has the first place alone {where}."
    if not everywhere:
        return (
            f"No model is first everywhere: {len(set.union(*first))} models have or share the first"
            " place in at least one domain."
        )
    names = listed(everywhere[:5]) + (
        f" and {len(everywhere) - 5} more" if len(everywhere) > 5 else ""
    )
    has = "has or shares" if len(everywhere) == 1 else "have or share"
    return f"{names} {has} the first place {where}."
