"""Documents that items are made from: PDF, Markdown, HTML, plain text.

Their text is cleaned; nothing is added.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.json import storable
from medassay.errors import InputError, ToolError, UnavailableError
from medassay.synthesis.headings import (
    LONGEST_TITLE,
    Chapter,
    Heading,
    headings_of_pages,
    headings_of_text,
    parts_of,
    places_in_lines,
    places_on_pages,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

ENDINGS = (".htm", ".html", ".md", ".pdf", ".txt")
LEAST_FROM_SOURCE = 0.98  # of the words of an extracted text
_MOST_BYTES = 100_000_000
_SECONDS = 180
_WORD = re.compile(r"\w+")
_KEPT_IN_CHILD = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")  # no secret goes to who reads files


class SourceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document: its text in reading order, the pictures of its pages, and the day it says it was
    made.

    `name` is that of its file without the ending: the condition it is about. `plain` says that it
    is text as it stands, without title pages, tables or drawings that somebody must leave out.
    `parts` are what stands between its headings. A chapter of a long document is a source of its
    own: `document` is the name of the whole, `chapter` its title ("" for what stands before the
    first heading), `pages` first and last from 1.
    """

    name: str
    file: str
    sha256: str
    text: str
    plain: bool
    pictures: tuple[Path, ...] = ()
    made: str = ""
    parts: tuple[Chapter, ...] = ()
    document: str = ""
    chapter: str = ""
    pages: tuple[int, int] | None = None

    @property
    def cited(self) -> str:
        """Return what stands in an item as its source."""
        places = [f'"{self.chapter}"'] if self.chapter else []
        if self.pages is not None:
            first, last = self.pages
            places.append(f"page {first}" if first == last else f"pages {first} to {last}")
        places_text = "".join(f", {place}" for place in places)
        return f"{self.file}{places_text} (sha256 {self.sha256[:16]})"


def source_files(place: Path) -> list[Path]:
    """Return the documents at a place: a file, or all in a folder and its sub-folders by path.

    Hidden ones are left out.

    Raises
    ------
    InputError
        When there are none, or two are named alike.
    """
    if place.is_file():
        paths = [place]
    elif place.is_dir():
        paths = sorted(
            p
            for p in place.rglob("*")
            if p.suffix.lower() in ENDINGS
            and p.is_file()
            and not any(part.startswith(".") for part in p.relative_to(place).parts)
        )
    else:
        raise InputError(f"{place}: no such file or folder; expected documents")
    if not paths:
        raise InputError(f"{place}: holds none of {', '.join(f'*{end}' for end in ENDINGS)}")
    stems = [path.stem for path in paths]
    if twice := [path for path in paths if stems.count(path.stem) > 1]:
        raise InputError(
            f"{twice[0]}: another document has the same name; names without ending must differ"
        )
    return paths


def read_source(path: Path, pictures: Path) -> SourceDocument:
    """Return a document; the pictures of its pages are written into a folder.

    Raises
    ------
    InputError
        When the file cannot be read, or holds no text and no picture.
    UnavailableError
        When an extra is missing: [pdf] for PDF, [tools] for HTML.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{path}: unknown ending; expected one of {', '.join(ENDINGS)}")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: over {_MOST_BYTES:,} bytes; split the document")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a document") from None
    page_pictures: tuple[Path, ...] = ()
    made_on = ""
    if ending == ".pdf":
        parts, page_pictures, made_on = _pdf(path, pictures)
    elif ending in (".htm", ".html"):
        parts = _html(data, path)
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text: {error}") from None
        parts = _markdown(text) if ending == ".md" else _plain(text)
    between = "\n\n" if ending == ".md" else "\n"
    cleaned = clean_text(between.join(part.text for part in parts if part.text))
    if not cleaned and not page_pictures:
        raise InputError(f"{path}: holds no text; expected a document")
    return SourceDocument(
        name=path.stem,
        file=path.name,
        sha256=sha256_hex(data),
        text=cleaned,
        plain=ending in (".md", ".txt"),
        pictures=page_pictures,
        made=made_on,
        parts=tuple(parts),
    )


def _plain(text: str) -> list[Chapter]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return parts_of([lines], headings_of_text(lines))


class _PdfHead(msgspec.Struct, frozen=True):
    """What `pdf_pages` says of a document first: its number of pages, or why it cannot be read."""

    problem: str = ""
    pages: int = 0
    made: str = ""
    outline: list[tuple[int, str, int]] = []


class _PdfPage(msgspec.Struct, frozen=True):
    """What `pdf_pages` says of a page."""

    height: float
    pieces: list[tuple[float, float, float, float, str]]
    drawings: list[tuple[float, float, float, float]]


def _pdf(path: Path, pictures: Path) -> tuple[list[Chapter], tuple[Path, ...], str]:
    from importlib.util import find_spec

    from medassay.synthesis.page_order import Page, PageBox, Piece, reading_order

    if find_spec("pypdfium2") is None or find_spec("PIL") is None:
        raise UnavailableError("reading PDF needs the extra: pip install 'medassay[pdf]'")
    pictures.mkdir(parents=True, exist_ok=True)
    for former in pictures.glob("page-*.png"):  # of another version, which may have had more pages
        former.unlink()
    first, *rows = _in_child("medassay.synthesis.pdf_pages", path, pictures)
    head = msgspec.convert(first, _PdfHead)
    if head.problem:
        raise InputError(f"{path}: not readable as PDF: {head.problem}")
    pages = [
        Page(
            [Piece(*piece) for piece in page.pieces],
            [PageBox(*box) for box in page.drawings],
            page.height,
        )
        for page in msgspec.convert(rows, list[_PdfPage])
    ]
    if not pages or len(pages) < head.pages:
        raise InputError(
            f"{path}: {len(pages)} of {head.pages} pages could be read; split or repair the"
            " document"
        )
    pictures_found = tuple(sorted(pictures.glob("page-*.png")))
    outline = _headings(head.outline)
    lines = reading_order(pages)
    places = places_on_pages(lines, outline or [*headings_of_pages(pages)])
    return parts_of(lines, places), pictures_found, head.made


def _headings(levels: Iterable[tuple[int, str, int]]) -> list[Heading]:
    """Return headings whose titles hold words, cleaned as all text is."""
    headings = []
    for level, title, page in levels:
        cleaned = " ".join(clean_text(title).split())
        if cleaned and len(cleaned) <= LONGEST_TITLE:
            headings.append(Heading(level=level, title=cleaned, page=page))
    return headings


def _in_child(module: str, path: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what another process of ours says of a file, a JSON object a line."""
    command = [sys.executable, "-m", module, str(path.resolve()), str(folder.resolve())]
    environment = {name: os.environ[name] for name in _KEPT_IN_CHILD if name in os.environ}
    try:
        child = subprocess.run(
            command, capture_output=True, env=environment, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{path}: not read within {_SECONDS} s; split the document") from None
    try:
        rows = [json.loads(line) for line in child.stdout.splitlines()]
    except ValueError:
        rows = []
    if child.returncode != 0 or not rows:
        raise InputError(
            f"{path}: the reader gave up (too large, or damaged); split or repair the document"
        )
    yield from rows


def _html(data: bytes, path: Path) -> list[Chapter]:
    from medassay.context.tools.fetch import extract_document, need_extractor

    need_extractor()
    try:
        text, headings = asyncio.run(extract_document(data))
    except ToolError:
        raise InputError(f"{path}: its text cannot be extracted; expected a page of HTML") from None
    lines = text.split("\n")
    headings_found = _headings((level, title, 0) for level, title in headings)
    return parts_of([lines], places_in_lines(lines, headings_found))


def _markdown(text: str) -> list[Chapter]:
    """Return the words of Markdown without its marks, each block a paragraph.

    Title, tables and references are left out.
    """
    from markdown_it import MarkdownIt

    front = re.compile(r"\A---\n.*?\n---\n", re.DOTALL).sub("", text)
    begun: list[tuple[int, str, list[str]]] = [(0, "", [])]  # level, title, paragraphs
    skipped = level = 0  # within a table or a title; the level of the heading of references
    heading = 0  # the level of the heading that is being read
    for token in MarkdownIt("commonmark").enable("table").parse(front):
        if token.type == "heading_open":
            heading = int(token.tag[1])
            level = 0 if heading <= level else level
        if token.type == "table_open" or (token.type == "heading_open" and heading == 1):
            skipped += 1
        elif token.type == "table_close" or (token.type == "heading_close" and heading == 1):
            skipped -= 1
        inline_text = _inline(token.children or ()) if token.type == "inline" else ""
        if inline_text and _REFERENCES.fullmatch(inline_text.strip()) and (heading or not skipped):
            level = heading or 2
        elif inline_text and not level:
            title = " ".join(clean_text(inline_text).split())
            if heading and title and len(title) <= LONGEST_TITLE:
                begun.append((heading, title, []))
            if not skipped:
                begun[-1][2].append(inline_text)
        elif token.type in ("fence", "code_block") and not level:
            begun[-1][2].append(token.content)
        if token.type == "heading_close":
            heading = 0
    return [
        Chapter(at, title, "\n\n".join(paragraphs))
        for at, title, paragraphs in begun
        if at or paragraphs
    ]


_REFERENCES = re.compile(
    r"(?:references|literature|bibliography|literatur|quellen|referencias)\W*", re.IGNORECASE
)


def _inline(parts: "Sequence[Token]") -> str:
    kinds_kept = ("text", "code_inline")
    return "".join(
        part.content if part.type in kinds_kept else "\n" if "break" in part.type else ""
        for part in parts
    )


# What stands for a hyphen at the end of a line in texts of PDF files.
_BROKEN = re.compile(r"\b(\w+)[-\u2010\u00ad\ufffe\x02][ \t]*\n[ \t]*(\w+)")


def clean_text(text: str) -> str:
    r"""Return text in NFC, words broken at line ends joined, blanks collapsed.

    Control characters left out; nothing is added.

    A break stays a hyphen where the text has the word so elsewhere, as in "well-known".

    Examples
    --------
    >>> clean_text("Re\u0301nal hypo-\nnatraemia;  a well-\nknown  one.\n\n\n\nSo well-known.")
    'Rénal hyponatraemia; a well-known one.\n\nSo well-known.'
    """
    unified = storable(text).replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n")
    unified = unicodedata.normalize("NFC", unified)
    hyphened = set(re.findall(r"\b\w+-\w+", unified.casefold()))

    def joined(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        so = f"{first}-{second}".casefold() in hyphened or not second[0].islower()
        return f"{first}-{second}" if so else first + second

    unified = _BROKEN.sub(joined, unified)
    unified = unified.replace("\u00ad", "").replace("\u2010", "-")
    unified = "".join(
        c for c in unified if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cn")
    )
    lines = [" ".join(line.split()) for line in unified.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def share_from(text: str, source: str) -> float:
    """Return the share of a text's words that stand in its source, 1 where there is none.

    Each word counts as often as the source has it at most, so that a text cannot say a word of it
    again and again.

    Examples
    --------
    >>> share_from("Salt salt low", "The salt is low.")
    0.6666666666666666
    """
    words = Counter(_WORD.findall(unicodedata.normalize("NFC", text).casefold()))
    counts = Counter(_WORD.findall(unicodedata.normalize("NFC", source).casefold()))
    total = sum(words.values())
    return 1.0 if not total else sum((words & counts).values()) / total
