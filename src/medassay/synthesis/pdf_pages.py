"""The pages of a PDF, read in a process of its own: `python -m medassay.synthesis.pdf_pages FILE
FOLDER >pages`.

Files are hostile, and a reader written in C can hang, crash or eat all memory; a process can be
ended, is bounded, and holds no secrets. One JSON line a page: size, the pieces of its lines and the
boxes of its drawings with their places; its picture is written to the folder. A first line holds
what the file says of itself.
"""

import json
import resource
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

MEMORY, SECONDS = 4 * 2**30, 120
MOST_PAGES = 200
_PIXELS = 1600  # of a picture's longer side: small print stays legible for a model
_MOST_CHARACTERS = 60_000  # of a page
_MOST_DRAWINGS = 2_000  # of a page
_MOST_TITLES = 5_000  # of the outline
_LONGEST_TITLE = 200  # characters
_WIDE_GAP = 1.1  # times the height of the text: a gap between columns or cells, not between words
Piece = tuple[float, float, float, float, str]  # left, top, right, bottom (from above), text


def main() -> None:
    """Write what a PDF holds to standard output, its pictures to a folder."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pypdfium2

    file, folder = map(Path, sys.argv[1:])
    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        _say({"problem": str(error)})
        return
    outline = [*islice(_outline(document), _MOST_TITLES)]
    made_on = _day_made(document.get_metadata_dict())
    _say({"pages": len(document), "made": made_on, "outline": outline})
    for number in range(min(len(document), MOST_PAGES)):
        page = document[number]
        width, height = page.get_size()
        scale = _PIXELS / max(width, height, 1.0)
        page.render(scale=min(scale, 4.0)).to_pil().convert("RGB").save(
            folder / f"page-{number + 1:03}.png"
        )
        pieces = [*_pieces(page.get_textpage(), height)]
        drawings = [*_drawings(page, height)]
        _say({"width": width, "height": height, "pieces": pieces, "drawings": drawings})


def _say(value: Any) -> None:
    sys.stdout.buffer.write(json.dumps(value).encode() + b"\n")


def _day_made(metadata: dict[str, str]) -> str:
    """Return the day a PDF was made as it says itself, `D:20240501…`, as 2024-05-01; "" where it
    does not say.
    """
    digits = metadata.get("CreationDate", "").removeprefix("D:")[:8]
    is_date = len(digits) == 8 and digits.isascii() and digits.isdigit()
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if is_date else ""


def _outline(document: "PdfDocument") -> Iterator[tuple[int, str, int]]:
    """Yield level from 1, title and page from 1 of what the outline of a PDF names."""
    for mark in document.get_toc():
        goal = mark.get_dest()
        page = None if goal is None else goal.get_index()
        title = " ".join(mark.get_title().split())
        if page is not None and title:
            yield mark.level + 1, title[:_LONGEST_TITLE], page + 1


def _pieces(text: "PdfTextPage", height: float) -> Iterator[Piece]:
    """Yield the pieces of lines: what stands on one line without a wide gap."""
    from pypdfium2 import raw

    pieces: list[str] = []
    box = [0.0, 0.0, 0.0, 0.0]
    for at in range(min(text.count_chars(), _MOST_CHARACTERS)):
        character = chr(raw.FPDFText_GetUnicode(text, at))
        if character in "\r\n":
            continue
        left_edge, bottom, right, top = text.get_charbox(at, loose=True)
        here = [left_edge, height - top, right, height - bottom]
        if pieces and not _goes_on(box, here):
            yield (box[0], box[1], box[2], box[3], "".join(pieces))
            pieces = []
        if not pieces:
            if character.isspace():
                continue
            box = here
        pieces.append(character)
        if not character.isspace():
            box = [
                min(box[0], here[0]),
                min(box[1], here[1]),
                max(box[2], here[2]),
                max(box[3], here[3]),
            ]
    if pieces:
        yield (box[0], box[1], box[2], box[3], "".join(pieces))


def _drawings(page: "PdfPage", height: float) -> Iterator[tuple[float, float, float, float]]:
    """Yield the boxes of pictures and drawn lines, from above; at most some thousands."""
    from pypdfium2 import raw

    kinds = (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING)
    for drawing in islice(page.get_objects(filter=kinds, max_depth=4), _MOST_DRAWINGS):
        left_edge, bottom, right, top = drawing.get_bounds()
        yield (left_edge, height - top, right, height - bottom)


def _goes_on(box: list[float], here: list[float]) -> bool:
    """Return whether a character stands on the line of a piece, right behind it."""
    high = max(1.0, box[3] - box[1])
    middle = (here[1] + here[3]) / 2
    return box[1] <= middle <= box[3] and -high / 2 <= here[0] - box[2] <= _WIDE_GAP * high


if __name__ == "__main__":
    main()
