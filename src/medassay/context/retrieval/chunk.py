"""Texts cut into overlapping chunks at the largest separator that fits.

A text is cut at the first separator that it holds, and a piece that is too long at the next one.
Merged `levels`, the pieces of each level are joined among themselves: the cuts of langchain's
recursive character splitter, which the published protocol uses. Merged `whole`, all pieces of a
text are joined in one pass, so that chunks run on across paragraphs. A chunk knows where it starts.

Source: specification of tasks and prompts, 14.2.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from medassay.errors import InputError

Merging = Literal["levels", "whole"]

SEPARATORS = ("\n\n", "\n", " ", "")
SIZE, OVERLAP = 500, 150  # characters
Span = tuple[int, int]


class Chunk(msgspec.Struct, frozen=True):
    """A piece of a text without outer blanks; `start` is where it stands in the text."""

    start: int
    text: str


def split(
    text: str, *, size: int = SIZE, overlap: int = OVERLAP, merging: Merging = "levels"
) -> list[Chunk]:
    """Return the chunks of a text, in its order.

    Each is a part of it, and together they hold all that is not blank.

    Parameters
    ----------
    size : characters of a chunk at most
    overlap : characters at most that a chunk repeats of the one before, in whole pieces

    Raises
    ------
    InputError
        When the overlap is not smaller than the size.

    Examples
    --------
    >>> [(one.start, one.text) for one in split("aa bb cc", size=5, overlap=2)]
    [(0, 'aa bb'), (6, 'cc')]
    """
    if not 0 <= overlap < size:
        raise InputError(
            f"chunks of {size} characters with an overlap of {overlap}: expected 0 ≤ overlap < size"
        )
    chunks = []
    if merging == "whole":
        spans = _merged(list(_flat(text, (0, len(text)), SEPARATORS, size)), size, overlap)
    else:
        spans = _chunks(text, (0, len(text)), SEPARATORS, size, overlap)
    for start, end in spans:
        piece = text[start:end]
        stripped = piece.lstrip()
        if stripped:
            chunks.append(Chunk(start + len(piece) - len(stripped), stripped.rstrip()))
    return chunks


def _flat(text: str, span: Span, separators: tuple[str, ...], size: int) -> Iterator[Span]:
    """Yield the pieces of a part of a text, those that are too long cut at the next separator."""
    at = next(i for i, separator in enumerate(separators) if text.find(separator, *span) >= 0)
    for piece in _pieces(text, span, separators[at]):
        if piece[1] - piece[0] < size or not separators[at]:
            yield piece
        else:
            yield from _flat(text, piece, separators[at + 1 :], size)


def _chunks(
    text: str, span: Span, separators: tuple[str, ...], size: int, overlap: int
) -> Iterator[Span]:
    """Yield the chunks of a part of a text: pieces of one separator merged, too long ones cut at
    the next.
    """
    at = next(i for i, separator in enumerate(separators) if text.find(separator, *span) >= 0)
    waiting: list[Span] = []
    for piece in _pieces(text, span, separators[at]):
        # A piece of exactly `size` is cut too: so does the reference.
        if piece[1] - piece[0] < size or not separators[at]:
            waiting.append(piece)
            continue
        yield from _merged(waiting, size, overlap)
        waiting = []
        yield from _chunks(text, piece, separators[at + 1 :], size, overlap)
    yield from _merged(waiting, size, overlap)


def _pieces(text: str, span: Span, separator: str) -> Iterator[Span]:
    """Yield what lies between separators, each with the separator before it."""
    start, end = span
    if not separator:
        yield from ((at, at + 1) for at in range(start, end))
        return
    at = text.find(separator, start, end)
    while at >= 0:
        if at > start:
            yield start, at
        start, at = at, text.find(separator, at + len(separator), end)
    if end > start:
        yield start, end


def _merged(pieces: list[Span], size: int, overlap: int) -> Iterator[Span]:
    """Yield neighbouring pieces joined up to `size`.

    The last pieces of one, up to `overlap`, begin the next.
    """
    first = 0  # of the pieces joined so far
    for number, (start, end) in enumerate(pieces):
        if number > first and end - pieces[first][0] > size:
            yield pieces[first][0], start
            while first < number and (
                start - pieces[first][0] > overlap or end - pieces[first][0] > size
            ):
                first += 1
    if pieces:
        yield pieces[first][0], pieces[-1][1]
