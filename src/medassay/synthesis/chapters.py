"""A long document in chapters: cut where its headings stand, each with its pages, nothing left out.

It is cut at the highest level of heading that it has, and a chapter that is still too long at the
next one below. A chapter that no heading parts stays as long as it is.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from medassay.core.canonical import sha256_hex
from medassay.synthesis.headings import Chapter
from medassay.synthesis.source import SourceDocument, clean_text

_LONGEST_NAME = 150  # bytes of a document's name and of its number: names of files have 255
_LONGEST_SLUG = 60  # bytes


class _Chapter(msgspec.Struct, frozen=True):
    """Parts that belong together, with the titles that lead there: of the chapter, of the section
    within.
    """

    titles: tuple[str, ...]
    parts: Sequence[Chapter]

    @property
    def text(self) -> str:
        return clean_text("\n\n".join(part.text for part in self.parts))


def chapters(source: SourceDocument, longest: int) -> list[SourceDocument]:
    """Return a document as one source, or, where its text is longer than `longest` characters, each
    of its chapters as one.

    A chapter's name is that of the document with its number and title; pictures are those of its
    pages. One may still be too long.
    """
    levels = [part.level for part in source.parts if part.level]
    if len(source.text) <= longest or not levels:
        return [source]
    cut = [*_cut(_Chapter((), source.parts), longest)]
    chapters_found = []
    for number, chapter in enumerate(cut):
        text, pages = chapter.text, _pages(chapter.parts)
        if len(cut) == 1 or (not text and pages is None):
            continue
        title = ", ".join(chapter.titles)
        chapters_found.append(
            replace(
                source,
                name=_name(source.name, number, title or "front matter"),
                document=source.name,
                chapter=title,
                text=text,
                parts=tuple(chapter.parts),
                pages=pages,
                pictures=() if pages is None else source.pictures[pages[0] - 1 : pages[1]],
            )
        )
    return chapters_found or [source]


def _name(document: str, number: int, title: str) -> str:
    """Return what a chapter is called: as its document, with number and title.

    As long as a file's name may be.
    """
    stem = _cut_bytes(document, _LONGEST_NAME)
    if stem != document:
        stem = f"{stem}-{sha256_hex(document.encode())[:8]}"
    slug = _cut_bytes(re.sub(r"\W+", "-", title.casefold()).strip("-"), _LONGEST_SLUG)
    return f"{stem}-{number:02}-{slug.rstrip('-')}".rstrip("-")


def _cut_bytes(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore")


def _cut(chapter: _Chapter, longest: int) -> Iterator[_Chapter]:
    first, *others = chapter.parts
    levels = [part.level for part in others if part.level]
    if not levels or (chapter.titles and len(chapter.text) <= longest):
        yield chapter
        return
    level = min(levels)
    group, titles = [first], chapter.titles
    is_front = not titles
    if is_front and first.level == level:
        titles, is_front = (first.title,), False
    for part in others:
        if part.level == level:
            # What stands before the first chapter is none, whatever headings it has.
            next_chapter = _Chapter(titles, group)
            yield from [next_chapter] if is_front else _cut(next_chapter, longest)
            group, titles, is_front = [], (*chapter.titles, part.title), False
        group.append(part)
    yield from _cut(_Chapter(titles, group), longest)


def _pages(parts: Sequence[Chapter]) -> tuple[int, int] | None:
    pages = [page for part in parts for page in part.pages or ()]
    return (min(pages), max(pages)) if pages else None
