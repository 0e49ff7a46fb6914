"""Headings of documents, and the parts between them: of plain text by their words, of pages by outline or large type."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from medassay.synthesis.page_order import Page

_LONGEST_TITLE = 100  # characters
_LARGE = 1.25  # times the height of most lines: a heading
_NUMBERED = re.compile(
    r"(?:chapter|section|part|kapitel|abschnitt|teil|capítulo|sección|parte)\s+(?:\d{1,3}|[ivxl]{1,6})\b.{0,90}",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading: its level, 1 the highest, and its page from 1, 0 where it is not known."""

    level: int
    title: str
    page: int = 0


@dataclass(frozen=True)
class Part:
    """What stands from one heading to the next; level 0 is what stands before the first. `pages` are first and last, from 1."""

    level: int
    title: str
    text: str
    pages: tuple[int, int] | None = None


def parts_at(pages: Sequence[Sequence[str]], headings: Sequence[Heading]) -> list[Part]:
    """Return the parts of a text between its headings.

    Parameters
    ----------
    pages : the lines of each page; one page of all lines where there are none
    headings : in their order; one that no line holds begins with its page, and is left out where that is not known
    """
    places = [(0, 0, Heading(level=0, title=""))]
    for heading in headings:
        last_page, last_line, _ = places[-1]
        place = _line_of(pages, heading, (last_page, last_line))
        if place is not None:
            places.append((*place, heading))
    ends = [*places[1:], (len(pages) - 1, len(pages[-1]) if pages else 0, places[0][2])]
    numbered = len(pages) > 1 or any(heading.page for heading in headings)
    found = []
    for (page, line, heading), (end_page, end_line, _) in zip(places, ends, strict=True):
        lines = _between(pages, (page, line), (end_page, end_line))
        if not heading.level and not any(text.strip() for text in lines):
            continue
        last = end_page if end_line else end_page - 1  # a part that ends where a page begins
        told = (page + 1, max(page, last) + 1) if numbered else None
        found.append(Part(heading.level, heading.title, "\n".join(lines), told))
    return found


def _line_of(
    pages: Sequence[Sequence[str]], heading: Heading, after: tuple[int, int]
) -> tuple[int, int] | None:
    """Return page and line of a heading, both from 0, at or behind a place; None where it stands nowhere there."""
    wanted = _plain(heading.title)
    among = [heading.page - 1] if heading.page else range(after[0], len(pages))
    here = [
        ((page, line), _plain(text))
        for page in among
        if 0 <= page < len(pages)
        for line, text in enumerate(pages[page])
        if (page, line) >= after
    ]
    whole = [place for place, text in here if wanted and text == wanted]
    # A title over two lines begins with the first of them.
    begun = [place for place, text in here if " " in text and wanted.startswith(f"{text} ")]
    if found := whole or begun:
        return found[0]
    top = (heading.page - 1, 0)
    return top if heading.page and after <= top < (len(pages), 0) else None


def _plain(text: str) -> str:
    """Return the words of a heading without its number."""
    words = re.findall(r"\w+", text.casefold())
    while words and words[0].isdigit():
        words = words[1:]
    return " ".join(words)


def _between(
    pages: Sequence[Sequence[str]], start: tuple[int, int], end: tuple[int, int]
) -> list[str]:
    if not pages:
        return []
    if start[0] == end[0]:
        return [*pages[start[0]][start[1] : end[1]]]
    middle = [line for page in pages[start[0] + 1 : end[0]] for line in page]
    return [*pages[start[0]][start[1] :], *middle, *pages[end[0]][: end[1]]]


def headings_of_text(lines: Sequence[str]) -> Iterator[Heading]:
    """Yield the headings of plain text: lines by themselves that say "Chapter 3 …", or bear the next number, "3. …".

    A list of numbered lines is none: each heading has a blank line before and behind it.
    """
    number = 0
    for at, line in enumerate(lines):
        alone = not "".join(lines[max(0, at - 1) : at]).strip()
        alone &= not "".join(lines[at + 1 : at + 2]).strip()
        text = line.strip()
        if not alone or not text or len(text) > _LONGEST_TITLE:
            continue
        if _NUMBERED.fullmatch(text):
            yield Heading(level=1, title=text)
        elif (found := re.match(r"(\d{1,3})[.)]?\s+\w", text)) and int(found[1]) == number + 1:
            number += 1
            yield Heading(level=2, title=text)


def headings_of_pages(pages: Sequence[Page]) -> Iterator[Heading]:
    """Yield what stands on pages in large type, the largest as level 1; a title over two lines is one."""
    heights = [piece.height for page in pages for piece in page.pieces if not piece.is_table]
    usual = median(heights) if heights else 0.0
    found: list[tuple[int, float, float, str]] = []  # page, height, where it ends, text
    for number, page in enumerate(pages, 1):
        for piece in sorted(page.pieces, key=lambda piece: (piece.top, piece.left)):
            text = piece.text.strip()
            if piece.height < _LARGE * usual or not re.search(r"[^\W\d_]{2}", text):
                continue
            if len(text) > _LONGEST_TITLE or piece.is_table:
                continue
            found.append((number, piece.height, piece.bottom, text))
    sizes = sorted({round(height) for _, height, _, _ in found}, reverse=True)
    for number, height, text in _joined(found):
        yield Heading(level=sizes.index(round(height)) + 1, title=text, page=number)


def _joined(
    found: Sequence[tuple[int, float, float, str]],
) -> Iterator[tuple[int, float, str]]:
    """Yield page, height and text of headings; lines of one height right below each other are one."""
    waiting: tuple[int, float, float, str] | None = None
    for page, height, bottom, text in found:
        if waiting is not None:
            last_page, last_height, last_bottom, so_far = waiting
            near = page == last_page and 0 < bottom - last_bottom < 1.8 * height
            if near and round(height) == round(last_height):
                waiting = (page, height, bottom, f"{so_far} {text}")
                continue
            yield last_page, last_height, so_far
        waiting = (page, height, bottom, text)
    if waiting is not None:
        yield waiting[0], waiting[1], waiting[3]
