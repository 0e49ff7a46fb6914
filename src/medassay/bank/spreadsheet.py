"""Tables of one's own, read row by row: CSV, or the first sheet of an XLSX file that is shown."""

import datetime as dt
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from medassay.bank.builder import numbered_csv, refuse_twice
from medassay.bank.delimited import USUAL, TableForm
from medassay.core.catch import caught
from medassay.errors import InputError

if TYPE_CHECKING:
    from openpyxl.cell import Cell, MergedCell
    from openpyxl.cell.read_only import EmptyCell, ReadOnlyCell
    from openpyxl.cell.rich_text import TextBlock
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

# Of a spreadsheet: bytes of all its parts, rows (what Excel itself can hold), cells, and how much a
# part may swell.
_MOST_BYTES = 128 * 2**20
_MOST_ROWS = 2**20
_MOST_CELLS = 5_000_000
_MOST_RATIO = 200
_SMALL = 2**20  # bytes of a part that may swell as it likes
# In the XML of a sheet: a merged range, and a cell with a formula and no value. One whose result is
# an empty text (`t="str"`) has an empty value.
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([^"]{1,40})"')
_NEVER_COMPUTED = re.compile(
    rb'<(?:\w+:)?c\s(?![^>]*t="str")[^>]*?r="([A-Z]+[0-9]+)"[^>]*>\s*'
    rb"<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
# A hidden row with a value in it, and hidden columns from one to another.
_ROW_HIDDEN = re.compile(
    rb'<(?:\w+:)?row\s(?=[^>]*\bhidden="(?:1|true)")[^>]*?\br="([0-9]+)"[^>]*(?<!/)>'
    rb"(?=(?:(?!</(?:\w+:)?row>).)*?<(?:\w+:)?(?:v|is)\b)",
    re.DOTALL,
)
_COLUMNS_HIDDEN = re.compile(rb'<(?:\w+:)?col\s(?=[^>]*\bhidden="(?:1|true)")([^>]*)>')
_COLUMN_ENDS = re.compile(rb'\b(min|max)="([0-9]+)"')
# In the format of a number: what is shown beside it, in quotes, behind a backslash, or as the sign
# of a currency; `_€` leaves room for one, `* ` fills with blanks, and `[$-407]` is a language.
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]|([$€£¥])')
_THOUSANDS = re.compile(r"[0#?],+(?![0#?,])")  # a comma that divides, and shows 1,235 for 1234567
_RAISED = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")


class DateCell(str):
    """The text of a cell that holds a date, which Excel makes of much that is none."""

    __slots__ = ()


class NumberCell(str):
    """The text of a cell that holds a number, so that its point groups no thousands."""

    __slots__ = ()


def read_rows(path: Path, form: TableForm = USUAL) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (number of the row, cells by column) of a CSV file, or of the first sheet of an XLSX
    file; rows without any text are left out.

    Cells have no blanks around them.

    Raises
    ------
    InputError
        Naming the file, and where in it nothing can be read; also when two columns have one name.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if is_workbook(path):
        yield from _read_sheet(path)
        return
    for at, (row, cells) in enumerate(numbered_csv(path, form=form)):
        if not at:
            refuse_twice(path, [str(name).strip() for name in cells])
        stripped = {str(name).strip(): cell.strip() for name, cell in cells.items()}
        if nameless := stripped.pop("", ""):
            raise _without_heading(path, row, nameless)
        if any(stripped.values()):
            yield row, stripped


def _without_heading(path: Path, row: int, text: str) -> InputError:
    return InputError(
        f"{path.name} row {row}: '{text:.40}' stands in a column without a heading; give it one"
    )


def sheets_of(path: Path) -> list[str]:
    """Return the names of the sheets of a workbook, first the one that `read_rows` reads."""
    import openpyxl

    with _unreadable(path, ""), closing(openpyxl.load_workbook(path, read_only=True)) as book:
        read = _first_shown(book).title
        return [read, *(name for name in book.sheetnames if name != read)]


def _first_shown(book: "Workbook") -> "Worksheet":
    """Return the first sheet that is not hidden."""
    return next(
        (sheet for sheet in book.worksheets if sheet.sheet_state == "visible"), book.worksheets[0]
    )


def is_workbook(path: Path) -> bool:
    """Return whether a file is an Excel workbook, by how it begins or by its name."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" or path.suffix.lower() == ".xlsx"


def _read_sheet(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            "reading .xlsx needs the extra [data]: pip install 'medassay[data]'"
        ) from None
    _refuse_bombs(path)
    with _unreadable(path, ""):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, rich_text=True)
        sheet = _first_shown(book)
        # Some programs state a smaller range than they write, and what is beyond it would be lost.
        sheet.reset_dimensions()  # type: ignore[attr-defined]
        rows = sheet.iter_rows()
        with zipfile.ZipFile(path) as archive:
            # What openpyxl leaves out when it reads row by row; nothing public names the part.
            source = archive.read(sheet._worksheet_path.lstrip("/"))  # type: ignore[attr-defined]
    _refuse_what_is_not_seen(path, source)
    header: list[str] = []
    n_cells = 0
    try:
        for row in count(1):
            with _unreadable(path, f"row {row}: "):
                cells = next(rows, None)
            if cells is None:
                return
            n_cells += len(cells)
            if row > _MOST_ROWS or n_cells > _MOST_CELLS:
                raise InputError(
                    f"{path.name}: more than {_MOST_ROWS:,} rows or {_MOST_CELLS:,} cells; split"
                    " it, or save it as CSV"
                )
            texts = [_text(cell, f"{path.name} row {row}") for cell in cells]
            if not any(texts):
                continue
            if not header:
                header = texts
                refuse_twice(path, header)
                _refuse_hidden_columns(path, source, header)
                continue
            for name, cell in zip_longest(header, cells, fillvalue=""):
                if not isinstance(cell, str) and cell.data_type == "e":
                    raise InputError(
                        f"{path.name} row {row}, column '{name}': holds the error {cell.value};"
                        " mend its formula, or clear the cell"
                    )
            for name, text in zip_longest(header, texts, fillvalue=""):
                if text and not name:
                    raise _without_heading(path, row, text)
            named = zip_longest(header, texts, fillvalue="")
            yield row, {name: text for name, text in named if name}
    finally:
        book.close()


def _refuse_what_is_not_seen(path: Path, source: bytes) -> None:
    """Refuse a sheet that shows something else than would be read: of merged cells the first alone
    holds the value, a program that never computed a formula leaves none, and rows can be hidden.
    """
    if merged := _MERGED.search(source):
        raise InputError(
            f"{path.name}: the cells {merged[1].decode()} are merged, so that only the first of"
            " them holds their value; unmerge them, and fill each"
        )
    if hidden := _ROW_HIDDEN.search(source):
        raise InputError(
            f"{path.name}: row {hidden[1].decode()} is hidden, and would be read; show it, or"
            " delete it"
        )
    if b"vertAlign" in source:  # in the sheet itself, where openpyxl reads no parts of a text
        raise InputError(
            f"{path.name}: holds raised or lowered characters that are not read; open and save the"
            " file in a spreadsheet program"
        )
    if formula := _NEVER_COMPUTED.search(source):
        raise InputError(
            f"{path.name}: cell {formula[1].decode()} holds a formula without its result; open and"
            " save the file in a spreadsheet program, or write the value"
        )


def _refuse_hidden_columns(path: Path, source: bytes, header: Sequence[str]) -> None:
    for columns in _COLUMNS_HIDDEN.finditer(source):
        ends = {name: int(number) for name, number in _COLUMN_ENDS.findall(columns[1])}
        first, last = ends.get(b"min", 1), ends.get(b"max", 0)
        for name in filter(None, header[first - 1 : last]):
            raise InputError(
                f"{path.name}: column '{name}' is hidden, and would be read; show it, or delete it"
            )


def _text(cell: "Cell | MergedCell | ReadOnlyCell | EmptyCell", where: str) -> str:
    """Return the text of a cell without blanks around it; of a share its percent, as shown.

    Raises
    ------
    InputError
        When a number is shown with a text that only its format holds.
    """
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return DateCell(value)
    if isinstance(value, list):  # a text of which parts have formats of their own
        return _unescaped("".join(_run_text(run) for run in value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _unescaped(str(value))
    return _number_text(value, str(cell.number_format).partition(";")[0], where)


def _unescaped(text: str) -> str:
    """Return a text without blanks around it, with the characters that Excel writes as their
    numbers: `_x000D_` is the first half of a line break.
    """
    from openpyxl.utils.escape import unescape

    return unescape(text).replace("\r\n", "\n").strip()


def _number_text(value: int | float, number_format: str, where: str) -> str:
    """Return a number as its cell shows it, but for how many digits; see `_text`."""
    shown = "".join("".join(parts) for parts in _LITERAL.findall(number_format))
    if _THOUSANDS.search(_LITERAL.sub("", number_format)):
        raise InputError(
            f"{where}: the number {value} is shown in thousands by its format; write it as shown"
        )
    if shown.strip(" -"):
        raise InputError(
            f"{where}: the number {value} is shown with '{shown.strip():.20}', which its format"
            " adds; write the whole as text"
        )
    if "%" in _LITERAL.sub("", number_format):
        # As many digits as Excel works with: a computed 1 − 0.93 is 7 %.
        return f"{(Decimal(f'{value:.15g}') * 100).normalize():f} %"
    if re.fullmatch("0{2,}", number_format) and value == int(value):  # an id with leading zeros
        return str(int(value)).zfill(len(number_format))
    return NumberCell(value)


def _run_text(run: "TextBlock | str") -> str:
    """Return a part of a text, with raised and lowered digits as characters of their own: 10⁹ is no
    109.
    """
    if isinstance(run, str):
        return run
    written = run.font.vertAlign if run.font is not None else None
    table = {"superscript": _RAISED, "subscript": _LOWERED}.get(written or "", {})
    return run.text.translate(table)


@contextmanager
def _unreadable(path: Path, place: str) -> Iterator[None]:
    """Turn whatever zip and XML raise on a damaged spreadsheet into one line."""
    with caught() as errors:  # openpyxl lets all of it through
        yield
    if errors:
        raise InputError(f"{path.name}: not readable as a spreadsheet: {place}{errors[0]}")


def _refuse_bombs(path: Path) -> None:
    """Refuse a spreadsheet by what its parts say that they unpack to, before anything is unpacked.

    A part cannot unpack to more than it says: zipfile reads no further.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path.name}: not readable as a spreadsheet: {error}") from None
    unpacked = sum(part.file_size for part in parts)
    if unpacked > _MOST_BYTES:
        raise InputError(
            f"{path.name}: unpacks to {unpacked / 2**20:,.0f} MiB, more than {_MOST_BYTES >> 20}"
            " MiB; split it, or save it as CSV"
        )
    for part in parts:
        ratio = part.file_size / max(1, part.compress_size)
        if part.file_size > _SMALL and ratio > _MOST_RATIO:
            raise InputError(
                f"{path.name}: its part '{part.filename[:80]}' unpacks to {ratio:,.0f} times its"
                " size, as no table of questions does; save it as CSV"
            )
