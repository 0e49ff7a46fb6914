"""One's own questions from a spreadsheet: CSV or XLSX, columns named by the user."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

from medassay.bank.builder import BankBuilder, letter_index, read_csv
from medassay.bank.check import ITEM_KEYS
from medassay.bank.delimited import USUAL, TableForm
from medassay.core.catch import caught
from medassay.core.json import parse_json
from medassay.core.records.item import Bank
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError

# Of a spreadsheet: bytes of all its parts, rows (what Excel itself can hold), cells, and how much a
# part may swell.
_MOST_BYTES = 128 * 2**20
_MOST_ROWS = 2**20
_MOST_CELLS = 5_000_000
_MOST_RATIO = 200
_SMALL = 2**20  # bytes of a part that may swell as it likes
_LISTS = ("options", "diagnoses")
_TAKEN = ITEM_KEYS - {
    *_LISTS,
    "range",
    "facts",
    "approval",
    "meta",
    "answer_type",
    "commitment",
    "tombstone",
    "lowest",
    "harm",
}
TABLE_KEYS = tuple(sorted(_TAKEN | {*_LISTS, "lo", "hi"}))


def load_table(
    path: Path,
    columns: Mapping[str, str],
    *,
    name: str,
    licence: str,
    domain: str,
    language: str = "en",
    form: TableForm = USUAL,
) -> Bank:
    """Return the bank in a table.

    Parameters
    ----------
    columns : item key → column of the table. Keys are those of a bank file, the letters A, B, C …
        (one column an option), `options` and `diagnoses` (a JSON list or texts separated by "|"),
        `lo` and `hi`.
    domain, language : used for rows where no column gives one
    form : how a CSV table is written

    Raises
    ------
    InputError
        Naming the file, the row, the column and what was expected; no row is left out silently.
    """
    letters = [key for key in columns if len(key) == 1 and key in LETTERS]
    for key in columns:
        if key not in TABLE_KEYS and key not in letters:
            raise InputError(
                f"--columns: unknown key '{key}'; known are {', '.join(TABLE_KEYS)}, A, B …"
            )
    if "question" not in columns:
        raise InputError(
            "--columns: 'question' is needed, e.g. --columns question=Frage,A=a,B=b,expected=key"
        )
    draft = BankBuilder(name, licence=licence, source=f"table {path.name}", title=name)
    for row, cells in read_rows(path, form):
        where = f"{path.name} row {row}"
        for key, column in columns.items():
            if column not in cells:
                raise InputError(
                    f"{where}: no column '{column}' (for {key}); found {', '.join(map(str, cells))}"
                )
        record = _record(
            {key: cells[column] for key, column in columns.items()}, where, sorted(letters)
        )
        record.setdefault("id", f"{name}-{row:05}")
        record.setdefault("domain", domain)
        record.setdefault("language", language)
        try:
            draft.add(record)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if draft.dropped:
        raise InputError(
            f"{path.name}: {sum(draft.dropped.values())} rows repeat an id; expected one row an"
            " item"
        )
    return draft.bank()


def _record(cells: Mapping[str, str], where: str, letters: list[str]) -> ItemObject:
    record: dict[str, Any] = {k: v for k, v in cells.items() if k in _TAKEN and v}
    for key in _LISTS:
        if cells.get(key):
            value = cells[key].strip()
            record[key] = (
                parse_json(value.encode(), f"{where}: field '{key}'")
                if value.startswith("[")
                else [p.strip() for p in value.split("|")]
            )
    if letters:
        record["options"] = [cells[letter] for letter in letters if cells[letter]]
    closed = {"options", "regex", "expected"} & record.keys() or cells.get("lo") or cells.get("hi")
    if "diagnoses" in record or ("reference" in record and not closed):
        record["answer_type"] = "open"
    options = record.get("options")
    if options and "expected" in record:
        record["expected"] = _key(record["expected"], options, where)
    if cells.get("lo") or cells.get("hi"):
        try:
            record["range"] = {"lo": float(cells["lo"]), "hi": float(cells["hi"])}
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{where}: fields 'lo', 'hi': expected two numbers with a point"
            ) from None
    for key in ("year", "revision"):
        if key in record:
            try:
                record[key] = int(record[key])
            except ValueError:
                raise InputError(
                    f"{where}: field '{key}': '{record[key]}'; expected a whole number"
                ) from None
    return cast(ItemObject, record)


def _key(key: str, options: list[str], where: str) -> str:
    """Return the key's letter; a table may give the letter or the option's text."""
    at = letter_index(key)
    if at is not None and at < len(options):
        return LETTERS[at]
    if key in options:
        return LETTERS[options.index(key)]
    raise InputError(
        f"{where}: field 'expected': '{key}' is neither a letter of its {len(options)} options nor"
        " one of them"
    )


def read_rows(path: Path, form: TableForm = USUAL) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (number of the row, cells by column) of a CSV file, or of the first sheet of an XLSX
    file.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() != ".xlsx":
        yield from enumerate(read_csv(path, form=form), 2)
        return
    yield from _read_sheet(path)


def _read_sheet(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            "reading .xlsx needs the extra [data]: pip install 'medassay[data]'"
        ) from None
    _refuse_bombs(path)
    with _unreadable(path, ""):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = book.worksheets[0].iter_rows(values_only=True)
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
            texts = ["" if cell is None else str(cell).strip() for cell in cells]
            if row == 1:
                header = texts
            elif any(texts):
                yield row, dict(zip(header, texts, strict=False))
    finally:
        book.close()


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
