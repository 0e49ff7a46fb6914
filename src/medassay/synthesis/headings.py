"""Headings of documents, and the parts between them: of plain text by their words, of pages by
outline or large type.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec
from msgspec.structs import replace

from medassay.synthesis.page_order import Page

LONGEST_TITLE = 100  # characters; what is longer is a paragraph
_LARGE = 1.25  # times the height of most lines: a heading
_FEWEST_BETWEEN = 1_000  # characters between numbered headings on average; less is a list
_NUMBERED = re.compile(
    r"(?:chapter|section|part|kapitel|abschnitt|teil|capítulo|sección|parte)\s+(?:\d{1,3}|"
    r"[ivxl]{1,6})\b(?:.{0,90}[^.;,:])?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(\d{1,3})[.)]?\s+\w.*[^.;,:]")


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """A heading: its level, 1 the highest, and its page from 1, 0 where it is not known."""

    level: int
    title: str
    page: int = 0


class Chapter(msgspec.Struct, frozen=True):
    """What stands from one heading to the next; level 0 is what stands before the first.

    `pages` are first and last, from 1.
    """

    level: int
    title: str
    text: str
    pages: tuple[int, int] | None = None


Place = tuple[int, int, Heading]  # page and line, from 0, where a heading stands
Lines = Sequence[str]


def parts_of(pages: Sequence[Lines], places: Sequence[Place]) -> list[Chapter]:
    """Return the parts of a text between its headings.

    Parameters
    ----------
    pages : the lines of each page; one page of all lines where there are none
    places : where the headings stand, in their order
    """
    if not pages:
        return []
    starts = [(0, 0, Heading(level=0, title="")), *places]
    ends = [*places, (len(pages) - 1, len(pages[-1]), starts[0][2])]
    numbered = len(pages) > 1 or any(heading.page for *_, heading in places)
    parts = []
    for (page, line, heading), (end_page, end_line, _) in zip(starts, ends, strict=True):
        lines = _between(pages, (page, line), (end_page, end_line))
        if not heading.level and not any(text.strip() for text in lines) and page == end_page:
            continue
        last = end_page if end_line else end_page - 1  # a part that ends where a page begins
        page_range = (page + 1, max(page, last) + 1) if numbered else None
        parts.append(Chapter(heading.level, heading.title, "\n".join(lines), page_range))
    return _without_contents(parts)


def _without_contents(parts: Sequence[Chapter]) -> list[Chapter]:
    """Return parts without those of a table of contents: a title by itself that comes again further
    on is no heading.
    """
    last = {part.title: number for number, part in enumerate(parts)}
    chapters: list[Chapter] = []
    for number, part in enumerate(parts):
        alone = plain_words(part.text) in {"", plain_words(part.title)}
        if chapters and part.level and alone and last[part.title] > number:
            before = chapters[-1]
            pages = before.pages and part.pages and (before.pages[0], part.pages[1])
            chapters[-1] = replace(before, text=f"{before.text}\n{part.text}", pages=pages)
        elif alone and part.level and last[part.title] > number:
            chapters.append(Chapter(0, "", part.text, part.pages))
        else:
            chapters.append(part)
    return chapters


def _between(pages: Sequence[Lines], start: tuple[int, int], end: tuple[int, int]) -> list[str]:
    if start[0] == end[0]:
        return [*pages[start[0]][start[1] : end[1]]]
    middle = [line for page in pages[start[0] + 1 : end[0]] for line in page]
    return [*pages[start[0]][start[1] :], *middle, *pages[end[0]][: end[1]]]


def plain_words(text: str) -> str:
    """Return the words of a heading without its number."""
    words = re.findall(r"\w+", text.casefold())
    while len(words) > 1 and words[0].isdigit():
        words = words[1:]
    return " ".join(words)


def places_in_lines(lines: Lines, headings: Sequence[Heading]) -> list[Place]:
    """Return which lines of a text are its headings: as many of them as stand there in their order.

    What stands there in two ways, in a table of contents and above its chapter say, is found where
    it stands last.
    """
    where: dict[str, list[int]] = {}
    for at, text in enumerate(lines):
        where.setdefault(plain_words(text), []).append(at)
    # The longest rising sequence, sought from the end: line numbers are turned around, so that the
    # last ones are the least.
    ends: list[int] = []  # the least end of a sequence of each length
    tops: list[int] = []  # which link of the chain is that end
    chain: list[tuple[int, int, int]] = []  # heading, line, the link before (-1 for none)
    for number in reversed(range(len(headings))):
        words = plain_words(headings[number].title)
        # From the first line to the last: no two lines of one heading may follow each other.
        for line in where.get(words, []) if words else []:
            length = bisect_left(ends, -line)
            chain.append((number, line, tops[length - 1] if length else -1))
            ends[length : length + 1] = [-line]
            tops[length : length + 1] = [len(chain) - 1]
    places: list[Place] = []
    link = tops[-1] if tops else -1
    while link >= 0:
        number, line, link = chain[link]
        places.append((0, line, headings[number]))
    return places


def places_on_pages(pages: Sequence[Lines], headings: Sequence[Heading]) -> list[Place]:
    """Return where headings stand whose pages are known.

    One that no line holds begins with its page.
    """
    places: list[Place] = []
    last = (0, -1)
    for heading in sorted(headings, key=lambda heading: heading.page):
        page = heading.page - 1
        if not 0 <= page < len(pages):
            continue
        title_words = plain_words(heading.title)
        lines = [
            (number, plain_words(line))
            for number, line in enumerate(pages[page])
            if (page, number) > last
        ]
        line_numbers = [number for number, text in lines if title_words and text == title_words]
        # A title over two lines begins with the first of them.
        begun = [number for number, text in lines if " " in text and title_words.startswith(text)]
        line = (line_numbers or begun or [0])[0]
        if (page, line) > last:
            places.append((page, line, heading))
            last = page, line
    return places


def headings_of_text(lines: Lines) -> list[Place]:
    """Return the headings of plain text: lines by themselves that say "Chapter 3 …", or bear the
    next number, "3. …".

    A list of numbered lines is none: each heading has a blank line before and behind it, and a text
    between it and the next.
    """
    named: list[Place] = []
    numbered: list[Place] = []
    number = 0
    for at, line in enumerate(lines):
        alone = not "".join(lines[max(0, at - 1) : at]).strip()
        alone &= not "".join(lines[at + 1 : at + 2]).strip()
        text = " ".join(line.split())
        if not alone or not text or len(text) > LONGEST_TITLE:
            continue
        if _NUMBERED.fullmatch(text):
            named.append((0, at, Heading(level=1, title=text)))
            number = 0
        elif (match := _NUMBER.fullmatch(text)) and int(match[1]) in (1, number + 1):
            number = int(match[1])  # sections may begin anew
            numbered.append((0, at, Heading(level=2, title=text)))
    lengths = [0]
    for line in lines:
        lengths.append(lengths[-1] + len(line) + 1)
    between = [lengths[two[1]] - lengths[first[1]] for first, two in pairwise(numbered)]
    if numbered:
        between.append(lengths[-1] - lengths[numbered[-1][1]])
    if between and sum(between) / len(between) < _FEWEST_BETWEEN:
        numbered = []
    return sorted([*named, *numbered], key=lambda place: place[1])


def headings_of_pages(pages: Sequence[Page]) -> Iterator[Heading]:
    """Yield what stands on pages in large type, the largest as level 1.

    A title over two lines is one.
    """
    heights = [piece.height for page in pages for piece in page.pieces if not piece.is_table]
    usual = median(heights) if heights else 0.0
    headings: list[tuple[int, float, float, str]] = []  # page, height, where it ends, text
    for number, page in enumerate(pages, 1):
        for piece in sorted(page.pieces, key=lambda piece: (piece.top, piece.left)):
            text = " ".join(piece.text.split())
            if piece.height < _LARGE * usual or not re.search(r"[^\W\d_]{2}", text):
                continue
            if len(text) > LONGEST_TITLE or piece.is_table:
                continue
            headings.append((number, piece.height, piece.bottom, text))
    sizes = sorted({round(height) for _, height, _, _ in headings}, reverse=True)
    for number, height, text in _headings(headings):
        yield Heading(level=sizes.index(round(height)) + 1, title=text, page=number)


def _headings(
    pieces: Sequence[tuple[int, float, float, str]],
) -> Iterator[tuple[int, float, str]]:
    """Yield page, height and text of headings.

    Lines of one height right below each other are one.
    """
    waiting: tuple[int, float, float, str] | None = None
    for page, height, bottom, text in pieces:
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
