"""What a client of endpoints needs of a budget."""

from typing import Protocol

import msgspec

from medassay.core.amount import Amount
from medassay.core.records.completion import Usage
from medassay.core.records.model import ModelSpec
from medassay.errors import Permanent, Transient


class Booking(msgspec.Struct, frozen=True):
    """A request that is under way, at its upper bound.

    `number` is that of its line in the spend journal.
    """

    spec: ModelSpec
    amount: Amount
    number: int


class Books(Protocol):
    """Where requests are booked before they are sent, and settled when it is known what they
    used.
    """

    async def reserve(self, spec: ModelSpec, most: Usage, key: str, retry: int) -> Booking:
        """Return a booking; raise `OverBudget` where a bound forbids it."""

    def settle(self, booking: Booking, usage: Usage, *, calls: int | None = None) -> None:
        """Replace a booking by what the request used."""

    def keep(self, booking: Booking) -> None:
        """Let a booking stand: nobody knows what the request used."""


def settle_failed(books: Books, booking: Booking, error: BaseException) -> None:
    """Settle a request that has no reply where it is known that nothing was generated for it.

    Otherwise it counts as paid.
    """
    refused = isinstance(error, Permanent) and error.refused
    if refused or (isinstance(error, Transient) and error.overload):
        books.settle(booking, Usage())
    elif isinstance(error, Transient) and error.unconnected:
        books.settle(booking, Usage(), calls=0)
    else:
        books.keep(booking)
