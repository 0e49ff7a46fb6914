"""How a table or a text of one's own is written: its encoding, and what separates its columns.

Excel writes ";" and Windows-1252 in much of Europe, and says neither in the file.
"""

import codecs
import csv
import io
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import dropwhile, islice
from pathlib import Path

import msgspec

from medassay.errors import InputError

SEPARATORS = (",", ";", "\t")
_BLOCK = 1 << 20  # bytes read at once
_ROWS = 50  # that show which separator it is
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ELSE = "cp1252"
_HINT = re.compile("sep=.?", re.IGNORECASE)
_PACKED = b"PK\x03\x04"  # how a spreadsheet begins, as all packed files do


class TableForm(msgspec.Struct, frozen=True, kw_only=True):
    """Encoding and separator of a CSV table."""

    encoding: str = "utf-8-sig"
    separator: str = ","

    def __str__(self) -> str:
        return f"{encoding_name(self.encoding)}, columns separated by {_NAMES[self.separator]}"

    @property
    def usual(self) -> bool:
        """Return whether it is what a CSV table is expected to be, so that nobody need be told."""
        return self == USUAL


USUAL = TableForm()


def encoding_name(encoding: str) -> str:
    """Return what people call an encoding."""
    names = {"utf-8-sig": "UTF-8", "cp1252": "Windows-1252 (it is no UTF-8)"}
    return names.get(encoding, encoding.upper())


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file: that of its mark, else UTF-8 if it is that throughout,
    else Windows-1252.

    Raises
    ------
    InputError
        When it is none of these, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
        refuse_packed(path, start)
        for mark, encoding in _MARKS.items():
            if start.startswith(mark):
                return encoding
        for encoding in ("utf-8-sig", _ELSE):
            if _is(path, encoding):
                return encoding
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    raise InputError(
        f"{path.name}: neither UTF-8 nor Windows-1252; save it as UTF-8 (`bank import` can be told"
        " by --encoding what it is)"
    )


def refuse_packed(path: Path, start: bytes) -> None:
    """Refuse a file that begins as spreadsheets do."""
    if start.startswith(_PACKED):
        raise InputError(
            f"{path.name}: a spreadsheet or another packed file, no CSV table; save the sheet as"
            " CSV (UTF-8)"
        )


def _is(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        try:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def form_of(path: Path, encoding: str = "") -> TableForm:
    """Return how a CSV table is written, by its first rows: the separator that gives most columns,
    as many in every row.

    Where none does, it is the one that gives the header most columns: whoever reads the table names
    the row that is wrong.

    Parameters
    ----------
    encoding : where it is known; empty to find it

    Raises
    ------
    InputError
        When the encoding is unknown, or is not that of the file.
    """
    if encoding:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise InputError(
                f"--encoding: '{encoding}' is unknown; expected a name as utf-8, cp1252 or latin-1"
            ) from None
    codec = encoding or encoding_of(path)
    if encoding and not path.is_file():  # a pipe can be read once only
        return TableForm(encoding=codec)

    def columns(sign: str) -> tuple[int, int]:
        try:
            with path.open(encoding=codec, newline="") as file:
                return _columns(file, sign)
        except (OSError, UnicodeError):  # said by whoever reads the table
            return 0, 0

    return TableForm(encoding=codec, separator=max(SEPARATORS, key=columns))


def separator_of(table: str) -> str:
    """Return what separates the columns of a table, found as by `form_of`."""
    return max(SEPARATORS, key=lambda sign: _columns(io.StringIO(table, newline=""), sign))


def is_header(cells: Sequence[str]) -> bool:
    """Return whether a row can be a table's header. Above it may stand blank rows, and the line
    `sep=;`, by which Excel is told the separator.
    """
    text = "".join(cells).strip()
    return bool(text) and not _HINT.fullmatch(text)


def _columns(lines: Iterable[str], separator: str) -> tuple[int, int]:
    """Return how many columns all of the first rows have (0: different numbers, or one), and how
    many the header has.
    """
    csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.reader(lines, delimiter=separator)
        header_on = dropwhile(lambda row: not is_header(row), reader)
        rows = [row for row in islice(header_on, _ROWS) if row]
    except csv.Error:  # said by whoever reads the table
        return 0, 0
    widths = {len(row) for row in rows}
    header = len(rows[0]) if rows else 0
    return (header if len(widths) == 1 and header > 1 else 0), header
