"""The text of pages in the order in which people read it: columns one after the other, tables row by row.

Pages are cut where nothing stands (recursive XY-cut): a gap from top to bottom between two blocks of prose parts
columns, any other gap parts lines. Headers, footers and page numbers are what stands again at the edge of other pages.

Source: Nagy and Seth (1984), "Hierarchical representation of optically scanned documents".
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from medassay.synthesis.pdf_pages import Piece

_PROSE = (
    20  # characters of a line of prose, at the middle of a block; cells of tables are shorter
)
_LEAST_LINES = 3  # of a column
_TALL_GAP = 0.6  # heights of a line, beyond what parts paragraphs
_EDGE = 3  # lines at the top and the bottom where headers and footers stand
_MOST_ROWS = 120  # of a page whose columns are sought: the search tries all pairs of them
_CELLS = "  "  # between pieces of one line


def reading_order(pages: Sequence[Sequence[Piece]]) -> str:
    """Return the text of pages, a line for each line, headers and footers left out.

    Parameters
    ----------
    pages : the pieces of lines of each page: left, top, right, bottom (from above), text
    """
    return "\n".join(_without_edges([[*_lines(list(page))] for page in pages]))


def _lines(pieces: list[Piece]) -> Iterator[str]:
    parts = _blocks(pieces) or _columns(pieces) or _around_columns(pieces) or _cut(pieces, 1)
    if len(parts) > 1:
        for part in parts:
            yield from _lines(part)
    elif pieces:
        ordered = sorted(pieces, key=lambda piece: piece[0])
        yield _CELLS.join(piece[4].strip() for piece in ordered)


def _blocks(pieces: list[Piece]) -> list[list[Piece]]:
    """Return what a gap across the whole width parts that is taller than a line, none where there is no such gap."""
    if not pieces:
        return []
    parts = _cut(pieces, 1, least=_TALL_GAP * median(p[3] - p[1] for p in pieces))
    return parts if len(parts) > 1 else []


def _columns(pieces: list[Piece]) -> list[list[Piece]]:
    """Return blocks of prose beside each other, none where there are not at least two."""
    parts = _cut(pieces, 0)
    if len(parts) < 2 or not all(map(_is_prose, parts)):
        return []
    return parts


def _is_prose(pieces: Sequence[Piece]) -> bool:
    return len(pieces) >= _LEAST_LINES and median(len(p[4]) for p in pieces) >= _PROSE


def _around_columns(pieces: list[Piece]) -> list[list[Piece]]:
    """Return head, columns and foot of a page that has columns between lines that cross them.

    The rows are taken together from the first on, as many as stand in columns: cutting each line apart would read across.
    """
    rows = _cut(pieces, 1)
    if len(rows) > _MOST_ROWS:
        return []
    for start in range(len(rows)):
        for end in range(len(rows), start + _LEAST_LINES - 1, -1):
            if end - start == len(rows):
                continue
            block = [piece for row in rows[start:end] for piece in row]
            if _columns(block):
                head = [piece for row in rows[:start] for piece in row]
                foot = [piece for row in rows[end:] for piece in row]
                return [part for part in (head, block, foot) if part]
    return []


def _cut(pieces: list[Piece], axis: int, *, least: float | None = None) -> list[list[Piece]]:
    """Return the groups between which nothing stands, along an axis: 0 across, 1 down; gaps from `least` on."""
    parts: list[list[Piece]] = []
    end = float("-inf")
    for piece in sorted(pieces, key=lambda p: (p[axis], p[1 - axis])):
        box = piece[:4]
        # Boxes of neighbouring lines touch: what overlaps by less than a third of its height is another line.
        gap = least if least is not None else -(piece[3] - piece[1]) / 3 if axis == 1 else 0.0
        if box[axis] - end >= gap:
            parts.append([])
        parts[-1].append(piece)
        end = max(end, box[axis + 2])
    return parts


def _without_edges(pages: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of all pages but those that stand at the same edge of other pages, numbers aside."""
    marks = [{_mark(line) for line in (*page[:_EDGE], *page[-_EDGE:])} for page in pages]
    counted = Counter(mark for found in marks for mark in found)
    for page in pages:
        for at, line in enumerate(page):
            at_edge = at < _EDGE or at >= len(page) - _EDGE
            again = counted[_mark(line)] > 1 and 2 * counted[_mark(line)] >= len(pages)
            if not (at_edge and (again or _PAGE_NUMBER.fullmatch(line.strip()))):
                yield line


_PAGE_NUMBER = re.compile(
    r"(?:page\s+|p\.\s*|seite\s+|página\s+)?\d{1,4}(?:\s*(?:of|/|von|de)\s*\d{1,4})?",
    re.IGNORECASE,
)


def _mark(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.casefold().split()))
