"""The text of pages in the order in which people read it: columns one after the other, tables row
by row.

A page is parted where a gutter runs: a strip between two blocks of prose that no line crosses.
Gutters are sought before gaps between paragraphs, since in most layouts these lie level in both
columns. What crosses a gutter (a title, a figure, a rule, a table over the whole width) ends it:
columns above are read to their end before those below. A table with ruled lines is read row by row
and cell by cell. Running heads and page numbers, which stand at the same height of other pages, are
left out; footnotes follow the text of their page, where no sentence is torn by them.

Source: Nagy and Seth (1984), "Hierarchical representation of optically scanned documents"; Breuel
(2002), "Two geometric algorithms for layout analysis" (gutters as the largest strips of white).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec

_PROSE = 20  # characters of a line of prose on average; cells of tables are shorter
_LEAST_LINES = 3  # of a column
_LEAST_GUTTER = 0.5  # heights of a line
_MOST_GUTTERS = 80  # that are tried on a page
_TALL = 1.12  # times the height of the text: a heading
_SMALL = 0.92  # times the height of the text: a footnote
_FOOT = 0.5  # of the page: footnotes stand below
_EDGE = 3  # rows at the top and the bottom where running heads and page numbers stand
_LEVEL = 4.0  # points by which heads of different pages may stand apart
_THIN = 3.0  # points: a ruled line
_SHORT_RULE = 8.0  # points
_CELLS = "  "  # between pieces of one line
_NOTE = re.compile(r"\s*(?:\(?\d{1,2}\)?|[*†‡§¶]{1,3}|\[\d{1,2}\]|[a-d]\))[.)]?\s*\S")
_ENDS = re.compile(r"[.!?:;。！？][\"'”’)\]]*\s*(?:\d{1,2}|\[\d{1,2}\])?\s*$")


class PageBox(msgspec.Struct, frozen=True):
    """A place on a page, in points from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        """Return how far below the upper edge of the page its middle is."""
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        """Return how high it is."""
        return self.bottom - self.top

    def along(self, axis: int) -> tuple[float, float]:
        """Return where it begins and ends: across the page for axis 0, down the page for axis 1."""
        return (self.left, self.right) if axis == 0 else (self.top, self.bottom)


class Piece(PageBox, frozen=True):
    """A piece of a line: what stands on it without a wide gap.

    A table with ruled lines is one piece of several lines.
    """

    text: str

    @property
    def is_table(self) -> bool:
        """Return whether it stands for a table."""
        return "\n" in self.text


class Page(msgspec.Struct, frozen=True):
    """What stands on a page: pieces of lines, and the boxes of drawings and pictures."""

    pieces: Sequence[Piece]
    drawings: Sequence[PageBox] = ()
    height: float = 0.0


def reading_order(pages: Sequence[Page]) -> list[list[str]]:
    """Return the lines of each page, running heads and page numbers left out."""
    ordered: list[list[str]] = []
    waiting: list[str] = []  # footnotes, until a sentence ends
    last = ""
    for page in _without_heads(pages):
        body, notes = _without_notes(page)
        groups = _clusters(page.drawings)
        body = _with_tables(body, groups)
        figures = [box for group in groups if (box := _figure(group, body)) is not None]
        lines = [*_lines(body, [*figures, *_spanning_headings(body)])]
        for note in notes:
            waiting += _lines(note, [])
        last = lines[-1] if lines else last
        if not last or _ENDS.search(last):
            lines += waiting
            last = lines[-1] if lines else last
            waiting = []
        ordered.append(lines)
    if ordered:
        ordered[-1] += waiting
    return ordered


def _lines(pieces: list[Piece], drawings: Sequence[PageBox]) -> Iterator[str]:
    gutter = _gutter(pieces, drawings) if len(pieces) >= 2 * _LEAST_LINES else None
    if gutter is None:
        for row in _rows(pieces):
            yield _CELLS.join(p.text.strip() for p in sorted(row, key=lambda piece: piece.left))
        return
    at, top, bottom = gutter
    top, bottom = _between_tables(pieces, top, bottom)
    above = [p for p in pieces if p.middle <= top]
    below = [p for p in pieces if p.middle >= bottom]
    within = [p for p in pieces if top < p.middle < bottom]
    yield from _lines(above, drawings)
    yield from _lines([p for p in within if p.right <= at + 1], drawings)
    yield from _lines([p for p in within if p.right > at + 1], drawings)
    yield from _lines(below, drawings)


def _between_tables(pieces: Sequence[Piece], top: float, bottom: float) -> tuple[float, float]:
    """Return where columns begin and end though nothing crosses the gutter: behind a table above
    them, before one below.
    """
    within = [p for p in pieces if top < p.middle < bottom]
    rows, high = _rows(within), _height(within)
    for at in range(1, len(rows)):
        end = max(p.bottom for row in rows[:at] for p in row)
        start = min(p.top for p in rows[at])
        if start - end <= high:
            continue
        if at > 1 and _is_cells(rows[:at]):
            top = max(top, (start + end) / 2)
        elif len(rows) - at > 1 and _is_cells(rows[at:]):
            return top, min(bottom, (start + end) / 2)
    return top, bottom


def _height(pieces: Sequence[Piece]) -> float:
    heights = [h for p in pieces if not p.is_table for h in [p.height] * max(1, len(p.text) // 10)]
    return median(heights) if heights else 12.0


def _gutter(
    pieces: Sequence[Piece], drawings: Sequence[PageBox]
) -> tuple[float, float, float] | None:
    """Return the gutter with the most lines beside it: its place across, and where it begins and
    ends; None without columns.
    """
    high = _height(pieces)
    best: tuple[int, float, tuple[float, float, float]] | None = None
    for at in _places(pieces, high):
        for top, bottom in _free(pieces, drawings, at, high):
            halves = _columns(pieces, at, top, bottom, high)
            if halves is not None and (best is None or halves > best[:2]):
                best = (*halves, (at, top, bottom))
    return None if best is None else best[2]


def _places(pieces: Sequence[Piece], high: float) -> list[float]:
    """Return where gutters may run: the middles of gaps between a piece and what stands to its
    right on its line, common ones first.
    """
    counted: Counter[float] = Counter()
    for piece in pieces:
        right = min(
            (
                p.left
                for p in pieces
                if p.left >= piece.right and p.top < piece.bottom and piece.top < p.bottom
            ),
            default=None,
        )
        if right is not None and right - piece.right >= _LEAST_GUTTER * high:
            # Close to the right side, which is level; the left side is ragged.
            counted[round(right - min(high / 3, (right - piece.right) / 2))] += 1
    return [place for place, _ in counted.most_common(_MOST_GUTTERS)]


def _free(
    pieces: Sequence[Piece], drawings: Sequence[PageBox], at: float, high: float
) -> Iterator[tuple[float, float]]:
    """Yield the ranges from above to below in which nothing crosses a place."""
    crossing = [
        (box.top, box.bottom)
        for box in (*pieces, *drawings)
        if box.left < at - 1 and box.right > at + 1
    ]
    start = float("-inf")
    for top, bottom in sorted(crossing):
        if top > start:
            yield start, (top + min(bottom, top + high)) / 2
        start = max(start, bottom - min(high, bottom - top) / 2)
    yield start, float("inf")


def _spanning_headings(pieces: Sequence[Piece]) -> list[PageBox]:
    """Return the places of headings that are meant for all columns though too short to cross a
    gutter.

    Such a heading is larger than the text, and the column beside it has a gap there, with text
    above and below. Seen on the whole page, before it is parted: a part may end with the heading.
    """
    if not pieces:
        return []
    high, page = _height(pieces), _hull(pieces)
    tall = [p for p in pieces if p.height >= _TALL * high and not p.is_table]
    return [
        PageBox(page.left, heading.top, page.right, heading.bottom)
        for heading in tall
        if any(_is_alone(heading, pieces, at) for at in _places(pieces, high))
    ]


def _is_alone(heading: Piece, pieces: Sequence[Piece], at: float) -> bool:
    """Return whether a heading stands left of a gutter, with nothing beside it but text above and
    below there.
    """
    if heading.right > at:
        return False
    beside = [p for p in pieces if p.left >= at]
    level = any(p.top < heading.bottom + 2 and heading.top - 2 < p.bottom for p in beside)
    above = any(p.bottom <= heading.top for p in beside)
    below = any(p.top >= heading.bottom for p in beside)
    return above and below and not level


def _columns(
    pieces: Sequence[Piece], at: float, top: float, bottom: float, high: float
) -> tuple[int, float] | None:
    """Return how many lines stand on the shorter side of a gutter, and its width.

    None where one side is no column of prose.
    """
    within = [p for p in pieces if top < p.middle < bottom]
    left_pieces, right = (
        [p for p in within if (p.right <= at + 1) is side] for side in (True, False)
    )
    if not left_pieces or not right:
        return None
    width = min(p.left for p in right) - max(p.right for p in left_pieces)
    if width < _LEAST_GUTTER * high:
        return None
    lines = [_prose_lines(side) for side in (left_pieces, right)]
    return (min(lines), width) if all(lines) else None


def _prose_lines(pieces: Sequence[Piece]) -> int:
    """Return the number of lines, 0 where they are too few or too short for prose."""
    rows = _rows(pieces)
    lengths = [sum(len(p.text.strip()) for p in row) for row in rows]
    if len(rows) < _LEAST_LINES or sum(lengths) < _PROSE * len(rows):
        return 0
    return 0 if _is_cells(rows) else len(rows)


def _is_cells(rows: Sequence[list[Piece]]) -> bool:
    """Return whether lines are cells beside each other: their gaps stand below each other, and no
    cell is a line of prose.

    Justified text has wide gaps, too, but each line elsewhere.
    """
    places: Counter[int] = Counter()
    for row in rows:
        ordered = sorted(row, key=lambda p: p.left)
        if len(row) > 1 and max(len(p.text) for p in row) < _PROSE:
            places.update({round(piece.left / _LEVEL) for piece in ordered[1:]})
    return bool(places) and 2 * max(places.values()) > len(rows)


def _rows(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Return the pieces of each line from above to below: those whose middles stand within each
    other's height.
    """
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda p: (p.middle, p.left)):
        if rows:
            last = max(rows[-1], key=lambda p: p.height)
            if last.top <= piece.middle <= last.bottom and _overlap(last, piece) > 0.5:
                rows[-1].append(piece)
                continue
        rows.append([piece])
    return rows


def _overlap(piece: Piece, other: Piece) -> float:
    """Return how much of the lower of two pieces stands on the line of the other, 0 to 1."""
    shared = min(piece.bottom, other.bottom) - max(piece.top, other.top)
    return shared / max(0.1, min(piece.bottom - piece.top, other.bottom - other.top))


def _clusters(drawings: Sequence[PageBox]) -> list[list[PageBox]]:
    """Return the drawings in groups that touch."""
    groups: list[tuple[PageBox, list[PageBox]]] = []
    for box in sorted(drawings, key=lambda b: (b.left, b.top)):
        around, members = box, [box]
        apart = []
        for other, own_pieces in groups:
            if _touch(around, other):
                around, members = _hull([around, other]), members + own_pieces
            else:
                apart.append((other, own_pieces))
        groups = [*apart, (around, members)]
    return [members for _, members in groups]


def _figure(group: Sequence[PageBox], pieces: Sequence[Piece]) -> PageBox | None:
    """Return the box of a figure; None for what lies behind text: a shade, a frame."""
    box = _hull(group)
    text = [p for p in _inside(box, pieces) if len(p.text) >= _PROSE]
    return box if len(text) < _LEAST_LINES else None


def _with_tables(pieces: list[Piece], groups: Sequence[Sequence[PageBox]]) -> list[Piece]:
    """Return pieces with each table that has ruled lines as one piece, its text in the order in
    which it is read.
    """
    for group in groups:
        box = _hull(group)
        inside = _inside(box, pieces)
        across = _rules(group, 0, inside)
        if len(inside) < 2 or not across:
            continue
        down = _rules(group, 1, inside)
        lines = []
        for row in _parted(inside, 1, down):
            cells = [[*_lines(cell, [])] for cell in _parted(row, 0, across)]
            if all(len(cell) <= 1 for cell in cells):
                lines.append(_CELLS.join(cell[0] for cell in cells if cell))
            else:
                lines += [line for cell in cells for line in cell]
        ids = {id(p) for p in inside}
        text = "\n".join([*lines, ""])
        pieces = [
            *(p for p in pieces if id(p) not in ids),
            Piece(box.left, box.top, box.right, box.bottom, text),
        ]
    return pieces


def _rules(group: Sequence[PageBox], axis: int, pieces: Sequence[Piece]) -> list[float]:
    """Return the places of ruled lines with text on both sides: 0 lines that run down, 1 lines that
    run across.
    """
    thin = [b for b in group if _length(b, axis) < _THIN and _length(b, 1 - axis) > _SHORT_RULE]
    places: list[float] = []
    for place in sorted(sum(b.along(axis)) / 2 for b in thin):
        before = any(p.along(axis)[1] <= place + 2 for p in pieces)
        behind = any(p.along(axis)[0] >= place - 2 for p in pieces)
        if before and behind and (not places or place - places[-1] > _LEVEL):
            places.append(place)
    if axis == 0:  # a line that runs through words parts no cells
        return [x for x in places if not any(p.left < x - 2 and p.right > x + 2 for p in pieces)]
    return places


def _length(box: PageBox, axis: int) -> float:
    start, end = box.along(axis)
    return end - start


def _parted(pieces: Sequence[Piece], axis: int, places: Sequence[float]) -> Iterator[list[Piece]]:
    """Yield the pieces between places."""
    ends = [float("-inf"), *places, float("inf")]
    for start, end in pairwise(ends):
        part = [p for p in pieces if start < sum(p.along(axis)) / 2 <= end]
        if part:
            yield part


def _inside(box: PageBox, pieces: Sequence[Piece]) -> list[Piece]:
    return [
        p
        for p in pieces
        if box.left - 2 <= p.left and p.right <= box.right + 2 and box.top <= p.middle <= box.bottom
    ]


def _hull(boxes: Sequence[PageBox]) -> PageBox:
    return PageBox(
        min(box.left for box in boxes),
        min(box.top for box in boxes),
        max(box.right for box in boxes),
        max(box.bottom for box in boxes),
    )


def _touch(box: PageBox, other: PageBox) -> bool:
    near = 6.0  # points
    return (
        box.left <= other.right + near
        and other.left <= box.right + near
        and box.top <= other.bottom + near
        and other.top <= box.bottom + near
    )


def _without_notes(page: Page) -> tuple[list[Piece], list[list[Piece]]]:
    """Return the text of a page and its footnotes: small print at the foot of a column that begins
    with a mark.
    """
    pieces = list(page.pieces)
    if len(pieces) < _LEAST_LINES:
        return pieces, []
    high, foot = _height(pieces), _FOOT * (page.height or max(p.bottom for p in pieces))
    small = [p for p in pieces if p.height <= _SMALL * high and p.top > foot]
    starts = [p for p in small if _NOTE.match(p.text) and _first_of_line(p, pieces)]
    notes: list[list[Piece]] = []
    gone: set[int] = set()
    for start in sorted(starts, key=lambda p: (round(p.left / high), p.top)):
        own_pieces = [
            p
            for p in small
            if id(p) not in gone
            and p.top >= start.top - 2
            and start.left - high < p.left < _end(start, small) + high
        ]
        ends = max((p.bottom for p in own_pieces), default=start.bottom)
        # Text of the usual height below it in its column: it was none.
        if any(
            p.top >= ends - 2 and p.left < start.right and start.left < p.right and p not in small
            for p in pieces
        ):
            continue
        gone |= {id(p) for p in own_pieces}
        notes += [own_pieces] if own_pieces else []
    return [p for p in pieces if id(p) not in gone], notes


def _end(start: Piece, small: Sequence[Piece]) -> float:
    """Return where the column of a note ends: its longest line."""
    return max(
        p.right for p in small if abs(p.left - start.left) < start.bottom - start.top or p is start
    )


def _first_of_line(piece: Piece, pieces: Sequence[Piece]) -> bool:
    return not any(
        p.right <= piece.left and piece.left - p.right < 12 and abs(p.middle - piece.middle) < 3
        for p in pieces
    )


def _without_heads(pages: Sequence[Page]) -> Iterator[Page]:
    """Yield pages without running heads, feet and page numbers."""
    rows = [_rows(page.pieces) for page in pages]
    places: Counter[tuple[str, int]] = Counter()
    for page_rows in rows:
        places.update({(_mark(row), round(row[0].top / _LEVEL)) for row in _edges(page_rows)})
    heads = {
        place
        for place, n in places.items()
        if max(n, places[place[0], place[1] - 1], places[place[0], place[1] + 1]) > 1
        and 3 * n >= len(pages)
    }
    levels = {level for _, level in heads}
    for page, page_rows in zip(pages, rows, strict=True):
        gone = [row for row in _edges(page_rows) if _is_head(row, page_rows, heads, levels)]
        pieces_kept = [p for row in page_rows if row not in gone for p in row]
        yield Page(pieces_kept, page.drawings, page.height)


def _edges(rows: Sequence[list[Piece]]) -> list[list[Piece]]:
    return [*rows[:_EDGE], *rows[max(_EDGE, len(rows) - _EDGE) :]]


def _is_head(
    row: list[Piece],
    rows: Sequence[list[Piece]],
    heads: set[tuple[str, int]],
    levels: set[int],
) -> bool:
    text = _text(row)
    level = round(row[0].top / _LEVEL)
    if (_mark(row), level) in heads or _PAGE_NUMBER.fullmatch(text):
        return True
    # A head of which there is one only, of a chapter say, at the height of those of other pages and
    # apart from the text.
    at = rows.index(row)
    outermost = at in (0, len(rows) - 1)
    alone = outermost and len(rows) > 1 and _gap(rows, at) > row[0].height
    return alone and level in levels and len(text) <= 80


def _gap(rows: Sequence[list[Piece]], at: int) -> float:
    if at == 0:
        return rows[1][0].top - rows[0][0].bottom
    return rows[at][0].top - max(p.bottom for p in rows[at - 1])


_PAGE_NUMBER = re.compile(
    r"(?:page\s+|p\.\s*|seite\s+|página\s+|[-–]\s*)?(?:\d{1,4}|[ivxl]{1,6})(?:\s*(?:of|/|von|de|"
    r"sur)\s*\d{1,4})?(?:\s*[-–])?",
    re.IGNORECASE,
)


def _text(row: list[Piece]) -> str:
    return " ".join(p.text.strip() for p in sorted(row, key=lambda piece: piece.left)).strip()


def _mark(row: list[Piece]) -> str:
    return re.sub(r"\d+", "#", " ".join(_text(row).casefold().split()))
