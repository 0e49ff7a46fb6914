"""Badges: the range of ranks of a row as a small SVG, for pages elsewhere."""

from collections.abc import Iterator
from html import escape

from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.wording import visible
from medassay.report.board import Board

_WIDTH = 6.6  # of a character, about; `textLength` makes the text as wide as its field
_MOST = 40  # characters of a name


def badges(board: Board) -> Iterator[tuple[str, str]]:
    """Yield (address, SVG) of the badge of every ranked row over all domains."""
    for part in board.by_metric:
        for mode in part.modes:
            rows = part.rows(OVERALL, mode)
            n_ranked = sum(row.rank is not None for row in rows)
            for row in rows:
                if row.rank is not None:
                    yield badge_path(part, row), badge(part, row, n_ranked)


def badge_path(board: Board, row: LeaderboardRow) -> str:
    """Return the address of a row's badge, relative to the publication."""
    name = f"{row.model}\x1f{row.setting}\x1f{row.mode}"
    return f"{board.folder}badge/{board.slug(name, 'badge')}.svg"


def badge(board: Board, row: LeaderboardRow, n_ranked: int) -> str:
    """Return a badge: the board's name, and the row's range of ranks in this publication."""
    name = visible(board.title)
    if len(name) > _MOST:
        name = f"{name[: _MOST - 1]}…"
    place = board.texts.said(f"rank {row.rank_text()} of {n_ranked}")
    words = f"{'DEMONSTRATION: ' if board.demonstration else ''}{place} · {board.publication}"
    name_width, place_width = _WIDTH * len(name), _WIDTH * len(words)
    width = name_width + place_width + 24
    title = escape(f"{name}: {visible(row.model)}, {words}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="22" role="img"'
        f' viewBox="0 0 {width:.0f} 22"><title>{title}</title>'
        f'<rect width="{name_width + 12:.1f}" height="22" fill="#17202b"/>'
        f'<rect x="{name_width + 12:.1f}" width="{place_width + 12:.1f}" height="22"'
        ' fill="#0a5c66"/>'
        '<g fill="#fff" font-family="system-ui, sans-serif" font-size="12">'
        f'<text x="6" y="15" textLength="{name_width:.1f}">{escape(name)}</text>'
        f'<text x="{name_width + 18:.1f}" y="15" textLength="{place_width:.1f}">'
        f"{escape(words)}</text>"
        "</g></svg>\n"
    )
