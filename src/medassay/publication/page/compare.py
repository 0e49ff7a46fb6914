"""Pairs of models over all domains: difference, interval, tests, and whether they are separable."""

from collections.abc import Iterator, Mapping
from typing import Any

from medassay.publication.board import OVERALL, Board
from medassay.publication.page.figures import drawn, shown
from medassay.publication.page.html import Page, render
from medassay.publication.plot.figure import Figure
from medassay.publication.plot.forest import forest

PAIRS_A_PAGE = 1000
_DRAWN = 40


def pages(board: Board) -> Iterator[Page]:
    """Yield the pages of every mode, the first with its figure."""
    for mode in board.modes:
        pairs = board.relations(OVERALL, mode)["pairs"]
        track = "" if mode == board.modes[0] else f"{board.slug(mode, 'mode')}/"
        name = f"forest-{board.slug(mode, 'mode')}"
        made = pairs_figure(board.statistics, mode)
        if pairs:
            yield from drawn(made, name)
        count = max(1, -(-len(pairs) // PAIRS_A_PAGE))
        for number in range(count):
            path = f"compare/{track}" + (f"page-{number + 1}/" if number else "")
            yield render(
                "compare.html",
                board,
                path,
                mode=mode,
                pairs=pairs[number * PAIRS_A_PAGE : (number + 1) * PAIRS_A_PAGE],
                total=len(pairs),
                drawn=min(_DRAWN, len(pairs)),
                number=number + 1,
                count=count,
                first=f"compare/{track}",
                relations=board.relations(OVERALL, mode),
                scale=[board.statistics["scale"][end] for end in ("lo", "hi")],
                **shown(made, name),
            )


def pairs_figure(statistics: Mapping[str, Any], mode: str) -> Figure:
    """Return the forest of a run's first pairs over all domains."""
    scale = statistics["scale"]
    hundred = (scale["lo"], scale["hi"]) == (0, 1)
    pairs = statistics["fields"][mode][OVERALL]["pairs"]
    return forest(
        [_named(pair) for pair in pairs[:_DRAWN]],
        unit="points of 100" if hundred else "units of the score",
        factor=100 if hundred else 1,
    )


def _named(pair: dict[str, Any]) -> dict[str, Any]:
    one, other = pair["first"], pair["second"]
    same = one[1] == other[1]
    names = (one[0], other[0]) if same else (" · ".join(one), " · ".join(other))
    return {
        "a": names[0],
        "b": names[1],
        "diff": pair["difference"],
        "lo": pair["lo"],
        "hi": pair["hi"],
        "different": pair["different"],
    }
