"""One's own questions from a spreadsheet: CSV or XLSX, columns named by the user."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medassay.bank.check import ITEM_KEYS
from medassay.bank.draft import Draft, letter_index, read_csv
from medassay.core.item import LETTERS, Bank
from medassay.core.jsontext import parse_json
from medassay.errors import InputError

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
    path: Path, columns: Mapping[str, str], *, name: str, licence: str, domain: str
) -> Bank:
    """Return the bank in a table.

    Parameters
    ----------
    columns : item key → column of the table. Keys are those of a bank file, the letters A, B, C …
        (one column an option), `options` and `diagnoses` (a JSON list or texts separated by "|"), `lo`
        and `hi`.
    domain : used for rows where no column gives one

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
    draft = Draft(name, licence=licence, source=f"table {path.name}", title=name)
    for row, cells in read_rows(path):
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
        try:
            draft.add(record)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    if draft.dropped:
        raise InputError(
            f"{path.name}: {sum(draft.dropped.values())} rows repeat an id; expected one row an item"
        )
    return draft.bank()


def _record(cells: Mapping[str, str], where: str, letters: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {k: v for k, v in cells.items() if k in _TAKEN and v}
    for key in _LISTS:
        if cells.get(key):
            given = cells[key].strip()
            record[key] = (
                parse_json(given.encode(), f"{where}: field '{key}'")
                if given.startswith("[")
                else [p.strip() for p in given.split("|")]
            )
    if letters:
        record["options"] = [cells[letter] for letter in letters if cells[letter]]
    closed = (
        {"options", "regex", "expected"} & record.keys() or cells.get("lo") or cells.get("hi")
    )
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
    return record


def _key(given: str, options: list[str], where: str) -> str:
    """Return the key's letter; a table may give the letter or the option's text."""
    at = letter_index(given)
    if at is not None and at < len(options):
        return LETTERS[at]
    if given in options:
        return LETTERS[options.index(given)]
    raise InputError(
        f"{where}: field 'expected': '{given}' is neither a letter of its {len(options)} options nor one of them"
    )


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (number of the row, cells by column) of a CSV file, or of the first sheet of an XLSX file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() != ".xlsx":
        yield from enumerate(read_csv(path), 2)
        return
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            "reading .xlsx needs the extra [data]: pip install 'medassay[data]'"
        ) from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # noqa: BLE001 -- openpyxl raises whatever zip and XML raise
        raise InputError(f"{path.name}: not readable as a spreadsheet: {error}") from None
    sheet = book.worksheets[0].iter_rows(values_only=True)
    header = [str(cell or "").strip() for cell in next(sheet, ())]
    for row, cells in enumerate(sheet, 2):
        texts = ["" if cell is None else str(cell).strip() for cell in cells]
        if any(texts):
            yield row, dict(zip(header, texts, strict=False))
    book.close()
