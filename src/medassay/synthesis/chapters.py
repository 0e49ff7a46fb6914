"""A long document in chapters: cut where its headings stand, each with its pages, nothing left out.

It is cut at the highest level of heading that it has, and a chapter that is still too long at the next one below. A chapter that no
heading parts stays as long as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from medassay.synthesis.headings import Part
from medassay.synthesis.source import Source, clean_text

FRONT = "front matter"  # what stands before the first heading


@dataclass(frozen=True)
class _Chapter:
    """Parts that belong together, with the titles that lead there: of the chapter, of the section within."""

    titles: tuple[str, ...]
    parts: Sequence[Part]

    @property
    def text(self) -> str:
        return clean_text("\n\n".join(part.text for part in self.parts))


def chapters(source: Source, longest: int) -> list[Source]:
    """Return a document as one source, or, where its text is longer than `longest` characters, each of its chapters as one.

    A chapter's name is that of the document with its number and title; pictures are those of its pages. One may still be too long.
    """
    if len(source.text) <= longest or not any(part.level for part in source.parts):
        return [source]
    found = []
    for number, chapter in enumerate(_cut(_Chapter((), source.parts), longest)):
        text = chapter.text
        if not text:
            continue
        title = ", ".join(chapter.titles) or FRONT
        slug = re.sub(r"\W+", "-", title.casefold()).strip("-")[:40].rstrip("-")
        pages = _pages(chapter.parts)
        found.append(
            replace(
                source,
                name=f"{source.name}-{number:02}-{slug}",
                document=source.name,
                chapter=title,
                text=text,
                parts=tuple(chapter.parts),
                pages=pages,
                pictures=() if pages is None else source.pictures[pages[0] - 1 : pages[1]],
            )
        )
    return found


def _cut(chapter: _Chapter, longest: int) -> Iterator[_Chapter]:
    first, *others = chapter.parts
    levels = [part.level for part in others if part.level]
    if not levels or (chapter.titles and len(chapter.text) <= longest):
        yield chapter
        return
    level = min(levels)
    group, titles = [first], chapter.titles
    if not titles and 0 < first.level <= level:
        titles = (first.title,) if first.level == level else ()
    for part in others:
        if part.level == level:
            yield from _cut(_Chapter(titles, group), longest)
            group, titles = [], (*chapter.titles, part.title)
        group.append(part)
    yield from _cut(_Chapter(titles, group), longest)


def _pages(parts: Sequence[Part]) -> tuple[int, int] | None:
    pages = [page for part in parts for page in part.pages or ()]
    return (min(pages), max(pages)) if pages else None
