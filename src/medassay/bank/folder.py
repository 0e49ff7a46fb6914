"""A bank on disk: `bank.toml`, `items.jsonl`, `CHANGES.md`; loading, hashing, writing.

Items are read by streaming and kept as an index of offsets, so that a bank of a million items
costs an index and no more.
"""

import hashlib
import os
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from medassay.bank.card import (
    BankCard,
    card_from,
    card_text,
    existing,
    read_card,
    read_card_document,
)
from medassay.bank.check import build_item, check_record, form_of
from medassay.bank.lock import registered_hash
from medassay.bank.released import write_released
from medassay.bank.reviews import as_records, read_reviews
from medassay.bank.serialize import item_record
from medassay.core.canonical import canonical, content_hash
from medassay.core.files import whole_folder, write_lines
from medassay.core.json import parse_json, refuse_twins
from medassay.core.records.card_object import CardObject
from medassay.core.records.item import Bank, Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import Form
from medassay.core.wording import as_seen
from medassay.errors import InputError

_LONGEST_CHANGES = 20_000  # characters
Head = tuple[str, str, Form]  # domain, split, form: shared by many items


class StoredItems(Sequence[Item]):
    """Items of a file, each read when it is asked for. Safe across threads (`os.pread`).

    `scan` checks every row and builds the index; reading an item afterwards checks nothing again.
    """

    def __init__(self, path: Path, domains: frozenset[str], *, of_run: bool = False) -> None:
        self._path = path
        self._name = path.name
        self._domains = domains
        self._of_run = of_run
        self._file = -1  # until it is open
        self._file = os.open(path, os.O_RDONLY)
        self._starts = array("Q")
        self._lengths = array("L")
        self.ids: list[str] = []
        self.heads: list[Head] = []
        self.languages: Counter[str] = Counter()  # of the items to be asked

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def __getstate__(self) -> dict[str, Any]:
        """Return all that a copy needs, in this process or another; it opens the file itself."""
        return self.__dict__ | {"_path": self._path.resolve(), "_file": _identity(self._file)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_file": -1}
        try:
            self._file = os.open(self._path, os.O_RDONLY)
        except OSError as error:
            raise InputError(
                f"{self._path}: {error.strerror}; expected the file of a bank"
            ) from None
        if _identity(self._file) != state["_file"]:
            raise InputError(
                f"{self._path}: was changed since this bank was read; read the bank anew"
            )

    def __len__(self) -> int:
        return len(self._starts)

    def length(self, position: int) -> int:
        """Return how many bytes the line of an item has."""
        return self._lengths[position]

    def record(self, position: int) -> ItemObject:
        """Return the parsed file object at `position`."""
        line = os.pread(self._file, self._lengths[position], self._starts[position])
        return _object(line, self._name)

    @overload
    def __getitem__(self, position: int) -> Item: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Item]: ...
    def __getitem__(self, position: int | slice) -> Item | Sequence[Item]:
        if isinstance(position, slice):
            return tuple(self[i] for i in range(*position.indices(len(self))))
        if position < 0:
            position += len(self)
        if not 0 <= position < len(self):
            raise IndexError(position)
        return build_item(self.record(position))

    def _key_domain(self, position: int) -> str:
        return self.heads[position][0] if self._of_run else ""

    def trust(self) -> None:
        """Find the lines of a file that was checked before, without reading them.

        `ids` and `heads` stay empty.
        """
        offset = 0
        with self._path.open("rb") as file:
            for line in file:
                self._starts.append(offset)
                self._lengths.append(len(line))
                offset += len(line)

    def scan(self, *, check: bool = True) -> Iterator[ItemObject]:
        """Yield the file object of every item while building the index; call once, first.

        Parameters
        ----------
        check : False where this process, or the one that started it, has checked the items before
        """
        ids = _IdCheck(lambda: ((self._key_domain(i), self.ids[i]) for i in range(len(self))))
        heads: dict[Head, Head] = {}
        offset = 0
        with self._path.open("rb") as file:
            for row, line in enumerate(file, 1):
                if line.strip():
                    where = f"{self._name} row {row}"
                    record = _object(line, where)
                    if check:
                        refuse_twins(line, record, where)
                        form = check_record(record, where, self._domains, of_run=self._of_run)
                    else:
                        form = form_of(record)
                    name, domain = record["id"], record["domain"]
                    # Ids are unique in a bank; a run may join banks, whose domains differ.
                    key = (domain if self._of_run else "", name)
                    ids.refuse_second(key, where)
                    if check and not name.isascii():
                        # What was sealed before zero widths were looked at stays readable.
                        is_run = self._of_run
                        looks = unicodedata.normalize("NFC", name) if is_run else as_seen(name)
                        ids.refuse_alike(key, looks, where)
                    head = (domain, record.get("split", "test"), form)
                    self.heads.append(heads.setdefault(head, head))
                    if head[1] == "test":
                        self.languages[record.get("language", "en")] += 1
                    self.ids.append(name)
                    self._starts.append(offset)
                    self._lengths.append(len(line))
                    yield record
                offset += len(line)
        if not self._of_run:
            ids.refuse_hidden()


class _IdCheck:
    """Finds ids that occur twice in a file, or look the same.

    Parameters
    ----------
    earlier : the domain and id of every row until now; asked for where ids are not in order, or
        hold characters that are not seen
    """

    def __init__(self, earlier: Callable[[], Iterator[tuple[str, str]]]) -> None:
        self._earlier = earlier
        self._seen: set[tuple[str, str]] | None = None  # made when ids are not in order
        self._last = ("", "")
        self._alike: dict[tuple[str, str], str] = {}  # of ids outside ASCII, as they look
        self._hidden: list[tuple[str, tuple[str, str]]] = []  # rows whose ids look like ASCII

    def refuse_second(self, key: tuple[str, str], where: str) -> None:
        """Raise where a row of the same id came before."""
        if self._seen is None and key <= self._last:
            self._seen = set(self._earlier())
        if self._seen is not None:
            if key in self._seen:
                raise InputError(f"{where}: field 'id': '{key[1]:.60}' occurs twice")
            self._seen.add(key)
        self._last = key

    def refuse_alike(self, key: tuple[str, str], looks: str, where: str) -> None:
        """Raise where an earlier id looks the same and is written with other characters."""
        domain, name = key
        if self._alike.setdefault((domain, looks), name) != name:
            raise _looks_the_same(where, name, "an earlier id")
        if looks.isascii():
            self._hidden.append((where, (domain, looks)))

    def refuse_hidden(self) -> None:
        """Raise where an id in ASCII looks the same as another one, once all rows are read."""
        names = set(self._earlier()) if self._hidden else set()
        for where, key in self._hidden:
            if key in names:
                raise _looks_the_same(where, key[1], "another id")


class ChosenItems(Sequence[Item]):
    """Some of the items of a file, each read when it is asked for."""

    def __init__(self, items: StoredItems, places: "array[int]") -> None:
        self._items, self._places = items, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, position: int) -> Item: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Item]: ...
    def __getitem__(self, position: int | slice) -> Item | Sequence[Item]:
        if isinstance(position, slice):
            return ChosenItems(self._items, self._places[position])
        return self._items[self._places[position]]


def _looks_the_same(where: str, name: str, which: str) -> InputError:
    return InputError(
        f"{where}: field 'id': '{name:.60}' looks like {which} and is written with other"
        " characters; write both in one way (NFC, without characters of no width)"
    )


def _identity(file: int) -> tuple[int, int]:
    """Return size and time of the last change of an open file."""
    status = os.fstat(file)
    return status.st_size, status.st_mtime_ns


def _object(line: bytes, where: str) -> ItemObject:
    value: ItemObject = parse_json(line, where)
    return value


def load_bank(
    path: str | Path, *, lock: Path | None = Path("banks.lock"), check: bool = True
) -> Bank:
    """Return the bank in a folder, validated from the first row to the last.

    Parameters
    ----------
    path : folder with bank.toml and items.jsonl
    lock : file of registered hashes (banks.lock of the workspace); None looks nowhere
    check : whether a content hash that differs from the registered one refuses the bank

    Raises
    ------
    InputError
        Naming file, row, field and what was expected; also when this version of the bank is
        registered with another content hash.
    """
    folder = Path(path)
    document = read_card_document(folder)
    card = card_from(document, folder)
    items = StoredItems(existing(folder / "items.jsonl"), frozenset(card.domains))
    digest, in_order, last = hashlib.sha256(), True, ""
    for record in items.scan():
        in_order = in_order and last < record["id"]
        last = record["id"]
        try:
            line = canonical(record) + b"\n"
        except InputError as error:
            raise InputError(f"{folder.name}/items.jsonl item '{last}': {error}") from None
        if in_order:
            digest.update(line)
    if not len(items):
        raise InputError(f"{folder.name}/items.jsonl: no items; expected one JSON object a line")
    content_sha256 = digest.hexdigest() if in_order else content_hash(_records(items))
    if check:
        _check_registered(folder, card, content_sha256, lock)
    return Bank(
        name=card.name,
        version=card.question_bank_version,
        domains=tuple(card.domains),
        licence=card.licence,
        items=items,
        content_hash=content_sha256,
        title=card.title,
        limits=card.limits,
        created=card.created,
        may_leave=card.may_leave,
        kept=len(items),
        dropped=card.dropped,
        card=document,
        changes=_changes(folder),
        reviews=as_records(read_reviews(folder)),
    )


def _changes(folder: Path) -> str:
    """Return the beginning of what a bank says of its versions."""
    path = folder / "CHANGES.md"
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST_CHANGES)


def _records(items: StoredItems) -> Iterator[ItemObject]:
    return (items.record(position) for position in range(len(items)))


def bank_records(bank: Bank) -> Iterator[tuple[Item, ItemObject]]:
    """Yield each item with the object its file holds (or would hold)."""
    for position, item in enumerate(bank.items):
        yield item, bank_record(bank, position)


def bank_record(bank: Bank, position: int) -> ItemObject:
    """Return the object that a bank's file holds (or would hold) for one item."""
    items = bank.items
    return (
        items.record(position) if isinstance(items, StoredItems) else item_record(items[position])
    )


def bank_heads(bank: Bank) -> Iterator[tuple[str, Head]]:
    """Yield (id, (domain, split, form)) of every item, without reading a stored item again."""
    items = bank.items
    if isinstance(items, StoredItems):
        yield from zip(items.ids, items.heads, strict=True)
    else:
        yield from ((item.id, (item.domain, item.split, item.form)) for item in items)


def asked_forms(bank: Bank) -> set[Form]:
    """Return the forms of a bank's items that are no examples."""
    return {form for _, (_, split, form) in bank_heads(bank) if split == "test"}


def asked_languages(bank: Bank) -> Counter[str]:
    """Return how many items of a bank that are no examples are in which language."""
    if isinstance(bank.items, StoredItems):
        return bank.items.languages
    return Counter(item.language for item in bank.items if item.split == "test")


def _check_registered(folder: Path, card: BankCard, content_sha256: str, lock: Path | None) -> None:
    version = card.question_bank_version
    claims = {"bank.toml": card.content_sha256}
    if lock is not None:
        claims[lock.name] = registered_hash(lock, version)
    for source, claimed in claims.items():
        if claimed is not None and claimed != content_sha256:
            raise InputError(
                f"bank '{card.name}': items hash to {content_sha256[:16]}… but {source}"
                f" registers {claimed[:16]}… for {version}; items of a released version never"
                f" change: `medassay bank release {folder} --reason …` makes a new version"
            )


def write_bank(folder: Path, card: CardObject, records: Iterable[ItemObject]) -> str:
    """Write a new bank folder, whole or not at all, and return its content hash.

    Raises
    ------
    InputError
        If the folder exists, or the items are not valid.
    """
    if folder.exists():
        raise InputError(f"{folder}: exists; choose another folder, nothing was written")
    with whole_folder(folder) as draft:
        ordered = sorted(records, key=lambda record: str(record["id"]))
        write_lines(draft / "items.jsonl", ordered)
        (draft / "bank.toml").write_text(card_text(card), encoding="utf-8")
        content_hash = load_bank(draft, lock=None, check=False).content_hash
        (draft / "bank.toml").write_text(
            card_text({**card, "content_sha256": content_hash}), encoding="utf-8"
        )
        (draft / "CHANGES.md").write_text(
            f"# Changes\n\n## {read_card(draft).question_bank_version}\n\nFirst version; content"
            f" {content_hash}.\n",
            encoding="utf-8",
        )
        write_released(draft, ordered)
    return content_hash
