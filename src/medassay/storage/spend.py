"""The spend journal of a workspace: every request stands here at its upper bound before it is sent,
and at what it used afterwards.

Each process appends to a file of its own, `spend/<name>.jsonl`; what all of them hold together is
what was spent. A request that no line settles was under way when its process was killed, timed out,
or lost its connection: vendors bill such generations, so it counts at its upper bound, but for what
the response store knows to have come back.
"""

import datetime as dt
import fcntl
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from msgspec.structs import asdict

from medassay.core.amount import NOTHING, Amount
from medassay.core.canonical import canonical
from medassay.core.clock import now
from medassay.core.private import make_folder, open_file
from medassay.core.records.completion import Usage
from medassay.core.records.model import FREE, ModelSpec, Price
from medassay.core.toml import load_toml
from medassay.errors import InputError, IntegrityError
from medassay.storage.jsonl import append_line

SPEND = "spend"
SETTINGS = "medassay.toml"
BEFORE = "before"  # the file, and the account, of what was spent before there was a journal
_TAIL = 1 << 16  # bytes: the last line of a file that was closed is shorter
_LOCK = ".lock"
UsageOf = Callable[[str], Usage | None]  # of a stored reply, by its key


class Spending(msgspec.Struct, frozen=True):
    """What one account (a run, a study, a workshop) spent on one model in one month.

    `open` is the part that was reserved and never settled, already in `amount`; `currency` that of
    the money, "" where no price is known; `estimated` where there was no journal then.
    """

    account: str
    model: str
    month: str
    amount: Amount
    open: Amount = NOTHING
    currency: str = ""
    estimated: bool = False


class SpendingLimits(msgspec.Struct, frozen=True):
    """What all runs of a workspace may spend together, in money: in a calendar month (UTC), and in
    all; None is no bound.
    """

    month: float | None = None
    total: float | None = None
    allow_unknown: bool = False

    def __bool__(self) -> bool:
        return self.month is not None or self.total is not None

    def to_dict(self) -> dict[str, float]:
        """Return the bounds that there are."""
        named = {"month": self.month, "total": self.total}
        return {name: bound for name, bound in named.items() if bound is not None}


def bounds_of(workspace: Path) -> SpendingLimits:
    """Return the bounds in the `medassay.toml` of a workspace.

    Raises
    ------
    InputError
        Naming what is not as expected.
    """
    path = workspace / SETTINGS
    if not path.exists() and not path.is_symlink():
        return SpendingLimits()
    try:
        document = load_toml(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as TOML: {error}") from None
    table = document.get("budget", {})
    if not isinstance(table, dict):
        raise InputError(f"{path}: 'budget' is {table!r:.40}; expected a table [budget]")
    if unknown := [
        *(document.keys() - {"budget"}),
        *(set(table) - {"month", "total", "unknown_prices"}),
    ]:
        raise InputError(
            f"{path}: '{min(unknown)}' is not known here; expected [budget] with month, total and"
            " unknown_prices"
        )
    allows = table.pop("unknown_prices", "refuse")
    if allows not in ("refuse", "allow"):
        raise InputError(
            f'{path}: budget.unknown_prices: {allows!r:.40}; expected "refuse" or "allow"'
        )
    for name, bound in table.items():
        number = isinstance(bound, int | float) and not isinstance(bound, bool)
        if not number or not 0 <= bound < math.inf:
            raise InputError(
                f"{path}: budget.{name}: {bound!r:.40}; expected an amount of money, from 0"
            )
    return SpendingLimits(table.get("month"), table.get("total"), allows == "allow")


class _ReservationLine(msgspec.Struct, rename={"retry": "attempt"}):
    """A line that stands before a request."""

    reserved: int
    at: str
    model: str
    key: str
    retry: int
    tokens: int
    money: float | None
    calls: int = 1


class _SettlementLine(msgspec.Struct):
    """A line of what a request came to."""

    settled: int
    calls: int
    tokens: int
    money: float | None


class _OpeningLine(msgspec.Struct):
    """The first line of a file: whose it is, and the prices of models where they are known."""

    account: str
    prices: dict[str, Price | None]
    fresh: bool = False


class _ClosedSpending(msgspec.Struct):
    """What was spent on a model in a month, and what was reserved and never settled."""

    account: str
    model: str
    month: str
    amount: Amount
    open: Amount
    currency: str


class _ClosingLine(msgspec.Struct):
    """The last line of a file that is closed: all that it came to."""

    closed: list[_ClosedSpending]
    estimated: bool = False


_LINE = msgspec.json.Decoder(dict[str, Any])


class _Book(msgspec.Struct):
    """A file of the journal as far as it was read."""

    path: Path
    offset: int = 0
    account: str = ""
    fresh: bool = False
    prices: dict[str, Price | None] = msgspec.field(default_factory=dict)
    settled: dict[tuple[str, str], Amount] = msgspec.field(default_factory=dict)  # model, month
    open: dict[int, _ReservationLine] = msgspec.field(default_factory=dict)
    replied: set[str] = msgspec.field(default_factory=set)  # keys of requests that were settled
    closed: list[Spending] | None = None

    def read_on(self) -> None:
        """Read what was written since the last time.

        A torn last line is of a request that was not sent.
        """
        if self.closed is not None or self.path.stat().st_size == self.offset:
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                try:
                    self._take(_LINE.decode(line))
                except (
                    msgspec.DecodeError,
                    LookupError,
                    TypeError,
                    ValueError,
                    AttributeError,
                ):
                    raise IntegrityError(
                        f"spend/{self.path.name} at byte {self.offset}: not a line of the spend"
                        " journal; restore the file"
                    ) from None
                self.offset += len(line)

    def read_end(self) -> bool:
        """Return whether the file was closed: its last line then says all."""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - _TAIL))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        if not last.startswith(b'{"closed"'):
            return False
        try:
            self._take(_LINE.decode(last))
        except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError):
            return False  # torn, or damaged: reading from the start tells where
        return True

    def _take(self, line: dict[str, Any]) -> None:
        if "reserved" in line:
            reserved = msgspec.convert(line, _ReservationLine)
            self.open[reserved.reserved] = reserved
        elif "settled" in line:
            settled = msgspec.convert(line, _SettlementLine)
            reserved = self.open.pop(settled.settled)
            self.replied.add(reserved.key)
            self.settle(reserved, _amount(settled.calls, settled.tokens, settled.money))
        elif "closed" in line:
            closing = msgspec.convert(line, _ClosingLine)
            self.closed = [
                Spending(**asdict(entry), estimated=closing.estimated) for entry in closing.closed
            ]
        else:
            opening = msgspec.convert(line, _OpeningLine)
            self.account, self.prices = opening.account, opening.prices
            self.fresh = opening.fresh

    def settle(self, reserved: _ReservationLine, amount: Amount) -> None:
        """Count what a request came to."""
        place = reserved.model, reserved.at[:7]
        self.settled[place] = self.settled.get(place, Amount()) + amount

    def recover(self, usage_of: UsageOf) -> None:
        """Settle what came back and was stored, though its process was killed before it said so
        here.

        A stored reply is that of the last retry; earlier sendings brought none.
        """
        if self.fresh:
            return
        last: dict[str, _ReservationLine] = {}
        for reserved in self.open.values():
            if reserved.key not in self.replied and (
                reserved.key not in last or last[reserved.key].retry < reserved.retry
            ):
                last[reserved.key] = reserved
        for reserved in last.values():
            usage = usage_of(reserved.key)
            if usage is not None:
                del self.open[reserved.reserved]
                self.settle(
                    reserved, used(self.prices.get(reserved.model), usage, calls=reserved.calls)
                )

    def spendings(self) -> list[Spending]:
        """Return what the file holds, by model and month."""
        if self.closed is not None:
            return self.closed
        amounts: dict[tuple[str, str], Amount] = {}
        for reserved in self.open.values():
            place = reserved.model, reserved.at[:7]
            amounts[place] = amounts.get(place, Amount()) + _amount(
                reserved.calls, reserved.tokens, reserved.money
            )
        return [
            Spending(
                account=self.account,
                model=place[0],
                month=place[1],
                amount=self.settled.get(place, Amount()) + amounts.get(place, Amount()),
                open=amounts.get(place, Amount()),
                currency=currency_of(self.prices.get(place[0])),
            )
            for place in sorted(self.settled.keys() | amounts.keys())
        ]


def used(price: Price | None, usage: Usage, *, calls: int = 1) -> Amount:
    """Return what requests used, at a price or at none that is known."""
    tokens = usage.prompt + usage.completion
    return _amount(calls, tokens, None if price is None else price.of(usage))


def currency_of(price: Price | None) -> str:
    """Return the currency of a price, "" where none is known."""
    return "" if price is None else price.currency


def _amount(calls: int, tokens: int, money: float | None) -> Amount:
    return Amount(calls, tokens, money or 0.0, tokens if money is None else 0)


class SpendJournal:
    """Where one process writes what it spends for one account.

    The file is made with the first request.

    Parameters
    ----------
    workspace : the folder of runs/, responses/ and spend/
    account : whose budget it is: a run, a study, a workshop
    specs : who is asked, with their prices
    name : of the file, where others shall know it; no other process may choose it
    """

    def __init__(
        self,
        workspace: Path,
        account: str,
        specs: Mapping[str, ModelSpec],
        *,
        name: str = "",
        bounds: SpendingLimits | None = None,
        fresh: bool = False,
    ) -> None:
        self.account = account
        self._fresh = fresh
        self.bounds = bounds_of(workspace) if bounds is None else bounds
        self._folder = workspace / SPEND
        make_folder(self._folder)
        self._prices = {name: spec.known_price for name, spec in specs.items()}
        stamp = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S}"
        self.path = self._folder / f"{name or f'{stamp}-{token_hex(6)}'}.jsonl"
        self._book = _Book(self.path, account=account, prices=self._prices)
        self._others: dict[Path, _Book] = {}
        self._file: int | None = None
        self._number = 0
        self._late = bytearray()  # settlements, written before the next request
        self._at, self._told_at = "", 0.0
        self.refused = ""  # why the workspace's bounds forbade a request

    @property
    def growing(self) -> Path | None:
        """Return the file that this process writes, None while nothing was sent."""
        return None if self._file is None else self.path

    def price(self, model: str) -> Price | None:
        """Return what a model costs, None where that is not known."""
        return self._prices.get(model, FREE)

    def reserve(self, model: str, key: str, retry: int, amount: Amount) -> int | None:
        """Write down the upper bound of a request before it is sent.

        Return its number, None where the workspace's bounds forbid it.

        Parameters
        ----------
        key : that of the reply in the response store
        retry : how often this request was sent before, in this process
        """
        self.refused = ""
        if not self.bounds:
            return self._reserve(model, key, retry, amount)
        with open(open_file(self._folder / _LOCK, os.O_RDWR), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two that reserve at once could pass a bound together
            if not self._allows(amount.money):
                return None
            return self._reserve(model, key, retry, amount)

    def _reserve(self, model: str, key: str, retry: int, amount: Amount) -> int:
        self._number += 1
        line = _ReservationLine(
            reserved=self._number,
            at=self._now(),
            model=model,
            key=key,
            retry=retry,
            tokens=amount.tokens,
            money=None if self.price(model) is None else amount.money,
            calls=amount.calls,
        )
        data = msgspec.json.encode(line) + b"\n"
        self._late += data
        try:
            self.sync()
        except BaseException:
            del self._late[-len(data) :]  # nothing is sent that it would be for
            raise
        self._book.open[self._number] = line
        return self._number

    def settle(self, number: int, amount: Amount) -> None:
        """Note what a request came to; it is on the disk before the next one is sent."""
        reserved = self._book.open.pop(number)
        money = None if self.price(reserved.model) is None else amount.money
        line = _SettlementLine(
            settled=number, calls=amount.calls, tokens=amount.tokens, money=money
        )
        self._late += msgspec.json.encode(line) + b"\n"
        self._book.settle(reserved, amount)

    def sync(self) -> None:
        """Write what was not written yet."""
        if not self._late:
            return
        if self._file is None:
            self._file = open_file(self.path, os.O_WRONLY | os.O_EXCL | os.O_APPEND)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # it says that this process is alive
            head = {
                "schema_version": 1,
                "account": self.account,
                # Replies that were stored before say nothing of what is asked anew.
                **({"fresh": True} if self._fresh else {}),
                "prices": {
                    name: None if price is None else price.to_dict()
                    for name, price in self._prices.items()
                },
            }
            self._late[:0] = canonical(head) + b"\n"  # with the first line, or not at all
        append_line(self._file, self.path, bytes(self._late))
        self._late.clear()

    def close(self) -> None:
        """Write all down, with the sums as the last line."""
        try:
            self.sync()
            if self._file is not None:
                append_line(self._file, self.path, closing(self._book.spendings()))
                os.fsync(self._file)
        finally:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def spent(self, usage_of: UsageOf) -> Amount:
        """Return what the account has spent, here and elsewhere, until now."""
        others = spendings(self._folder, usage_of, but=self.path)
        own_spendings = [spending for spending in others if spending.account == self.account]
        return sum(
            (spending.amount for spending in (*own_spendings, *self._book.spendings())),
            Amount(),
        )

    def _now(self) -> str:
        ticks = time.monotonic()
        if ticks - self._told_at >= 1 or not self._at:
            self._at, self._told_at = now(), ticks
        return self._at

    def _allows(self, money: float) -> bool:
        for path in _files(self._folder):
            if path != self.path and path not in self._others:
                self._others[path] = _Book(path)
        for book in self._others.values():
            book.read_on()
        books = [self._book, *self._others.values()]
        all_spendings = [spending for book in books for spending in book.spendings()]
        month = self._now()[:7]
        spent = {
            "month": sum(
                spending.amount.money for spending in all_spendings if spending.month == month
            ),
            "total": sum(spending.amount.money for spending in all_spendings),
        }
        for name, bound in self.bounds.to_dict().items():
            if spent[name] + money > bound + 1e-12:
                period = f"of {month}" if name == "month" else "in all"
                self.refused = (
                    f"the workspace's budget {period} has no room for another request"
                    f" ({spent[name]:.4f} of {bound:g} spent; {SETTINGS})"
                )
                return False
        return True


def closing(rows: list[Spending], *, estimated: bool = False) -> bytes:
    """Return the last line of a file: its sums."""
    sums = [msgspec.to_builtins(spending) for spending in rows]
    for entry in sums:
        del entry["estimated"]  # stands once for all
    return canonical({"closed": sums, **({"estimated": True} if estimated else {})}) + b"\n"


def close_dead(folder: Path, usage_of: UsageOf) -> None:
    """Write the sums below the files of processes that are no longer there, while their replies
    alone are in the store.

    Later a request of theirs that brought nothing may have been sent again, and its reply would be
    taken for theirs.
    """
    for path in _files(folder):
        book = _Book(path)
        if book.read_end():
            continue
        with path.open("r+b", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # its process is alive
            book.read_on()
            if book.closed is None and book.account:
                book.recover(usage_of)
                file.truncate(book.offset)  # a torn last line is of a request that was not sent
                file.seek(book.offset)
                file.write(closing(book.spendings()))


def _files(folder: Path) -> list[Path]:
    """Return the files of a journal.

    What cannot be one is refused, since nobody knows what it would say.
    """
    paths = sorted(folder.glob("*.jsonl"))
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: no file of the spend journal; remove it")
    return paths


def write_sums(path: Path, rows: list[Spending]) -> None:
    """Write a file that holds sums alone: what was spent before there was a journal."""
    part = path.with_suffix(".part")
    with open(open_file(part, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(closing(rows, estimated=True))
    part.rename(path)


def spendings(
    folder: Path, usage_of: UsageOf = lambda key: None, *, but: Path | None = None
) -> list[Spending]:
    """Return what a workspace's `spend/` holds, by account, model and month.

    Parameters
    ----------
    usage_of : what a stored reply used: settles what a killed process could not
    but : a file that is left out
    """
    rows: list[Spending] = []
    for path in _files(folder):
        if path == but:
            continue
        book = _Book(path)
        if not book.read_end():
            book.read_on()
            book.recover(usage_of)
        rows += book.spendings()
    return rows


class Sum(msgspec.Struct, frozen=True):
    """What was spent under one name: on a model, in a month, by a run; one for each currency."""

    name: str
    amount: Amount
    open: Amount
    currency: str
    estimated: bool

    @property
    def spent_text(self) -> str:
        """Return the money as people read it; of tokens without a price it is not known."""
        amount_text = f"{self.amount.money:.4f} {self.currency}" if self.currency else ""
        unknown = (
            f"{self.amount.unpriced:,} tokens of unknown price" if self.amount.unpriced else ""
        )
        return " and ".join(filter(None, (amount_text, unknown)))


def summed(rows: list[Spending], by: str) -> list[Sum]:
    """Return the sums by "model", "run" or "month", and by currency, sorted by name.

    Those without a price stand by themselves.
    """
    field = "account" if by == "run" else by
    gathered: dict[tuple[str, str], list[Spending]] = {}
    for spending in rows:
        gathered.setdefault((getattr(spending, field), spending.currency), []).append(spending)
    return [
        Sum(
            name=name or "before there was a journal",
            amount=sum((spending.amount for spending in group), NOTHING),
            open=sum((spending.open for spending in group), NOTHING),
            currency=currency,
            estimated=any(spending.estimated for spending in group),
        )
        for (name, currency), group in sorted(gathered.items())
    ]
