"""Making a bank out of somebody's files: rows become items, and what cannot is counted by
reason.
"""

import csv
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast, overload

import msgspec

from medassay.bank.check import build_item, check_record
from medassay.bank.delimited import (
    USUAL,
    TableForm,
    encoding_name,
    form_of,
    is_header,
    refuse_packed,
)
from medassay.bank.serialize import item_record
from medassay.core.canonical import content_hash
from medassay.core.catch import caught
from medassay.core.entry_point import load
from medassay.core.json import parse_json, record_as
from medassay.core.records.card_object import CardObject
from medassay.core.records.item import Bank, Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import LETTERS
from medassay.errors import InputError

Row = TypeVar("Row", bound=msgspec.Struct)
OtherRow = TypeVar("OtherRow", bound=msgspec.Struct)
Document = TypeVar("Document")
Records = Iterable[Mapping[str, Any]]
Cell = str | int | float | bool | None  # of a table, or of a JSON object that stands for its row

YEAR = 2026  # of the loaders; a loader whose items change gets a new number


class LetteredRow(msgspec.Struct):
    """A question as copies of several data sets have it: options and key by letters."""

    question: Cell
    options: dict[str, Cell]
    answer_idx: Cell
    id: Cell = None
    realidx: Cell = None

    def __post_init__(self) -> None:
        """Put the options in the order of their letters, in whatever order the file has them."""
        by_letter = {letter.strip().upper(): option for letter, option in self.options.items()}
        letters = LETTERS[: len(self.options)]
        if sorted(by_letter) != sorted(letters):
            found = ", ".join(self.options)
            raise ValueError(f"options {found:.60}; expected {', '.join(letters)}")
        self.options = {letter: by_letter[letter] for letter in letters}


class BankBuilder:
    """Collects records of one bank; `drop` counts what was left out, `bank` is the result."""

    def __init__(
        self,
        name: str,
        *,
        licence: str,
        source: str,
        title: str,
        limits: str = "",
        may_leave: bool = True,
    ) -> None:
        self.name = name
        self.licence = licence
        self.source = source
        self.title = title
        self.limits = limits
        self.may_leave = may_leave
        self.dropped: Counter[str] = Counter()
        self._items: dict[str, Item] = {}

    def drop(self, reason: str) -> None:
        """Count one record that does not become an item."""
        self.dropped[reason] += 1

    def choice(
        self,
        name: str,
        question: Cell,
        options: Sequence[Cell],
        key: int | None,
        **more: Any,
    ) -> None:
        """Add a multiple-choice item, or count why it cannot be one. `key` counts from 0."""
        texts = ["" if option is None else str(option).strip() for option in options]
        if not str(question or "").strip():
            self.drop("empty question")
        elif not all(texts) or len(texts) < 2:
            self.drop("empty option")
        elif key is None or not 0 <= key < len(texts):
            self.drop("no valid key")
        else:
            record = {"question": str(question).strip(), "options": texts, "expected": LETTERS[key]}
            self.add(cast(ItemObject, {"id": name, **record, **more}))

    def text(
        self, name: str, question: Cell, reference: Cell, *, least: int = 1, **more: Any
    ) -> None:
        """Add an open item whose answer is compared with a reference text, or count why it cannot
        be one.

        `least` is how many characters a reference must have.
        """
        question_text, answer = (str(text or "").strip() for text in (question, reference))
        if not question_text:
            self.drop("empty question")
        elif len(answer) < least:
            short = f"reference of fewer than {least} characters"
            self.drop(short if least > 1 else "no reference")
        else:
            record = {"answer_type": "open", "question": question_text, "reference": answer}
            self.add(cast(ItemObject, {"id": name, "domain": self.name, **record, **more}))

    def add(self, record: ItemObject) -> None:
        """Add one record in the form of a bank file, or count why it is refused."""
        values = {"kind": "public", "source": self.source, **record}
        # A report whose record is null has none yet; anywhere else null is nothing.
        values = {k: v for k, v in values.items() if k == "record" or v not in (None, "")}
        full = cast(ItemObject, values)
        where = f"{self.name} record '{full.get('id')}'"
        check_record(full, where, {str(full.get("domain"))})
        item = build_item(full)
        if item.id in self._items:
            self.drop("id occurs twice")
        else:
            self._items[item.id] = item

    def bank(self) -> Bank:
        """Return the bank of all records kept."""
        if not self._items:
            counts = (
                "; ".join(f"{n} × {reason}" for reason, n in self.dropped.items()) or "none read"
            )
            raise InputError(f"{self.name}: no usable record ({counts})")
        items = tuple(self._items[name] for name in sorted(self._items))
        version = f"{self.name}-{YEAR}.1"
        domains = tuple(sorted({item.domain for item in items}))
        card: CardObject = {
            "name": self.name,
            "title": self.title,
            "question_bank_version": version,
            "licence": self.licence,
            "domains": list(domains),
            "limits": self.limits,
            "kept": len(items),
            "dropped": dict(self.dropped),
        }
        if not self.may_leave:
            card |= {"may_leave": False}
        return Bank(
            name=self.name,
            version=version,
            domains=domains,
            licence=self.licence,
            items=items,
            content_hash=content_hash(item_record(item) for item in items),
            title=self.title,
            limits=self.limits,
            may_leave=self.may_leave,
            kept=len(items),
            dropped=dict(self.dropped),
            card=card,
        )


def bank_of_package(name: str, path: Path, *, licence: str) -> Bank:
    """Return the bank that a function of an installed package reads from files.

    The function takes the path and gives items, each with the keys of `items.jsonl`.

    Raises
    ------
    InputError
        When the package cannot be imported or cannot read the file, or an item is not one.
    """
    builder = BankBuilder(name, licence=licence, source=path.name, title=name)
    read_items = load("banks", name)
    records: list[Any] = []
    with caught() as errors:
        records = list(read_items(path))
    if errors:
        raise InputError(
            f"bank '{name}': the package cannot read {path.name}"
            f" ({type(errors[0]).__name__}: {errors[0]})"
        )
    for number, record in enumerate(records, 1):
        if not isinstance(record, Mapping) or not isinstance(record.get("id"), str):
            raise InputError(
                f"bank '{name}', item {number}: expected a mapping with the keys of items.jsonl, an"
                " id among them"
            )
        builder.add(cast(ItemObject, dict(record)))
    return builder.bank()


def find_file(root: Path, *names: str) -> Path:
    """Return `root` itself if it is a file, else the first of `names` found in that folder."""
    if root.is_file():
        return root
    if not root.is_dir():
        raise InputError(f"{root}: no such file or folder")
    for name in names:
        paths = sorted(root.glob(name))
        if paths:
            return paths[0]
    raise InputError(f"{root}: holds none of {', '.join(names)}")


def read_json(path: Path) -> Any:
    """Return the JSON document in `path`."""
    return parse_json(path.read_bytes(), path.name)


def read_document(path: Path, kind: type[Document]) -> Document:
    """Return the JSON document in `path` as a record.

    Raises
    ------
    InputError
        Where it is no JSON, or a field is absent or of another type.
    """
    return record_as(read_json(path), kind, path.name, InputError)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON list, JSON Lines or CSV file (told apart by the content)."""
    if path.suffix == ".csv":
        yield from read_csv(path)
        return
    with path.open("rb") as file:
        listed = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if listed:
        records: Iterable[Any] = read_json(path)
    else:
        with path.open("rb") as lines:
            records = [
                parse_json(line, f"{path.name} row {row}")
                for row, line in enumerate(lines, 1)
                if line.strip()
            ]
    for row, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise InputError(f"{path.name} record {row}: expected an object, found {record!r:.40}")
        yield record


def read_csv(
    path: Path, fieldnames: list[str] | None = None, form: TableForm = USUAL
) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file of a published set as dictionaries by column; every row must
    fill every column.
    """
    for _, row in numbered_csv(path, fieldnames, form):
        yield row


def _whole_rows(path: Path, file: TextIO, separator: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV file; raise InputError, naming the line, where quotes do not pair."""
    # Strictly: an unclosed quote would make one cell of all that follows.
    lines = csv.reader(file, delimiter=separator, strict=True)
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(
            f"{path.name} line {lines.line_num}: {error}: a quote does not close, or text stands"
            ' behind one that does; inside a cell in quotes write "" for each'
        ) from None


def numbered_csv(
    path: Path, fieldnames: list[str] | None = None, form: TableForm | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file, each with its number, as a spreadsheet program counts: from 1
    with the first line of the file, empty rows count, line breaks inside a cell do not.

    Parameters
    ----------
    form : default: UTF-8, and whatever separates its columns
    """
    csv.field_size_limit(sys.maxsize)
    form = form or form_of(path, USUAL.encoding)
    try:
        with path.open(encoding=form.encoding, newline="") as file:
            reader = enumerate(_whole_rows(path, file, form.separator), 1)
            names = fieldnames
            if names is None:
                names = next((cells for _, cells in reader if is_header(cells)), [])
            refuse_twice(path, names)
            nameless = [at for at, name in enumerate(names) if not name]
            for number, cells in reader:
                if cells and len(cells) != len(names):
                    raise InputError(
                        f"{path.name} row {number}: {len(cells)} cells for {len(names)} columns;"
                        f" expected one for each (a '{form.separator}' inside a cell needs quotes)"
                    )
                if cells:
                    record = dict(zip(names, cells, strict=True))
                    if len(nameless) > 1:  # of which it would hold the last alone
                        record |= {"": "".join(cells[at] for at in nameless)}
                    yield number, record
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a CSV table") from None
    except UnicodeDecodeError as error:
        if path.is_file():  # a pipe can be read once only
            with path.open("rb") as packed:
                refuse_packed(path, packed.read(4))
        raise InputError(
            f"{path.name}: not readable as CSV in {encoding_name(form.encoding)}: {error}"
        ) from None


def refuse_twice(path: Path, header: Sequence[str]) -> None:
    """Refuse a table with two columns of one name; Excel leaves columns without any at the end."""
    twice = sorted(name for name, n in Counter(header).items() if name and n > 1)
    if twice:
        raise InputError(f"{path.name}: column '{twice[0]}' occurs twice in the header")


def letter_index(letter: Cell) -> int | None:
    """Return 0 for "A", 1 for "b" …; None for anything else."""
    text = str(letter or "").strip().upper()
    return LETTERS.index(text) if len(text) == 1 and text in LETTERS else None


def whole_number(value: Cell) -> int | None:
    """Return `value` as an integer, None where it is none."""
    try:
        return int(str(value).strip())
    except ValueError:
        return None


@overload
def rows_of(path: Path, records: Records, layout: type[Row], /) -> Iterator[Row]: ...


@overload
def rows_of(
    path: Path, records: Records, first: type[Row], second: type[OtherRow], /
) -> Iterator[Row | OtherRow]: ...


def rows_of(
    path: Path, records: Records, /, *layouts: type[msgspec.Struct]
) -> Iterator[msgspec.Struct]:
    """Yield each record of a file as the first of the layouts whose columns it has.

    A layout is a `msgspec.Struct` with a field for each column; a field with a default stands for a
    column that may be absent, and columns without a field are not read.

    Raises
    ------
    InputError
        Where a record has the columns of no layout, or a value of another type than its column.
    """
    columns = [
        {field.encode_name for field in msgspec.structs.fields(layout) if field.required}
        for layout in layouts
    ]
    for number, record in enumerate(records, 1):
        at = need_columns(path, record, *columns)
        try:
            yield msgspec.convert(record, layouts[at])
        except msgspec.ValidationError as error:
            raise InputError(f"{path.name} record {number}: {error}") from None


def numbered_rows(path: Path, layout: type[Row]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a CSV file of a published set, each with its number (`numbered_csv`)."""
    numbered = [*numbered_csv(path, form=USUAL)]
    rows = rows_of(path, (cells for _, cells in numbered), layout)
    return ((number, row) for (number, _), row in zip(numbered, rows, strict=True))


def need_columns(path: Path, record: Collection[str], *layouts: set[str]) -> int:
    """Return which of `layouts` the record's columns fit, or refuse the file naming them."""
    for number, layout in enumerate(layouts):
        if layout <= set(record):
            return number
    expected = " or ".join("{" + ", ".join(sorted(layout)) + "}" for layout in layouts)
    raise InputError(
        f"{path.name}: columns {sorted(record)[:12]} fit no known layout; expected {expected}"
    )
