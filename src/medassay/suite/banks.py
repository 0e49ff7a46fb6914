"""The banks of a suite: made from the files of the data folder each time, and held against those
that lie in the workspace.
"""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from medassay.bank.card import next_version, read_card_document
from medassay.bank.catalog import BANKS
from medassay.bank.folder import bank_records, load_bank, write_bank
from medassay.bank.hub import HUB
from medassay.bank.lock import registered_hash
from medassay.core.keyed import KeyedRecord
from medassay.core.records.card_object import CardObject
from medassay.core.records.item import Bank
from medassay.errors import InputError
from medassay.suite.benchmark import Benchmark

_SAME_SET = ("title", "licence")  # of a card: what a loader writes, whatever the items


class SuiteBank(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """A bank that a suite asks: `folder` below banks/, `source` below the data folder.

    Of a bank of the user's `folder` is empty and `source` its place beside the plan. Without any
    values it stands for none.
    """

    KEYS: ClassVar = ("name", "folder", "source", "content_sha256", "items")

    name: str = ""
    folder: str = ""
    source: str = ""
    content_sha256: str = ""
    items: int = 0

    def __bool__(self) -> bool:
        return bool(self.name or self.content_sha256)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, {} for none."""
        return super().to_dict() if self else {}


class SuiteBanks:
    """Makes banks in a workspace from the files of a data folder, each once; banks of the user are
    taken where they lie, relative to `base`.
    """

    def __init__(
        self, data: Path, workspace: Path, tell: Callable[[str], None], base: Path
    ) -> None:
        self._data, self._workspace, self._tell, self._base = data, workspace, tell, base
        self._made: dict[str, SuiteBank | str] = {}

    def make(self, benchmark: Benchmark) -> SuiteBank | str:
        """Return the bank of a benchmark as its files are now, or why they make none.

        Where the workspace holds a bank of that name made from other files of the same set, both
        hashes are told, that bank stays, and the new one gets a folder with its hash.

        Raises
        ------
        InputError
            When the workspace holds a bank of that name that is of another set.
        """
        if benchmark.bank not in self._made:
            self._made[benchmark.bank] = self._bank(benchmark)
        return self._made[benchmark.bank]

    def _bank(self, benchmark: Benchmark) -> SuiteBank | str:
        name, source = benchmark.bank, self._data / (benchmark.folder or benchmark.bank)
        if name not in BANKS:
            return self._own_bank(name)
        if not source.exists() and name in HUB:
            return (
                f"no files in {benchmark.folder}/ of the data folder; "
                f"`medassay bank fetch {name} --to DATA/{benchmark.folder}` brings them"
            )
        try:
            bank = BANKS[name].load(source)
        except InputError as error:
            return self.without_paths(error)
        return SuiteBank(
            name=name,
            folder=self._folder(benchmark, bank),
            source=f"DATA/{benchmark.folder}",
            content_sha256=bank.content_hash,
            items=len(bank.items),
        )

    def _own_bank(self, name: str) -> SuiteBank:
        """Return a bank of the user's; one that is not there is a mistake in the plan."""
        if not (self._base / name / "bank.toml").is_file():
            raise InputError(
                f"suite: bank '{name}' is no folder with a bank.toml beside the plan, and no set of"
                " `medassay bank list`"
            )
        bank = load_bank(self._base / name, lock=self._workspace / "banks.lock")
        return SuiteBank(
            name=bank.name,
            source=name,
            content_sha256=bank.content_hash,
            items=len(bank.items),
        )

    def _folder(self, benchmark: Benchmark, bank: Bank) -> str:
        """Return the folder below banks/ that holds a bank; write it where there is none."""
        name = benchmark.bank
        first = self._workspace / "banks" / name
        if not first.exists():
            _write(first, bank)
            return name
        there = load_bank(first, lock=None)
        if there.content_hash == bank.content_hash:
            return name
        made_hash, known_hash = bank.content_hash[:12], there.content_hash[:12]
        if not _of_one_set(first, there, bank):
            raise InputError(
                f"banks/{name}: another bank ({len(there.items)} items, content {known_hash}…) has"
                f" the name of {benchmark.title}, of which DATA/{benchmark.folder} makes"
                f" {len(bank.items)} items (content {made_hash}…); rename its folder and its name,"
                " then repeat"
            )
        other = first.with_name(f"{name}-{made_hash}")
        self._tell(
            f"{name}: DATA/{benchmark.folder} changed: it makes {len(bank.items)} items (content"
            f" {made_hash}…), banks/{name} holds {len(there.items)} (content {known_hash}…); asked"
            f" is what the files make now, banks/{other.name}"
        )
        if not other.exists():
            _write(other, bank, self._version(bank))
        elif load_bank(other, lock=None).content_hash != bank.content_hash:
            raise InputError(
                f"banks/{other.name}: its items were changed; remove that folder, then repeat"
            )
        return other.name

    def _version(self, bank: Bank) -> str:
        """Return the first version of a bank that no other content has in this workspace."""
        version, year = bank.version, dt.datetime.now(dt.UTC).year
        lock = self._workspace / "banks.lock"
        while registered_hash(lock, version) not in (None, bank.content_hash):
            version = next_version(version, year)
        return version

    def without_paths(self, error: InputError) -> str:
        """Return what an error says without the folders of this machine: it is published with the
        suite.
        """
        message = str(error)
        for place, name in ((self._data, "DATA"), (self._workspace, "WORKSPACE")):
            for form in (place, place.resolve()):
                message = message.replace(f"{form}/", f"{name}/")
        return message


def _write(folder: Path, bank: Bank, version: str = "") -> None:
    card: CardObject = {**bank.card, "created": dt.datetime.now(dt.UTC).date().isoformat()}
    if version:
        card |= {"question_bank_version": version}
    write_bank(folder, card, (record for _, record in bank_records(bank)))


def _of_one_set(folder: Path, there: Bank, bank: Bank) -> bool:
    """Return whether two banks come from one loader: the same card, and items that name the same
    source.
    """
    card = read_card_document(folder)
    return all(card.get(key) == bank.card.get(key) for key in _SAME_SET) and (
        there.items[0].source == bank.items[0].source
    )
