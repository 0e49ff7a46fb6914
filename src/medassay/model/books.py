"""What a client of endpoints needs of a budget."""

from typing import Any, Protocol

from medassay.core.records.completion import Usage
from medassay.core.records.model import ModelSpec


class Books(Protocol):
    """Where requests are booked before they are sent, and settled when it is known what they
    used.
    """

    async def reserve(self, spec: ModelSpec, most: Usage, key: str, retry: int) -> Any:
        """Return a booking; raise `OverBudget` where a bound forbids it."""

    def settle(self, booking: Any, usage: Usage, *, calls: int | None = None) -> None:
        """Replace a booking by what the request used."""

    def keep(self, booking: Any) -> None:
        """Let a booking stand: nobody knows what the request used."""
