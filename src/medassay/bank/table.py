"""One's own questions from a table: each row an item, of the kind that its cells say."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from medassay.bank.builder import BankBuilder, letter_index
from medassay.bank.delimited import USUAL, TableForm
from medassay.bank.spreadsheet import DateCell, is_workbook, read_rows
from medassay.bank.table_columns import (
    DOCUMENT,
    LISTS,
    TEXT_KEYS,
    TableColumn,
    columns_of,
    fact_keys,
    key_of,
    looks_german,
)
from medassay.bank.table_numbers import (
    has_decimal_comma,
    is_number,
    read_number,
    read_range,
    show_decimal_comma,
)
from medassay.core.canonical import canonical
from medassay.core.json import parse_json
from medassay.core.records.item import Bank
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError

_YES = ("yes", "ja", "true", "wahr", "x", "1")
_NO = ("no", "nein", "false", "falsch", "0", "-")
_NUMBER_KEYS = ("expected", "hi", "lo", "number")
_LANGUAGE = re.compile("[a-z]{2,3}(-[a-z0-9]+)*")


class QuestionTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of questions, and how its columns were understood.

    Attributes
    ----------
    columns : key of an item → column
    rows : (number of the row, cells by column)
    """

    path: Path
    header: Sequence[str]
    columns: Mapping[str, str]
    rows: Sequence[tuple[int, Mapping[str, str]]]

    @property
    def understood(self) -> list[TableColumn]:
        """Return every column with the key that it was taken for."""
        keys = {column: key for key, column in self.columns.items()}
        return [self._column(name, keys.get(name, "")) for name in self.header]

    def _column(self, name: str, key: str) -> TableColumn:
        texts = [text for _, cells in self.rows if (text := cells.get(name, ""))]
        return TableColumn(
            name=name,
            key=key,
            example=texts[0] if texts else "",
            filled=len(texts),
            suggestion="" if key_of(name) in self.columns else key_of(name),
        )


def read_table(path: Path, columns: Mapping[str, str], form: TableForm = USUAL) -> QuestionTable:
    """Return a table with its columns understood.

    Parameters
    ----------
    columns : key → column by the user's word; {} to go by the headings
    form : how a CSV table is written

    Raises
    ------
    InputError
        Naming the file, and the column that is not there or means two things.
    """
    rows = list(read_rows(path, form))
    if not rows:
        sheet = " of its first sheet" if is_workbook(path) else ""
        raise InputError(f"{path.name}: no rows below the headings{sheet}")
    header = list(rows[0][1])
    return QuestionTable(
        path=path, header=header, columns=columns_of(header, columns, path.name), rows=rows
    )


def bank_of_table(
    table: QuestionTable,
    *,
    name: str,
    licence: str,
    domain: str,
    language: str = "",
    may_leave: bool = False,
) -> Bank:
    """Return the bank in a table.

    Parameters
    ----------
    domain, language : used for rows where no column gives one; without a language it is English,
        and numbers that German headings, or a decimal comma elsewhere in the table, let read in two
        ways are refused
    may_leave : whether texts with a reference record may go to models elsewhere and be published:
        they are somebody's reports

    Raises
    ------
    InputError
        Naming the file, the row, the column and what was expected; no row is left out silently.
    """
    path, columns = table.path, table.columns
    draft = BankBuilder(
        name,
        licence=licence,
        source=f"table {path.name}",
        title=name,
        may_leave=may_leave or DOCUMENT not in columns,
    )
    row_of: dict[str, int] = {}  # by id
    comma_untold = None if looks_german(table.header) or _shows_decimal_comma(table) else False
    for row, cells in table.rows:
        where = f"{path.name} row {row}"
        texts = {key: cells.get(column, "") for key, column in columns.items()}
        values = _with_code(texts, columns, where)
        told = values.get("language") or language
        comma = has_decimal_comma(told) if told else comma_untold
        _refuse_dates(values, columns, where)
        record = _record(values, columns, where, comma=comma)
        item_id = record.setdefault("id", f"{name}-{row:05}")
        if (first := row_of.setdefault(item_id, row)) != row:
            raise InputError(f"{where}: id '{item_id}' stands in row {first}, too; one row an item")
        record.setdefault("domain", domain)
        record.setdefault("language", language or "en")
        try:
            draft.add(record)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return draft.bank()


def _with_code(
    values: Mapping[str, str], columns: Mapping[str, str], where: str
) -> Mapping[str, str]:
    """Return the cells of a row with its language, if it names one, as a code in small letters."""
    if not (told := values.get("language", "")):
        return values
    code = told.casefold()
    if not _LANGUAGE.fullmatch(code):
        raise InputError(f"{where}: field 'language': '{told:.40}'; expected a code, as de or en")
    return {**values, "language": code}


def _shows_decimal_comma(table: QuestionTable) -> bool:
    columns = [table.columns[key] for key in _NUMBER_KEYS if key in table.columns]
    return show_decimal_comma(
        cells.get(column, "") for _, cells in table.rows for column in columns
    )


def _refuse_dates(cells: Mapping[str, str], columns: Mapping[str, str], where: str) -> None:
    for key, text in cells.items():
        if isinstance(text, DateCell):
            raise InputError(
                f"{where}: column '{columns[key]}' holds a date, {text}; Excel makes dates of what"
                " is typed, as of 3-4: format the column as text, and type it again"
            )


def _record(
    cells: Mapping[str, str], columns: Mapping[str, str], where: str, *, comma: bool | None
) -> ItemObject:
    """Return the object of one row; the columns that it fills say of which kind it is.

    `comma` says whether commas are decimal, None where nobody knows.
    """
    record: dict[str, Any] = {k: str(v) for k, v in cells.items() if k in TEXT_KEYS and v}
    for key in LISTS:
        if cells.get(key):
            record[key] = _list(cells[key], f"{where}: field '{key}'")
    letters = [letter for letter in LETTERS if letter in columns]
    if options := _options(cells, letters, columns, where):
        record["options"] = options
    facts = [str(text) for key in fact_keys(columns) if (text := cells[key])]
    if facts:
        record["facts"] = [*record.get("facts", []), *facts]
    if cells.get(DOCUMENT):
        record[DOCUMENT] = _document(cells[DOCUMENT], f"{where}: column '{columns[DOCUMENT]}'")
    _add_range(record, cells, columns, where, comma=comma)
    closed = {"options", "regex", "range"} & record.keys()
    opened = {"diagnoses", "facts", "reference", DOCUMENT} & record.keys()
    if opened and not closed:
        record["answer_type"] = "open"
    elif not closed:
        held = ", ".join(f"'{columns[key]}'" for key in columns if _tells_target(key))
        raise InputError(
            f"{where}: nothing says what counts as right: no options, model answer, fact, number,"
            f" pattern or record in {held or 'a column'}; --columns says which column holds it"
        )
    _refuse_two_readings(record, where)
    if "options" in record:
        record["expected"] = _key(cells.get("expected", ""), record["options"], columns, where)
    for key in ("year", "revision"):
        if key in record:
            record[key] = _whole(record[key], f"{where}: field '{key}'")
    if record.pop("harm", None) and _is_marked(cells["harm"], f"{where}: field 'harm'"):
        record["harm"] = True
    return cast(ItemObject, record)


def _is_marked(text: str, where: str) -> bool:
    """Return whether a cell says yes."""
    if text.casefold() not in (*_YES, *_NO):
        raise InputError(f"{where}: '{text:.40}'; expected yes or no")
    return text.casefold() in _YES


def _tells_target(key: str) -> bool:
    """Return whether a column of this key says what counts as right."""
    return key in LETTERS or key not in TEXT_KEYS or key in ("expected", "reference", "regex")


def _document(text: str, where: str) -> dict[str, Any]:
    """Return the reference record in a cell."""
    document = _json(text, where)
    if not isinstance(document, dict):
        raise InputError(f"{where}: expected a JSON object, the reference record of the text")
    return dict(document)


def _list(text: str, where: str) -> list[Any]:
    if text.startswith("["):
        listed: list[Any] = _json(text, where)
        return listed
    return [part.strip() for part in text.split("|")]


def _json(text: str, where: str) -> Any:
    """Return the JSON value in a cell; refuse one that a bank cannot hold."""
    value = parse_json(text.encode(), where)
    try:
        canonical(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return value


def _options(
    cells: Mapping[str, str], letters: Sequence[str], columns: Mapping[str, str], where: str
) -> list[str]:
    """Return the options in columns of their own; a gap would shift the letters behind it."""
    texts = [str(cells[letter]) for letter in letters]
    while texts and not texts[-1]:
        texts.pop()
    for letter, text in zip(letters, texts, strict=False):
        if not text:
            raise InputError(
                f"{where}: option {letter} (column '{columns[letter]}') is empty, and one behind it"
                " is not; the key could mean either: fill it, or move the options together"
            )
    if texts and cells.get("options"):
        raise InputError(
            f"{where}: field 'options' and columns of options A, B … are both filled; empty one of"
            " the two"
        )
    if texts and letters[: len(texts)] != list(LETTERS[: len(texts)]):
        missing = next(letter for letter in LETTERS if letter not in letters)
        raise InputError(
            f"{where}: no column holds option {missing}; options need columns from A on, without a"
            " gap"
        )
    return texts


def _refuse_two_readings(record: Mapping[str, Any], where: str) -> None:
    """Refuse two options of one text, and a key beside a pattern that says what is right."""
    options = record.get("options", ())
    if {"regex", "expected"} <= record.keys() and not options:
        raise InputError(
            f"{where}: fields 'regex' and 'expected' are both filled; empty one of the two"
        )
    for number, option in enumerate(options):
        if option in options[:number]:
            letter = LETTERS[number] if number < len(LETTERS) else number + 1
            raise InputError(
                f"{where}: option {letter} is '{option!s:.40}', as an option before it"
            )


def _add_range(
    record: dict[str, Any],
    cells: Mapping[str, str],
    columns: Mapping[str, str],
    where: str,
    *,
    comma: bool | None,
) -> None:
    """Add the numbers that count as right: from two columns, from one, or from that of the key
    where a row has no options.
    """
    bounds: tuple[float, float] | None = None
    if cells.get("lo") or cells.get("hi"):
        ends = []
        for key in ("lo", "hi"):
            text = cells.get(key, "")
            if not text:
                raise InputError(
                    f"{where}: fields 'lo', 'hi': '{key}' is empty; expected two numbers (the same"
                    " twice where just one is right)"
                )
            ends.append(read_number(text, f"{where}: field '{key}'", comma=comma))
        bounds = ends[0], ends[1]
    elif cells.get("number"):
        bounds = read_range(cells["number"], f"{where}: column '{columns['number']}'", comma=comma)
    elif "expected" in record and "options" not in record and "regex" not in record:
        place = f"{where}: column '{columns['expected']}'"
        key = cells["expected"]
        if not is_number(key):
            raise InputError(
                f"{place}: '{record['expected']:.40}', and the row has no options; expected a"
                " number or a range of numbers there. A model answer stands in a column for"
                " reference, a pattern in one for regex"
            )
        record.pop("expected")
        bounds = read_range(key, place, comma=comma)
    if bounds is not None:
        if max(map(abs, bounds)) >= 2**53:
            raise InputError(
                f"{where}: {max(bounds, key=abs):g} is too large; expected numbers below 2^53,"
                " about 9e15, which every program reads alike: take a larger unit"
            )
        record["range"] = {"lo": bounds[0], "hi": bounds[1]}
        if comma:
            record.setdefault("locale", "de")  # replies in that language write numbers likewise


def _whole(text: str, where: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", text):  # int() takes 2_024 for a year
        raise InputError(f"{where}: '{text:.40}'; expected a whole number")
    return int(text)


def _key(key: str, options: Sequence[str], columns: Mapping[str, str], where: str) -> str:
    """Return the key's letter; a table may give the letter or the option's text."""
    if not key:
        column = columns.get("expected")
        raise InputError(
            f"{where}: the key is empty (column '{column}'); expected a letter or an option's text"
            if column
            else f"{where}: no column holds the key; --columns …,expected=COLUMN names it"
        )
    sign = key.rstrip(".) ")
    at = letter_index(sign)
    if at is None:  # the second column of options may be called 2, or Option 2, as the key is
        numbers = (re.sub(r"\D", "", columns.get(letter, "")) for letter in LETTERS)
        at = next((n for n, no in enumerate(numbers) if no == sign == str(n + 1)), None)
    if at is not None and at < len(options):
        if key in options and options.index(key) != at:
            raise InputError(
                f"{where}: field 'expected': '{key}' names option {LETTERS[at]} and is the text of"
                f" option {LETTERS[options.index(key)]}; give the letter as '{LETTERS[at]})'"
            )
        return LETTERS[at]
    if key in options:
        return LETTERS[options.index(key)]
    alike = [n for n, option in enumerate(options) if str(option).casefold() == key.casefold()]
    if len(alike) == 1:
        return LETTERS[alike[0]]
    raise InputError(
        f"{where}: field 'expected': '{key}' is neither a letter of its {len(options)} options nor"
        " one of them"
    )
